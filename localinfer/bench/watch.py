"""What may spoil a measurement while it runs: other programs, heat, a battery. It looks, and stops nothing.

It reads the machine's pulse once in a while, on a thread of its own, and takes off what the measured processes use.
"""

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import psutil

from localinfer.machine import Pulse, PulseReader, Sources, short, usable_cpus
from localinfer.machine.cgroups import cpu_quota

EVERY_S = 1.0
SETTLE_S = 0.6  # the kernel counts time in hundredths: enough to see a tenth
BUSY = 0.10  # of the processor, by other programs: less is hardly seen in the figures
_GPU_BUSY = 0.10

Interval = tuple[float, float]  # two instants of ``time.monotonic``


class Look(NamedTuple):
    """What was seen of the time from ``start_s`` to ``end_s``. ``others`` is the share of the processor, 0 to 1, that
    was used by programs that are not measured; None where the system does not tell."""

    start_s: float
    end_s: float
    others: float | None
    power: str


class Watch:
    """Watches this machine from ``__enter__`` to ``__exit__``."""

    def __init__(self, sources: Sources | None = None, reader: PulseReader | None = None) -> None:
        sources = sources or Sources()
        self._reader = reader or PulseReader(sources=sources)
        self._cores = min(float(len(usable_cpus())), cpu_quota(sources))
        self._measured: set[int] = {psutil.Process().pid}
        self._looks: list[Look] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bench-watch", daemon=True)
        self._last: tuple[float, dict[int, float]] | None = None
        self._pulse: Pulse | None = None

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()
        self._reader.close()

    def measures(self, pid: int | None) -> None:
        """Process ``pid`` is measured: what it uses is not another program's."""
        if pid is None:
            return
        with self._lock:
            self._measured.add(pid)
            if self._last is not None:  # what it used before is not of the time since the last look
                self._last[1].setdefault(pid, _used_s(pid) or 0.0)

    def settle(self) -> tuple[str, ...]:
        """Look at the machine at rest for ``SETTLE_S``; what is wrong with it before anything is measured."""
        start_s = time.monotonic()
        self._ended.wait(SETTLE_S)
        found = list(self.marks([(start_s, time.monotonic())]))
        with self._lock:
            gpus = self._pulse.gpus if self._pulse else ()
        found += [f"the {short(gpu.name)} is busy ({gpu.load:.0%})" for gpu in gpus if (gpu.load or 0) > _GPU_BUSY]
        return tuple(found)

    def marks(self, intervals: Sequence[Interval]) -> tuple[str, ...]:
        """What was wrong in ``intervals``, in words; nothing where all was well, or nothing is told."""
        self._look()
        with self._lock:
            looks = list(self._looks)
        return judge(looks, intervals)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        """Take the pulse, unless the last was a moment ago: the kernel counts time in hundredths."""
        with self._lock:
            now_s = time.monotonic()
            if self._last is not None and now_s - self._last[0] < EVERY_S / 2:
                return
            self._pulse = pulse = self._reader.take()
            own = {pid: used for pid in self._measured if (used := _used_s(pid)) is not None}
            if self._last is not None:
                start_s, before = self._last
                ours = sum(used - before.get(pid, 0.0) for pid, used in own.items())
                share = ours / ((now_s - start_s) * self._cores)
                others = None if pulse.cpu_load is None else max(0.0, pulse.cpu_load - share)
                self._looks.append(Look(start_s, now_s, others, _power(pulse)))
            self._last = now_s, own


def judge(looks: Iterable[Look], intervals: Sequence[Interval]) -> tuple[str, ...]:
    """What ``looks`` say of ``intervals``: the mean load of others above ``BUSY``, and every trouble with power."""
    weights: list[tuple[float, float]] = []
    power: dict[str, None] = {}
    for look in looks:
        shared = sum(max(0.0, min(end, look.end_s) - max(start, look.start_s)) for start, end in intervals)
        if shared <= 0:
            continue
        if look.others is not None:
            weights.append((shared, look.others))
        if look.power:
            power[look.power] = None
    total = sum(weight for weight, _ in weights)
    busy = sum(weight * others for weight, others in weights) / total if total else 0.0
    return (*([f"other programs used {busy:.0%} of the processor"] if busy > BUSY else []), *power)


def _power(pulse: Pulse) -> str:
    if pulse.power.throttled:
        return pulse.power.throttled
    return "the machine runs on its battery" if pulse.power.source == "battery" else ""


def _used_s(pid: int) -> float | None:
    with contextlib.suppress(psutil.Error):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return None
