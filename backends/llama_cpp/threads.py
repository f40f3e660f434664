"""How many threads to compute with: as many as there are cores free now, re-chosen as other programs come and go.

ggml's threads wait for each other at every operation, so one thread too many on a busy machine costs half the speed.
"""

import time

import psutil

from localinfer.machine import usable_cores, usable_cpus

EVERY_S = 0.25
SLACK = 0.1  # cores by which the measure must pass the middle between two counts before the count changes


class FreeCores:
    """Follows the cores that other programs leave free.

    ``limit`` is the most threads to use; ``cores`` is how many there are for us and the others, if not all that this
    process may run on.
    """

    def __init__(self, limit: int, cores: int | None = None) -> None:
        self.limit = limit
        self.threads = limit
        self._cores = usable_cores() if cores is None else cores
        self._before = limit
        self._at_s, self._busy_s, self._own_s = _sample()

    def poll(self) -> int:
        """The thread count to use now; measures at most every ``EVERY_S`` seconds."""
        if time.monotonic() - self._at_s < EVERY_S:
            return self.threads
        at_s, busy_s, own_s = _sample()
        others = (busy_s - self._busy_s) - (own_s - self._own_s)
        elapsed_s = at_s - self._at_s
        self._at_s, self._busy_s, self._own_s = at_s, busy_s, own_s
        return self.settle(max(0.0, others) / elapsed_s)

    def settle(self, others: float) -> int:
        """Take in that ``others`` cores' worth of work ran elsewhere; the thread count to use now.

        It falls at once, and rises only as far as two measures in a row agree.
        """
        wanted = self._wanted(self._cores - others)
        self.threads = wanted if wanted < self.threads else max(self.threads, min(wanted, self._before))
        self._before = wanted
        return self.threads

    def _wanted(self, free: float) -> int:
        """The count nearest to ``free`` cores, or the present one where it is about as near."""
        if abs(free - self.threads) <= 0.5 + SLACK:
            return self.threads
        return max(1, min(self.limit, round(free)))


def _sample() -> tuple[float, float, float]:
    """Now, busy seconds so far of the cores this process may run on, and seconds of this process so far."""
    usable = usable_cpus()
    busy = 0.0
    for core, times in enumerate(psutil.cpu_times(percpu=True)):
        if core in usable:
            # Guest time, the last fields, is counted in user time already.
            busy += sum(times[:8]) - times.idle - getattr(times, "iowait", 0.0)
    return time.monotonic(), busy, time.process_time()
