"""The processor's own sensors on Linux: how warm it is, and whether something slows it down.

Which files there are is found out once, at the first question. Other systems tell only an administrator.
"""

import contextlib
import re
from functools import cached_property

from localinfer.machine.sources import Sources

_HWMON = "/sys/class/hwmon"
_ZONES = "/sys/class/thermal"
_CPUS = "/sys/devices/system/cpu"

# Drivers of sensors inside processors, and the labels of the reading that stands for the whole of one, the best first.
# AMD's control value (Tctl) is raised on purpose on some models, its die temperature (Tdie) is not.
_DRIVERS = {
    "coretemp": ("Package id",),
    "k10temp": ("Tdie", "Tctl"),
    "zenpower": ("Tdie", "Tctl"),
    "cpu_thermal": (),
}
_CPU_ZONE = re.compile(r"x86_pkg_temp|(cpu|soc)[\w-]*thermal")
_COLDEST_C, _HOTTEST_C = -40.0, 150.0  # beyond these a sensor is broken
_CAPPED = 0.95  # of the highest frequency: less is a limit that somebody has set


class Processor:
    """The processor of ``sources``. One thread at a time."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._throttles: int | None = None

    def temperature_c(self) -> float | None:
        """The temperature of the processor, of the warmest where there are several."""
        return max((told for file in self._thermometers for told in self._celsius(file)), default=None)

    def slowed(self) -> str:
        """Why it is slower than it could be, in words. Heat is told where it struck since the last question."""
        before, self._throttles = self._throttles, sum(self._number(file) for file in self._counters)
        if before is not None and self._throttles > before:
            return "the processor is slowed down to stay cool"
        for policy in self._policies:
            limit, highest = (self._number(f"{policy}/{name}_max_freq") for name in ("scaling", "cpuinfo"))
            if 0 < limit < _CAPPED * highest:
                return f"the processor is limited to {limit / 1e6:.1f} of its {highest / 1e6:.1f} GHz"
        return ""

    @cached_property
    def _thermometers(self) -> list[str]:
        if self._sources.system != "linux":
            return []
        files = []
        for entry in self._sources.entries(_HWMON):
            labels = _DRIVERS.get(self._sources.read(f"{_HWMON}/{entry}/name").strip())
            if labels is not None:
                files += self._best(f"{_HWMON}/{entry}", labels)
        if not any(self._celsius(file) for file in files):
            zones = (f"{_ZONES}/{entry}" for entry in self._sources.entries(_ZONES))
            files = [
                f"{zone}/temp" for zone in zones if _CPU_ZONE.fullmatch(self._sources.read(f"{zone}/type").strip())
            ]
        return [file for file in files if self._celsius(file)]

    def _best(self, folder: str, labels: tuple[str, ...]) -> list[str]:
        inputs = [entry for entry in self._sources.entries(folder) if re.fullmatch(r"temp\d+_input", entry)]
        named = {entry: self._sources.read(f"{folder}/{entry.replace('input', 'label')}") for entry in inputs}
        for label in labels:
            if found := [f"{folder}/{entry}" for entry in inputs if named[entry].startswith(label)]:
                return found
        return [f"{folder}/{entry}" for entry in inputs[:1]]

    @cached_property
    def _counters(self) -> list[str]:
        """How often each package has been throttled for heat: one of its processors tells for all."""
        found: dict[str, str] = {}
        for entry in self._sources.entries(_CPUS) if self._sources.system == "linux" else ():
            file = f"{_CPUS}/{entry}/thermal_throttle/package_throttle_count"
            if re.fullmatch(r"cpu\d+", entry) and self._sources.read(file):
                found.setdefault(self._sources.read(f"{_CPUS}/{entry}/topology/physical_package_id"), file)
        return list(found.values())

    @cached_property
    def _policies(self) -> list[str]:
        """Where the frequency is limited; the first stands for all."""
        found = self._sources.entries(f"{_CPUS}/cpufreq") if self._sources.system == "linux" else []
        return [f"{_CPUS}/cpufreq/{entry}" for entry in found if entry.startswith("policy")][:1]

    def _celsius(self, file: str) -> list[float]:
        with contextlib.suppress(ValueError):
            degrees = int(self._sources.read(file)) / 1000
            return [degrees] if _COLDEST_C < degrees < _HOTTEST_C else []
        return []

    def _number(self, file: str) -> int:
        with contextlib.suppress(ValueError):
            return max(0, int(self._sources.read(file)))
        return 0
