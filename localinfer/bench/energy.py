"""Energy that the machine's own meters have counted: RAPL on Linux, NVML for NVIDIA cards, powermetrics on macOS.

They count everything on the chip, whoever uses it. Linux and macOS tell an administrator only; what is not told is
None.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from typing import Protocol, Self

from localinfer.external import running
from localinfer.machine import Sources
from localinfer.machine.nvidia import NvidiaWatch

_ZONES = "/sys/class/powercap"
_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?")  # AMD's driver uses the same name
_PART = re.compile(r"package-\d+|dram")  # not psys and core: they are counted in others

POWERMETRICS = ("/usr/bin/powermetrics", "-i", "200", "--samplers", "cpu_power,gpu_power")
_ELAPSED = re.compile(r"\*\*\* Sampled system activity .*\((\d+(?:\.\d+)?)ms elapsed\)")
_COMBINED = re.compile(r"Combined Power \(.*\):\s*(\d+(?:\.\d+)?) mW")


class Meter(Protocol):
    """Counts joules."""

    def joules(self) -> float | None:
        """Joules since some moment that stays the same; None where it cannot be read."""

    def close(self) -> None:
        """Let go of it."""


class Energy:
    """All meters of this machine together, from ``__enter__`` to ``__exit__``."""

    def __init__(self, sources: Sources | None = None) -> None:
        self._sources = sources or Sources()
        self._meters: list[Meter] = []

    def __enter__(self) -> Self:
        meters: list[Meter] = [Rapl(self._sources), Nvml(self._sources)]
        if self._sources.system == "macos" and hasattr(os, "geteuid") and os.geteuid() == 0:
            meters.append(PowerMetrics())
        for meter in meters:
            if meter.joules() is None:
                meter.close()
            else:
                self._meters.append(meter)
        return self

    def __exit__(self, *exc: object) -> None:
        for meter in self._meters:
            meter.close()
        self._meters.clear()

    def joules(self) -> float | None:
        """Joules so far by all meters; None where there is none, or one has failed."""
        counts = [meter.joules() for meter in self._meters]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None


class Rapl:
    """The counters of Linux for processors and their memory. They begin again at a highest value."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        zones = sources.entries(_ZONES) if sources.system == "linux" else []
        folders = (f"{_ZONES}/{zone}" for zone in zones if _ZONE.fullmatch(zone))
        named = (folder for folder in folders if _PART.fullmatch(sources.read(f"{folder}/name").strip()))
        self._last = {folder: value for folder in named if (value := self._microjoules(folder)) is not None}
        self._counted = 0.0

    def joules(self) -> float | None:
        for folder, last in self._last.items():
            now = self._microjoules(folder)
            if now is None:
                return None
            if now < last:
                now_range = self._number(f"{folder}/max_energy_range_uj") or 0
                self._counted += now + max(0, now_range - last)
            else:
                self._counted += now - last
            self._last[folder] = now
        return self._counted / 1e6 if self._last else None

    def close(self) -> None:
        self._last.clear()

    def _microjoules(self, folder: str) -> int | None:
        return self._number(f"{folder}/energy_uj")

    def _number(self, path: str) -> int | None:
        with contextlib.suppress(ValueError):
            return max(0, int(self._sources.read(path)))
        return None


class Nvml:
    """The counters of NVIDIA's cards since their driver was loaded; those of a card that has none are missing."""

    def __init__(self, sources: Sources) -> None:
        self._cards = NvidiaWatch(sources.nvml)

    def joules(self) -> float | None:
        counts = [count for count in self._cards.joules() if count is not None]
        return sum(counts) if counts else None

    def close(self) -> None:
        self._cards.close()


class PowerMetrics:
    """macOS's own command, which writes the mean power of every fifth of a second: processor, GPU and neural engine."""

    def __init__(self, command: tuple[str, ...] = POWERMETRICS) -> None:
        self._counted = 0.0
        self._ended = threading.Event()
        self._usable = True
        self._thread = threading.Thread(target=self._run, args=(command,), name="powermetrics", daemon=True)
        self._thread.start()

    def joules(self) -> float | None:
        return self._counted if self._usable else None

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self, command: tuple[str, ...]) -> None:
        try:
            with running(command, os.environ) as child:
                for counted in integrated(self._until_ended(child.lines())):
                    self._counted = counted
        except OSError:
            pass
        self._usable = self._ended.is_set()

    def _until_ended(self, lines: Iterator[str | None]) -> Iterator[str]:
        for line in lines:
            if self._ended.is_set():
                return
            if line is not None:
                yield line


def integrated(lines: Iterator[str]) -> Iterator[float]:
    """Joules so far after each sample in the output of powermetrics: Σ power × time."""
    joules = elapsed_s = 0.0
    for line in lines:
        if found := _ELAPSED.search(line):
            elapsed_s = float(found[1]) / 1e3
        elif found := _COMBINED.search(line):
            joules += float(found[1]) / 1e3 * elapsed_s
            elapsed_s = 0.0
            yield joules
