"""The terminal as the commands see it: what may be written to it, errors, progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from localinfer.errors import LocalInferError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from localinfer.models.store import FetchProgress

# Control characters a model or a file could use to command the terminal. Newline and tab stay.
_CONTROL = {code: None for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(code) not in "\n\t"}


def safe(text: str) -> str:
    """``text`` without characters that command a terminal."""
    return text.translate(_CONTROL)


class ReaderGone(Exception):
    """Whoever read our standard output has closed it: there is nobody left to write for."""


def write(text: str) -> None:
    """A piece of the answer to standard output, at once. Raises ``ReaderGone``."""
    try:
        sys.stdout.write(safe(text))
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def note(text: str) -> None:
    """A line for the person, on standard error."""
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()


def dim(text: str) -> str:
    """``text`` dimmed where standard error is a terminal."""
    return f"\x1b[2m{text}\x1b[0m" if sys.stderr.isatty() else text


def write_dim(text: str) -> None:
    """A piece of what the model thinks, on standard error."""
    sys.stderr.write(dim(safe(text)))
    sys.stderr.flush()


def styled_note(text: str) -> None:
    """A dim line on standard error."""
    sys.stderr.write(dim(safe(text)) + "\n")
    sys.stderr.flush()


def report(error: LocalInferError) -> None:
    """An error: what is wrong, and what to do."""
    label = "\x1b[1;31merror:\x1b[0m" if sys.stderr.isatty() else "error:"
    sys.stderr.write(f"{label} {safe(error.message)}\n")
    if error.hint:
        sys.stderr.write("".join(f"  {line}\n" for line in safe(error.hint).splitlines()))
    sys.stderr.flush()


class LoadLine:
    """How far loading has come, rewritten in place; nothing where standard error is not a terminal."""

    def __init__(self) -> None:
        self._shown = 0

    def show(self, fraction: float) -> None:
        """Show ``fraction`` (0 to 1)."""
        if sys.stderr.isatty():
            text = f"Loading the model {fraction:4.0%}"
            self._shown = len(text)
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take it away before something else is written."""
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0


@contextmanager
def fetching(reference: str) -> Iterator["Callable[[FetchProgress], None]"]:
    """A progress bar for a download, drawn from its first report on; one line where there is no terminal."""
    bar = _Bar(reference)
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""

    def update(self, state: "FetchProgress") -> None:
        """Show one report."""
        if state.notice:
            note(state.notice)
        if sys.stderr.isatty():
            self._draw(state)
        elif state.stage != self._stage and state.stage in ("wait", "download"):
            size = f" ({state.total_bytes / 1e6:.0f} MB)" if state.stage == "download" else ""
            note(f"{_STAGES[state.stage]} {self._reference}{size}")
        self._stage = state.stage

    def _draw(self, state: "FetchProgress") -> None:
        if self._progress is None:
            self._progress = _progress_bar()
            self._progress.start()
        if state.stage != self._stage or self._task is None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task = self._progress.add_task(f"{_STAGES[state.stage]} {self._reference}", total=None)
        self._progress.update(self._task, completed=state.done_bytes, total=state.total_bytes or None)

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()


_STAGES = {"wait": "Another process is fetching", "download": "Fetching", "verify": "Checking", "unpack": "Unpacking"}


def _progress_bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
