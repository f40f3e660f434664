"""How far fetching has come, and how fast it goes.

Knows bytes and a clock that never goes back; it does not know what is fetched, nor how it is shown.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, TypeVar

from localinfer.types import Value

Stage = Literal["wait", "download", "unpack", "verify"]

T = TypeVar("T")

_WINDOW_S = 5.0
_LEAST_S = 0.5


class Stopped(Exception):
    """The person stopped it. No error: what has arrived is kept."""


def stoppable(progress: Callable[[T], None], cancelled: threading.Event) -> Callable[[T], None]:
    """``progress``, but it raises ``Stopped`` once ``cancelled`` is set."""

    def report(state: T) -> None:
        if cancelled.is_set():
            raise Stopped
        progress(state)

    return report


class FetchProgress(Value, frozen=True):
    """How far fetching has come, in bytes of the current stage. ``wait``: another process is fetching the same model.

    ``bytes_per_s`` is the speed of the last seconds and ``eta_s`` the time left at that speed; None where it cannot be
    told. ``notice`` is something the person should know; it is set once.
    """

    done_bytes: int
    total_bytes: int
    stage: Stage
    notice: str = ""
    bytes_per_s: float | None = None
    eta_s: float | None = None


class Pace:
    """Speed over the last seconds. Bytes that were there before are no speed: they are in the first sample."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque()

    def at(self, done_bytes: int, total_bytes: int, stage: Stage, notice: str = "") -> FetchProgress:
        """The progress now that ``done_bytes`` are there."""
        now = self._clock()
        samples = self._samples
        if samples and done_bytes < samples[-1][1]:  # something is fetched again
            samples.clear()
        samples.append((now, done_bytes))
        while len(samples) > 2 and samples[1][0] <= now - _WINDOW_S:
            samples.popleft()
        since, before = samples[0]
        speed = (done_bytes - before) / (now - since) if now - since >= _LEAST_S else None
        left = (total_bytes - done_bytes) / speed if speed else None
        return FetchProgress(
            done_bytes=done_bytes, total_bytes=total_bytes, stage=stage, notice=notice, bytes_per_s=speed, eta_s=left
        )
