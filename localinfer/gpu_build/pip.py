"""Running pip for as long as it takes: its last line at hand, its whole output in a log, its failure in words.

Knows pip's words and those of compilers. It knows nothing of builds and where they go.
"""

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from localinfer.errors import BackendUnavailable, DownloadFailed, LocalInferError, Offline, OutOfMemory
from localinfer.external import Running, running
from localinfer.models.names import printable

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "[Errno 28]", "[WinError 112]")
_KILLED = (
    "Killed signal terminated program",
    "out of memory allocating",
    "cc1plus: out of memory",
    "died due to signal",
)
_NO_NETWORK = (
    *(": connection error: ", "proxy connection error: ", "connection-failed", "connection-timeout"),
    *("didn't respond within", "NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ProxyError"),
)
_NO_WHEEL = (
    "No matching distribution found",
    "is not a supported wheel on this platform",
    "HTTP error 404",
    "404 Client",
)
_BROKEN_OFF = ("incomplete-download", "not enough bytes were received", "DO NOT MATCH THE HASHES", "IncompleteRead")
# What a compiler, a linker or CMake says when it fails, and not what it says about an earlier failure.
_COMPILER = re.compile(
    r"(?:^|\s)(?:fatal )?error(?: C\d+)?:\s|^CMake Error|^nvcc fatal|^\s*#error|ld: cannot find|unsupported GNU version"
)
_NOT_BUILT = ("Failed building wheel", "Failed to build", "metadata-generation-failed")
_ENDING = 40  # of pip's lines are about how it ended
_ECHO = re.compile(r"^(?:error: (?:subprocess-exited|metadata-generation|failed-wheel)|ERROR: Failed|×)")


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    temporary: Path,
    log: Path,
    progress: Callable[[str], None],
) -> None:
    """Run pip to its end. It and everything it started is ended if this function is left early, by Ctrl-C for example.

    ``temporary`` is the folder for its temporary files. ``progress`` gets the last line several times a second, with
    what commands a terminal taken out. Raises what pip's failure means: ``Offline``, ``DownloadFailed``,
    ``OutOfMemory``, ``BackendUnavailable`` for what a compiler says, and ``OSError`` when the disk is full.
    """
    full = {
        **os.environ,
        **environment,
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
        **dict.fromkeys(("PIP_QUIET", "PIP_VERBOSE", "PIP_REQUIRE_VIRTUALENV", "PIP_USER", "PIP_TARGET"), ""),
        "PIP_RETRIES": os.environ.get("PIP_RETRIES", "2"),  # without a network, pip's own five take minutes
        "PYTHONIOENCODING": "utf-8:replace",
        "PYTHONUNBUFFERED": "1",
    }
    for name in [name for name, value in full.items() if name.startswith("PIP_") and not value]:
        del full[name]
    said: list[str] = []
    last = "pip starts"
    with log.open("w", encoding="utf-8") as copy, _pip(command, full) as child:
        for line in child.lines():
            if line is None:
                progress(last)
                continue
            text = line.strip()
            if match := _PROGRESS.match(text):
                last = f"{int(match[1]) / 1e6:,.0f} of {int(match[2]) / 1e6:,.0f} MB"
            elif text:
                copy.write(line)
                said.append(text)
                last = printable(text, 300)
            progress(last)
    if child.status:
        raise _failure(said, log)


@contextmanager
def _pip(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Running]:
    """A running pip, ended after the block with all its compilers."""
    with contextlib.ExitStack() as stack:
        try:
            child = stack.enter_context(running(command, environment))
        except OSError as error:
            message = f"{command[0]} cannot be run: {error.strerror}."
            raise BackendUnavailable(message, "Install localinfer again.") from error
        yield child


def _failure(said: Sequence[str], log: Path) -> Exception:
    """What pip's failure means to the person."""
    text = "\n".join(said)
    where = f"The whole output is in {log}."
    if any(sign in text for sign in _NO_SPACE):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if "No module named pip" in text:
        return BackendUnavailable("This Python has no pip.", "Install it, for example with “python -m ensurepip”.")
    if any(sign in text for sign in _KILLED):
        hint = f"Close other programs, or give it fewer cores with CMAKE_BUILD_PARALLEL_LEVEL=1. {where}"
        return OutOfMemory("Memory ran out while llama.cpp was compiled.", hint)
    if reason := _compiler_reason(said):
        return BackendUnavailable(f"llama.cpp cannot be compiled: {printable(reason, 300)}", where)
    return _download_failure(said, text, where)


def _download_failure(said: Sequence[str], text: str, where: str) -> LocalInferError:
    if any(sign in text for sign in _BROKEN_OFF):
        return DownloadFailed("The download broke off or arrived damaged.", f"Try again. {where}")
    if any(sign in text for sign in _NO_NETWORK):
        hint = f"Check the network, or pip's index and proxy settings, and try again. {where}"
        return Offline("What has to be fetched cannot be reached.", hint)
    errors = [line for line in said if line.lower().startswith("error:")] or said[-1:] or ["it said nothing"]
    reason = printable(errors[-1].partition(":")[2].strip() or errors[-1], 300)
    if any(sign in text for sign in _NO_WHEEL):
        return DownloadFailed(f"What has to be fetched is not there: {reason}", where)
    return BackendUnavailable(f"pip could not install llama.cpp: {reason}", where)


def _compiler_reason(said: Sequence[str]) -> str:
    """The first thing that a compiler or CMake complained of, if that is what ended pip."""
    if not any(sign in line for line in said[-_ENDING:] for sign in _NOT_BUILT):
        return ""
    for number, line in enumerate(said):
        if _COMPILER.search(line) and not _ECHO.search(line):
            # CMake says where first, and what in the lines below.
            return " ".join(said[number : number + (4 if line.startswith("CMake") else 1)])
    return ""
