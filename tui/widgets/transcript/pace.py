"""When to draw: many small changes become few frames, and frames that are costly become fewer still."""

import time
from collections.abc import Callable

from textual.timer import Timer
from textual.widget import Widget

FRAME_S = 0.05
SHARE = 8  # after a frame nothing is drawn for this many times what it cost: an eighth of a core at most


class Pace:
    """Calls ``draw`` once for all calls of `ask` since the last time, at most every 50 ms."""

    def __init__(self, widget: Widget, draw: Callable[[], None]) -> None:
        self._widget = widget
        self._draw = draw
        self._timer: Timer | None = None
        self._not_before_s = 0.0

    def ask(self) -> None:
        """Something is to be drawn."""
        if self._timer is None and self._widget.is_mounted:
            self._timer = self._widget.set_timer(max(0.001, self._not_before_s - time.monotonic()), self._frame)

    def _frame(self) -> None:
        self._timer = None
        started_s = time.thread_time()
        self._not_before_s = time.monotonic() + FRAME_S
        self._draw()
        self._widget.call_after_refresh(self._painted, started_s)

    def _painted(self, started_s: float) -> None:
        cost_s = time.thread_time() - started_s
        self._not_before_s = max(self._not_before_s, time.monotonic() + SHARE * cost_s)
