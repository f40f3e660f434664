"""The terminal as the commands see it: what may be written to it, errors, progress."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from localinfer.errors import LocalInferError, StorageUnavailable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from localinfer.models.progress import FetchProgress

DIM, RED = "2", "1;31"
LOADING, READING = "Loading the model", "Reading the prompt"
PATIENCE_S = 0.7  # nobody wants to be told about a shorter wait

# Control characters a model or a file could use to command the terminal. Newline and tab stay.
_CONTROL = {code: None for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(code) not in "\n\t"}


def safe(text: str) -> str:
    """``text`` without characters that command a terminal."""
    return text.translate(_CONTROL)


def dumb() -> bool:
    """Whether the terminal understands no escape codes, as far as the environment says."""
    return os.environ.get("TERM", "" if os.name == "posix" else "console") in ("", "dumb", "unknown")


def has_styles(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that has styles, and the person wants them."""
    return stream.isatty() and not dumb() and not os.environ.get("NO_COLOR")


def _styled(text: str, style: str, stream: TextIO) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style and has_styles(stream) else text


def output_lost(error: OSError) -> StorageUnavailable:
    """The error for a standard output that takes nothing more."""
    return StorageUnavailable(
        f"Standard output cannot be written: {error.strerror or error}.", "Free some space, or send it elsewhere."
    )


class ReaderGone(Exception):
    """Whoever read our standard output has closed it: there is nobody left to write for."""


def write(text: str, style: str = "") -> None:
    """A piece of the answer to standard output, at once. Raises ``ReaderGone``."""
    write_drawn(_styled(safe(text), style, sys.stdout))


def write_drawn(text: str) -> None:
    """What was drawn for standard output, terminal codes and all: foreign text in it must be safe already. Raises
    ``ReaderGone``."""
    try:
        _put(sys.stdout, text)
    except BrokenPipeError as error:
        raise ReaderGone from error
    except OSError as error:
        raise output_lost(error) from error


def note(text: str) -> None:
    """A line for the person, on standard error."""
    _put(sys.stderr, safe(text) + "\n")


def ask(prompt: str) -> None:
    """A prompt on standard error: what is typed follows on the same line."""
    _put(sys.stderr, prompt)


def write_dim(text: str) -> None:
    """A piece of what the model thinks, on standard error."""
    _put(sys.stderr, _styled(safe(text), DIM, sys.stderr))


def styled_note(text: str) -> None:
    """A dim line on standard error."""
    write_dim(text)
    _put(sys.stderr, "\n")


def warn(text: str) -> None:
    """Something that is not as it should be, on standard error, in red where there are colours."""
    _put(sys.stderr, _styled(safe(text), RED, sys.stderr) + "\n")


def report(error: LocalInferError) -> None:
    """An error: what is wrong, and what to do."""
    hint = "".join(f"  {line}\n" for line in safe(error.hint).splitlines())
    _put(sys.stderr, f"{_styled('error:', RED, sys.stderr)} {safe(error.message)}\n{hint}")


def _put(stream: TextIO, text: str) -> None:
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:  # the terminal's encoding cannot spell it all
            stream.write(text.encode(stream.encoding, "replace").decode(stream.encoding))
        stream.flush()
    except OSError:
        if stream is not sys.stderr:  # what is said beside the answer must never cost the answer
            raise


class LoadLine:
    """What is being waited for, rewritten in place; a line for each thing where the terminal cannot rewrite; nothing
    where standard error is not a terminal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._shown = 0
        self._label = ""

    def show(self, fraction: float | None = None) -> None:
        """The model is being loaded, ``fraction`` (0 to 1) of it as far as is known."""
        self.clear()
        self._show(LOADING, fraction)

    def reading(self, fraction: float | None = None) -> None:
        """The prompt is being read, ``fraction`` of it. Not known: None; then it is said only after a while."""
        self.clear()
        if fraction is not None:
            self._show(READING, fraction)
        elif sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE_S, self._on_timer)
            self._timer.daemon = True
            self._timer.start()

    def clear(self) -> None:
        """Take it away before something else is written."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._shown:
                _put(sys.stderr, "\r" + " " * self._shown + "\r")
                self._shown = 0

    def _on_timer(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._show(READING, None)

    def _show(self, label: str, fraction: float | None) -> None:
        if not sys.stderr.isatty():
            return
        if not dumb():
            text = f"{label} ..." if fraction is None else f"{label} {fraction:4.0%}"
            _put(sys.stderr, "\r" + text)
            self._shown = len(text)
        elif label != self._label:
            note(f"{label} ...")
        self._label = label


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
        self._reference = safe(reference)
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""

    def update(self, state: "FetchProgress") -> None:
        """Show one report."""
        if state.notice:
            note(state.notice)
        if not state.total_bytes and not state.done_bytes:  # nothing but the notice
            return
        if sys.stderr.isatty() and not dumb():
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
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
