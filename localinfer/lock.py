"""A lock between processes that the system itself releases when its owner dies, however it dies.

Knows a path and nothing of what it guards. The file stays behind: removing it would let two owners hold two files.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_POLL_S = 0.2


@contextmanager
def try_exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock at ``path`` for the block, if nobody else does: yields whether it is held. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        yield _try_lock(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock at ``path`` for the block; ``waiting`` is called several times a second until it is free."""
    while True:
        with try_exclusive(path) as held:
            if held:
                yield
                return
        waiting()
        time.sleep(_POLL_S)
