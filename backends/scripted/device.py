"""The device that a script runs on: what its passes take, and the clock that they take it from."""

import time
from bisect import bisect_left
from collections.abc import Mapping
from typing import Protocol

# Relative times of a pass over so many rows: a 0.5B model on two CPU cores, a card that is busy reading weights, and a
# device on which rows cost nothing.
CURVES: Mapping[str, str] = {
    "cpu": "1:1,2:1.8,3:2.2,4:2.4,6:3.7,8:4.1,12:5.8,16:6.6,32:10.9",
    "gpu": "1:1,8:1.1,32:1.4,64:2",
    "flat": "1:1,2:1",
}
_POINT = r"[1-9]\d{0,3}:\d{1,4}(\.\d{1,6})?"
CURVE_PATTERN = rf"^({'|'.join(CURVES)}|1:1(\.0)?(,{_POINT})*)$"


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Seconds since some instant."""

    def spend(self, seconds: float) -> None:
        """Let so many seconds, more than 0, pass."""


class WallClock:
    """The ``Clock`` of everybody else; time is spent asleep."""

    def now(self) -> float:
        return time.perf_counter()

    def spend(self, seconds: float) -> None:
        time.sleep(seconds)


class Device:
    """``pace_s`` is what a pass over one row takes. ``curve`` is a name of ``CURVES`` or points as ``1:1,8:4.5``: rows
    and what a pass over them takes relative to one row, straight between the points and on after the last one."""

    def __init__(self, pace_s: float, curve: str, clock: Clock) -> None:
        points = (point.split(":") for point in CURVES.get(curve, curve).split(","))
        self._known = sorted({0: 0.0, **{int(rows): float(relative) for rows, relative in points}}.items())
        self._pace_s = pace_s
        self._clock = clock

    def seconds(self, rows: int) -> float:
        """What a pass over ``rows`` takes."""
        return self._pace_s * self.relative(rows)

    def relative(self, rows: int) -> float:
        """The same, to a pass over one row."""
        known = self._known
        after = min(bisect_left(known, rows, key=lambda point: point[0]), len(known) - 1)
        (x0, y0), (x1, y1) = known[max(after - 1, 0)], known[max(after, 1)]
        return max(0.0, y0 + (y1 - y0) * (rows - x0) / (x1 - x0))

    def now(self) -> float:
        """Seconds since some instant."""
        return self._clock.now()

    def spend(self, seconds: float) -> float:
        """Work for so long; what it took by the clock."""
        if seconds <= 0:  # sleeping for no time at all still gives the processor away
            return 0.0
        begun = self._clock.now()
        self._clock.spend(seconds)
        return self._clock.now() - begun
