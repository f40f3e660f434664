"""Apple Silicon: the chip, and how much of the unified memory its GPU may hold.

Metal alone knows the recommended working set; where no installed build has asked it, the share is taken from a table of
what was observed.
"""

import contextlib
import re
from itertools import pairwise

from localinfer.machine import bandwidth
from localinfer.machine.sources import Sources, plain
from localinfer.machine.values import Device

GIB = 2**30
ID = "Metal"

_FEATURES = {
    "hw.optional.neon": "neon",
    "hw.optional.AdvSIMD": "neon",
    "hw.optional.arm.FEAT_FP16": "fp16",
    "hw.optional.arm.FEAT_DotProd": "dotprod",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
    "hw.optional.arm.FEAT_BF16": "bf16",
    "hw.optional.arm.FEAT_SME": "sme",
    "hw.optional.sse4_2": "sse4_2",
    "hw.optional.avx1_0": "avx",
    "hw.optional.avx2_0": "avx2",
    "hw.optional.f16c": "f16c",
    "hw.optional.fma": "fma",
    "hw.optional.bmi2": "bmi2",
    "hw.optional.avx512f": "avx512f",
}
_NAMES = ("hw.memsize", "machdep.cpu.brand_string", "kern.osproductversion", "iogpu.wired_limit_mb", *_FEATURES)

SYSCTL = ("/usr/sbin/sysctl", *_NAMES)
PROFILER = ("/usr/sbin/system_profiler", "SPDisplaysDataType")
REGISTRY = ("/usr/sbin/ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")

# GiB of memory and the recommended share on macOS 26, as logged by users' programs. The chip makes no difference.
_SHARES = ((8, 0.667), (16, 0.74), (24, 0.74), (32, 0.78), (64, 0.81), (128, 0.84))
# Before macOS 26: two thirds up to 36 GB, three quarters above.
_OLD_SHARE, _OLD_LARGE_SHARE, _OLD_LARGE_GIB = 2 / 3, 3 / 4, 36
_NEW_SHARES_SINCE = 26


def sysctl(sources: Sources) -> dict[str, str]:
    """The kernel's variables that are looked at; those it does not know are missing."""
    told: dict[str, str] = {}
    for line in sources.run(*SYSCTL).splitlines():
        name, colon, value = line.partition(": ")
        if colon and name in _NAMES:
            told[name] = value.strip()
    return told


def features(told: dict[str, str]) -> set[str]:
    """The processor's features among what ``sysctl`` told."""
    return {feature for name, feature in _FEATURES.items() if told.get(name) == "1"}


def gpu(sources: Sources, available_bytes: int, recommended_bytes: int | None = None) -> Device | None:
    """The GPU of an Apple chip; None on another machine.

    ``available_bytes`` is the machine's memory that is free, ``recommended_bytes`` the working set that a build has
    been told by Metal.
    """
    if sources.system != "macos":
        return None
    told = sysctl(sources)
    chip = plain(told.get("machdep.cpu.brand_string", ""))
    if not chip.startswith("Apple"):
        return None
    limit_bytes = _number(told.get("iogpu.wired_limit_mb")) * 2**20
    memory_bytes = _number(told.get("hw.memsize")) or sources.memory()[0]
    total_bytes = recommended_bytes or limit_bytes or working_set_bytes(memory_bytes, told.get("kern.osproductversion"))
    cores = _gpu_cores(sources) if bandwidth.depends_on_cores(chip) else None
    speed = bandwidth.of_chip(chip, cores)
    return Device(
        id=ID,
        name=chip,
        kind="gpu",
        total_bytes=total_bytes,
        free_bytes=min(total_bytes, available_bytes),
        bandwidth=speed,
        bandwidth_source="table" if speed else "",
        shares_ram=True,
        gpu_cores=cores,
        wired_limit_bytes=limit_bytes or None,
    )


def gpu_use(sources: Sources) -> tuple[float | None, int | None]:
    """How busy the GPU of an Apple chip is, 0 to 1, and the bytes of memory it holds, as its driver tells everybody."""
    told = sources.run(*REGISTRY)
    busy = re.search(r'"Device Utilization %"\s*=\s*(\d{1,3})\b', told)
    held = re.search(r'"In use system memory"\s*=\s*(\d{1,15})\b', told)
    return min(1.0, int(busy[1]) / 100) if busy else None, int(held[1]) if held else None


def working_set_bytes(memory_bytes: int, version: str | None = None) -> int:
    """What Metal recommends at most to hold of ``memory_bytes``, as far as is known for macOS ``version``."""
    size = memory_bytes / GIB
    if _number((version or "").partition(".")[0]) < _NEW_SHARES_SINCE:
        return int(memory_bytes * (_OLD_LARGE_SHARE if size > _OLD_LARGE_GIB else _OLD_SHARE))
    share = _SHARES[0][1] if size < _SHARES[0][0] else _SHARES[-1][1]
    for (low, least), (high, most) in pairwise(_SHARES):
        if low <= size <= high:
            share = least + (most - least) * (size - low) / (high - low)
    return int(memory_bytes * share)


def _gpu_cores(sources: Sources) -> int | None:
    found = re.search(r"Total Number of Cores: *(\d{1,4})\b", sources.run(*PROFILER))
    return int(found[1]) if found else None


def _number(text: str | None) -> int:
    with contextlib.suppress(ValueError):
        return max(0, int(text or 0))
    return 0
