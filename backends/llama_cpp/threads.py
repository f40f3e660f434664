"""How many threads to compute with: as many as there are cores free now, re-chosen as other programs come and go.

ggml's threads wait for each other at every operation, so one thread too many on a busy machine costs half the speed.
"""

import os
import time
from pathlib import Path

import psutil

EVERY_S = 0.25
_PATIENCE = 2  # samples that must agree before a change upwards


class FreeCores:
    """Follows the cores that other programs leave free. ``limit`` is the most threads to use."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.threads = limit
        self._wanted = limit
        self._agreed = 0
        self._at_s, self._busy_s, self._own_s = _sample()

    def poll(self) -> int:
        """The thread count to use now; measures at most every ``EVERY_S`` seconds."""
        if time.monotonic() - self._at_s < EVERY_S:
            return self.threads
        at_s, busy_s, own_s = _sample()
        elapsed_s = max(at_s - self._at_s, 1e-3)
        others = max(0.0, (busy_s - self._busy_s) - (own_s - self._own_s)) / elapsed_s
        self._at_s, self._busy_s, self._own_s = at_s, busy_s, own_s
        return self.settle(others)

    def settle(self, others: float) -> int:
        """Take in that ``others`` cores' worth of work ran elsewhere; the thread count to use now."""
        wanted = max(1, min(self.limit, round(self.limit - others)))
        self._agreed = self._agreed + 1 if wanted == self._wanted else 1
        self._wanted = wanted
        if wanted < self.threads or self._agreed >= _PATIENCE:
            self.threads = wanted
        return self.threads


def available_cores() -> int:
    """Physical cores this process may use: affinity and cgroup quota respected."""
    logical = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    physical = psutil.cpu_count(logical=False) or logical
    return max(1, min(logical, physical, _quota()))


def _quota() -> int:
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):
        return 1 << 16


def _sample() -> tuple[float, float, float]:
    """Now, seconds of busy cores of the whole machine so far, and seconds of this process so far."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    total = sum(times[:8])  # guest time is counted in user time already
    own = os.times()
    return time.monotonic(), total - idle, own.user + own.system
