"""Which conversation each running application has open, so that one that was killed can go on where it was.

A file per process in the state folder: there while the application runs, taken away when it is left. It knows numbers
of processes and conversations only.
"""

import contextlib
import os

import psutil

from localinfer import kept, settings
from localinfer.types import Value


class _Mark(Value, frozen=True):
    """``started_s`` tells the process from a later one with the same number."""

    pid: int
    started_s: float
    conversation: int | None = None


class Session:
    """This process's mark."""

    def __init__(self) -> None:
        self._folder = settings.state_dir() / "sessions"
        self._path = self._folder / f"{os.getpid()}.json"
        self._started_s = psutil.Process().create_time()

    def mark(self, conversation: int | None) -> None:
        """``conversation`` is open now."""
        kept.save(self._path, _Mark(pid=os.getpid(), started_s=self._started_s, conversation=conversation))

    def close(self) -> None:
        """The application is left as it should be."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def left_behind(self) -> int | None:
        """The conversation of an application that was killed, the latest if there are several; told once."""
        found: list[tuple[float, int]] = []
        with contextlib.suppress(OSError):
            for path in self._folder.glob("*.json"):
                mark = kept.load(path, _Mark, None)
                if mark is not None and _lives(mark):
                    continue
                if mark is not None and mark.conversation is not None:
                    found.append((path.stat().st_mtime, mark.conversation))
                path.unlink(missing_ok=True)
        return max(found)[1] if found else None


def _lives(mark: _Mark) -> bool:
    try:
        return abs(psutil.Process(mark.pid).create_time() - mark.started_s) < 1
    except psutil.Error:
        return False
