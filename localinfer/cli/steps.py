"""A bar for work that is counted in steps, on standard error; where that is no terminal, a line for each thing done."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from localinfer.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Steps:
    """What is being done and how far it is."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._label = ""

    def show(self, label: str, done: int, total: int) -> None:
        """``done`` of ``total`` steps; ``label`` says what is being done now."""
        label = console.safe(label)
        if not sys.stderr.isatty() or console.dumb():
            if label != self._label:
                console.note(label)
        else:
            self._draw(label, done, total)
        self._label = label

    def close(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _draw(self, label: str, done: int, total: int) -> None:
        if self._progress is None or self._task is None:
            self._progress = _bar()
            self._task = self._progress.add_task(label, total=total)
            self._progress.start()
        self._progress.update(self._task, description=label, completed=done, total=total)


@contextmanager
def steps() -> Iterator[Steps]:
    """A bar, drawn from its first step on, and gone after the block."""
    bar = Steps()
    try:
        yield bar
    finally:
        bar.close()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
