"""Where the machine's power comes from, and whether something slows it down now.

The counters of past throttling are left alone: they say nothing about now, and every laptop has some.
"""

import contextlib
import re
from typing import Literal

from localinfer.machine.sources import Sources
from localinfer.machine.values import Power

Source = Literal["mains", "battery"] | None

THERMAL = ("/usr/bin/pmset", "-g", "therm")

_SUPPLIES = "/sys/class/power_supply"
_COOLING = "/sys/class/thermal"


def power(sources: Sources, throttled_gpu: str = "") -> Power:
    """Power source, battery and throttling. ``throttled_gpu`` is what a GPU's driver says, in words."""
    source, percent = _linux(sources) if sources.system == "linux" else _battery(sources)
    return Power(source=source, battery_percent=percent, throttled=_throttled(sources) or throttled_gpu)


def _battery(sources: Sources) -> tuple[Source, float | None]:
    percent, plugged = sources.battery() or (None, None)
    if plugged is None:
        return None, percent
    return "mains" if plugged else "battery", percent


def _linux(sources: Sources) -> tuple[Source, float | None]:
    """The batteries of the machine itself: a mouse's has the scope "Device"."""
    statuses, percents, mains = [], [], []
    for name in sources.entries(_SUPPLIES):
        folder = f"{_SUPPLIES}/{name}"
        kind = sources.read(f"{folder}/type").strip()
        if kind == "Battery" and sources.read(f"{folder}/scope").strip() != "Device":
            statuses.append(sources.read(f"{folder}/status").strip())
            percents += _percent(sources.read(f"{folder}/capacity"))
        elif kind in ("Mains", "USB"):
            mains.append(sources.read(f"{folder}/online").strip() == "1")
    percent = sum(percents) / len(percents) if percents else None
    if any(mains):
        return "mains", percent
    if "Discharging" in statuses:
        return "battery", percent
    return ("mains" if statuses and set(statuses) <= {"Charging", "Full", "Not charging"} else None), percent


def _percent(text: str) -> list[float]:
    with contextlib.suppress(ValueError):
        return [float(min(100, max(0, int(text))))]
    return []


def _throttled(sources: Sources) -> str:
    if sources.system == "macos":
        limit = re.search(r"CPU_Speed_Limit\s*=\s*(\d{1,3})\b", sources.run(*THERMAL))
        if limit and int(limit[1]) < 100:
            return f"the processor runs at {limit[1]} % of its speed to stay cool"
    if sources.system == "linux":
        for name in sources.entries(_COOLING):
            folder = f"{_COOLING}/{name}"
            if name.startswith("cooling_device") and sources.read(f"{folder}/type").strip() == "Processor":
                state = sources.read(f"{folder}/cur_state").strip()
                if state.isdecimal() and int(state) > 0:
                    return "the processor is slowed down to stay cool"
        if sources.read("/sys/firmware/acpi/platform_profile").strip() == "low-power":
            return "the system's power profile is “low-power”"
    return ""
