"""The processor: its name, the cores this process may use, and the features that matter to inference."""

import platform

from localinfer.machine import apple, cgroups
from localinfer.machine.sources import HERE, Sources, plain
from localinfer.machine.values import Cpu

FEATURES = (
    *("sse4_2", "avx", "avx2", "f16c", "fma", "bmi2", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512_vbmi"),
    *("avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"),
    *("neon", "fp16", "dotprod", "i8mm", "bf16", "sve", "sve2", "sme"),
)

# What Linux calls otherwise.
_LINUX = {"avx512vbmi": "avx512_vbmi", "asimd": "neon", "asimdhp": "fp16", "asimddp": "dotprod"}
# Numbers of IsProcessorFeaturePresent; every processor with AVX2 has F16C, FMA and BMI2.
_WINDOWS = {
    38: ("sse4_2",),
    39: ("avx",),
    40: ("avx2", "f16c", "fma", "bmi2"),
    41: ("avx512f",),
    19: ("neon",),
    43: ("dotprod",),
}
_WINDOWS_KEY = r"HKLM\HARDWARE\DESCRIPTION\System\CentralProcessor\0"


def cpu(sources: Sources = HERE) -> Cpu:
    """The processor of this machine."""
    name, features = _ASK[sources.system](sources)
    return Cpu(
        name=plain(name) or platform.machine() or "CPU",
        cores=available_cores(sources),
        features=tuple(feature for feature in FEATURES if feature in features),
    )


def available_cores(sources: Sources = HERE) -> int:
    """Physical cores' worth of work this process may do: affinity and cgroup quota respected."""
    return max(1, min(usable_cores(sources), round(cgroups.cpu_quota(sources))))


def usable_cores(sources: Sources = HERE) -> int:
    """Physical cores this process may run on."""
    physical, usable = sources.cores()
    return min(usable, physical or usable)


def _linux(sources: Sources) -> tuple[str, set[str]]:
    fields: dict[str, str] = {}
    for line in sources.read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    words = f"{fields.get('flags', '')} {fields.get('Features', '')}".split()
    board = sources.read("/sys/firmware/devicetree/base/model").rstrip("\0")  # Arm boards name no processor
    return fields.get("model name") or board, {_LINUX.get(word, word) for word in words}


def _macos(sources: Sources) -> tuple[str, set[str]]:
    told = apple.sysctl(sources)
    return told.get("machdep.cpu.brand_string", ""), apple.features(told)


def _windows(sources: Sources) -> tuple[str, set[str]]:
    answer = sources.run("reg", "query", _WINDOWS_KEY, "/v", "ProcessorNameString")
    name = answer.partition("REG_SZ")[2].strip()
    return name, {word for number, words in _WINDOWS.items() if sources.processor_feature(number) for word in words}


_ASK = {"linux": _linux, "macos": _macos, "windows": _windows}
