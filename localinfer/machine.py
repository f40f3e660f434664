"""What this machine is: the graphics cards its driver reports, and the memory that is free.

It asks drivers, never the inference libraries, so that it can say when a build cannot use what is there.
"""

import contextlib
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from localinfer.types import Value


class NvidiaGpu(Value, frozen=True):
    """One NVIDIA card as its driver reports it. ``compute_capability`` is as in "8.6"."""

    name: str
    total_bytes: int
    free_bytes: int
    compute_capability: str
    driver: str


def nvidia_gpus(nvml: Any = None) -> tuple[NvidiaGpu, ...]:
    """Every NVIDIA card; none when there is no driver. ``nvml`` stands in for the ``pynvml`` module."""
    if nvml is None:
        nvml = import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        return tuple(_gpu(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError:
        return ()
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _gpu(nvml: Any, index: int, driver: str) -> NvidiaGpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return NvidiaGpu(
        name=_text(nvml.nvmlDeviceGetName(handle)),
        total_bytes=int(memory.total),
        free_bytes=int(memory.free),
        compute_capability=f"{major}.{minor}",
        driver=driver,
    )


def _text(value: str | bytes) -> str:
    """Older drivers answer in bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def available_memory_bytes() -> int:
    """Memory that can be used now without swapping, within the limit of this process's cgroup (version 2)."""
    available = int(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or "max"
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        return min(available, max(0, limit - used))
    return available
