"""llama-cpp-python's own index of prebuilt wheels: which of them suits a CUDA version and this interpreter.

The index is a folder for every CUDA version and has no list of them, so each is asked for by name. Knows pages and
file names; what a wheel needs of a machine it does not know.
"""

import html
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from http.client import HTTPException
from urllib.parse import unquote, urljoin, urlsplit

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from localinfer import __version__
from localinfer.builds import LIBRARY
from localinfer.errors import DownloadFailed, Offline
from localinfer.machine.cuda import Cuda
from localinfer.models.names import printable
from localinfer.types import Value

INDEX = "https://abetlen.github.io/llama-cpp-python/whl"
TIMEOUT_S = 15.0
_LONGEST_PAGE_BYTES = 8 << 20
_LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"']+)["']""", re.IGNORECASE)


class Wheel(Value, frozen=True):
    """One wheel for one CUDA version."""

    url: str
    file: str
    cuda: Cuda


def find(version: str, versions: Iterable[Cuda], index: str = INDEX) -> Wheel | None:
    """The wheel of ``version`` for the first of the CUDA ``versions`` that has one for this interpreter and system.

    Raises ``Offline`` when the index cannot be reached, ``DownloadFailed`` when it answers with something else.
    """
    for cuda in versions:
        page = f"{index}/cu{cuda[0]}{cuda[1]}/{LIBRARY}/"
        wheels = list(_wheels(_read(page), page, version, cuda))
        if wheels:
            return wheels[0]
    return None


def _wheels(text: str, page: str, version: str, cuda: Cuda) -> Iterator[Wheel]:
    tags = set(sys_tags())
    for link in _LINK.findall(text):
        try:
            url = urljoin(page, html.unescape(link))
            parts = urlsplit(url)
            file = unquote(parts.path.rpartition("/")[2])
            _, found, _, built_for = parse_wheel_filename(file)
            # What follows a "+" tells builds of one version apart: the version itself is what counts.
            same = Version(found.public) == Version(version)
        except ValueError:  # no address, no wheel, no version
            continue
        if same and tags & built_for and parts.scheme in ("http", "https"):
            yield Wheel(url=url, file=file, cuda=cuda)


def _read(page: str) -> str:
    """The page; empty where there is none."""
    try:
        request = urllib.request.Request(page, headers={"User-Agent": f"localinfer/{__version__}"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(_LONGEST_PAGE_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (404, 410):
                return ""
            message = f"The index of prebuilt wheels answered “{error.code} {printable(str(error.reason), 80)}”."
        raise DownloadFailed(message, "Try again later.") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = printable(str(getattr(error, "reason", error)), 200)
        raise Offline(
            f"The index of prebuilt wheels cannot be reached: {reason}.", "Check the network and its proxy settings."
        ) from error
    return data.decode("utf-8", "replace")
