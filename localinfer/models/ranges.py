"""Parts of one file on a hub, by HTTP ranges: every answer is checked to be the part that was asked for.

It knows what one request may answer. It keeps nothing, and does not know what is done with the bytes. Plain HTTP is
used for all data, also for files that the hub keeps in its Xet storage, because there every file can be had by ranges
too: the Xet client keeps no part of a file from one run to the next, and goes past a mirror named by HF_ENDPOINT.
So HF_HUB_DISABLE_XET holds always.
"""

import contextlib
import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from localinfer.errors import DownloadFailed, LocalInferError
from localinfer.models.web import Attempts, Opened, Stale, Subject, Temporary, Web, empty, is_page, web_page

_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_SHA256 = re.compile(r'(?:W/)?"?([0-9a-f]{64})"?')


class Remote(NamedTuple):
    """One file on a hub, pinned: its address, what identifies its content, and how it is called."""

    web: Web
    url: str
    name: str
    size_bytes: int
    sha256: str | None
    blob_id: str | None
    subject: Subject

    @property
    def oid(self) -> str:
        """What identifies the content."""
        return self.sha256 or self.blob_id or ""


class RangesIgnored(Exception):
    """The server sends the whole file instead of a part. Nothing of it was read."""


@contextlib.contextmanager
def part(remote: Remote, start: int, stop: int, url: str = "") -> Iterator[Opened]:
    """The bytes from ``start`` to before ``stop``, or fewer from ``start`` on; never more.

    ``url``: where an earlier answer came from, to be asked without asking the hub first. Raises ``RangesIgnored``, and
    what ``Web.open`` raises.
    """
    asked = {"range": f"bytes={start}-{stop - 1}"}
    with remote.web.open(url or remote.url, asked, remote.subject) as answer:
        _check_identity(remote, answer)
        if answer.status == 200:
            _check_whole(remote, answer)
            raise RangesIgnored
        _check_range(remote, answer, start)
        yield answer._replace(chunks=_at_most(answer, stop - start))


@contextlib.contextmanager
def whole(remote: Remote) -> Iterator[Opened]:
    """All the bytes, from a server that knows no ranges; never more than announced. Raises what ``part`` raises."""
    with remote.web.open(remote.url, {}, remote.subject) as answer:
        _check_identity(remote, answer)
        _check_whole(remote, answer)
        yield answer._replace(chunks=_at_most(answer, remote.size_bytes))


class RemoteSource:
    """A file on a hub of which pieces are read, as the header reader wants it: one request for each ``read``.

    Only the first asks the hub; the others go where it sent us.
    """

    def __init__(self, remote: Remote) -> None:
        self.name = remote.name
        self.size_bytes = remote.size_bytes
        self._remote = remote
        self._url = ""

    def read(self, offset: int, count: int) -> bytes:
        """The ``count`` bytes from ``offset`` on, fewer at the end. Raises ``Offline``, ``DownloadFailed``, …"""
        web = self._remote.web
        attempts = Attempts(web.patience)
        stop = min(offset + count, self.size_bytes)
        data = bytearray()
        while offset + len(data) < stop:
            before = len(data)
            try:
                self._more(data, offset, stop)
                break
            except RangesIgnored:
                raise DownloadFailed(
                    f"{web.host} gives {self.name} only as a whole, so it cannot be looked at first.",
                    "Fetch it to see what it needs, or use another mirror.",
                ) from None
            except Temporary as error:
                failure = error
            except LocalInferError as error:
                if not self._url:
                    raise
                failure = Stale(error)  # an address with a date of expiry
            self._url = ""
            wait = attempts.wait_s(failure, len(data) - before)
            web.say(failure.words(wait))
            time.sleep(wait)
        return bytes(data)

    def _more(self, data: bytearray, offset: int, stop: int) -> None:
        with part(self._remote, offset + len(data), stop, self._url) as answer:
            self._url = answer.url
            for chunk in answer.chunks:
                data += chunk
        if offset + len(data) < stop:
            raise Temporary(DownloadFailed(f"{self.name} broke off.", "Try again."))


def _check_identity(remote: Remote, answer: Opened) -> None:
    """Fail if the hub says that this is another content than it announced."""
    headers = answer.hub
    tag = headers.get("x-linked-etag") or headers.get("etag", "")
    found = _SHA256.fullmatch(tag.strip())
    if found and remote.sha256 and found[1] != remote.sha256:
        raise _another(remote, "has changed on the hub since it was listed")
    linked = headers.get("x-linked-size", "")
    if linked.isascii() and linked.isdigit() and remote.sha256 and int(linked[:19]) != remote.size_bytes:
        raise _another(remote, f"has {int(linked[:19]):,} bytes on the hub instead of {remote.size_bytes:,}")
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise _another(remote, "comes compressed, which was not asked for")


def _check_whole(remote: Remote, answer: Opened) -> None:
    _check_filled(remote, answer)
    if is_page(answer):
        error = web_page(remote.subject)
        raise error if remote.web.is_ours(answer.url) else Stale(error)
    length = answer.headers.get("content-length", "")
    if length and length != str(remote.size_bytes):
        raise _another(remote, f"comes with {length[:20]} bytes instead of {remote.size_bytes}")


def _check_filled(remote: Remote, answer: Opened) -> None:
    if answer.status == 204 or answer.headers.get("content-length") == "0":
        raise Temporary(empty(remote.web.host, remote.subject))


def _check_range(remote: Remote, answer: Opened, start: int) -> None:
    _check_filled(remote, answer)
    given = _RANGE.fullmatch(answer.headers.get("content-range", "").strip())
    if answer.status != 206 or given is None:
        raise Temporary(_another(remote, "comes in parts that do not say where they belong"))
    if given[3] not in ("*", str(remote.size_bytes)):
        raise _another(remote, f"comes with {given[3]} bytes instead of {remote.size_bytes}")
    if int(given[1]) != start:
        raise Temporary(_another(remote, f"comes from byte {given[1]} on where byte {start} was asked for"))


def _another(remote: Remote, what: str) -> DownloadFailed:
    return DownloadFailed(
        f"{remote.name} {what}.", "Try again. If it stays so, a mirror or proxy between you and the hub is broken."
    )


def _at_most(answer: Opened, count: int) -> Iterator[bytes]:
    if answer.headers.get("content-length") == str(count):  # read to its end, so that the connection is used again
        yield from answer.chunks
        return
    for chunk in answer.chunks:
        yield chunk[:count]
        count -= len(chunk)
        if count <= 0:
            return
