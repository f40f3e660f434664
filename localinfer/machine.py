"""What this machine is: the graphics cards its driver reports, and the memory that is free.

It asks drivers, never the inference libraries, so that it can say when a build cannot use what is there. What a build
sees, its probe tells as a ``Build``.
"""

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from localinfer.errors import BackendUnavailable
from localinfer.types import Value

UNKNOWN = "?"


class NvidiaGpu(Value, frozen=True):
    """One NVIDIA card as its driver reports it. ``compute_capability`` is as in "8.6".

    What the driver does not say is "?" or None: a card that shares the machine's memory has no memory of its own.
    """

    name: str
    total_bytes: int | None
    free_bytes: int | None
    compute_capability: str
    driver: str


class Device(Value, frozen=True):
    """A device an inference library can compute on. ``kind`` is CPU, GPU, integrated GPU, accelerator or other.

    Memory is 0 where the library's driver does not say.
    """

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int


class Build(Value, frozen=True):
    """What the installed build of an inference library says of itself, on this machine.

    ``system_info`` is the library's own line about what it uses of the processor; ``cores`` is how many it may use.
    """

    version: str
    system_info: str
    gpu_offload: bool
    cores: int
    devices: tuple[Device, ...]


def nvidia_gpus(nvml: Any = None) -> tuple[NvidiaGpu, ...]:
    """Every NVIDIA card; none when there is no driver. ``nvml`` stands in for the ``pynvml`` module.

    Raises ``BackendUnavailable`` when a driver is installed and does not answer.
    """
    if nvml is None:
        nvml = import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED):
            return ()
        raise _silent(error) from error
    try:
        driver = str(_told(nvml, UNKNOWN, lambda: _text(nvml.nvmlSystemGetDriverVersion())))
        return tuple(_gpu(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        raise _silent(error) from error
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _gpu(nvml: Any, index: int, driver: str) -> NvidiaGpu:
    """The card at ``index``, of which the driver may not want to tell everything, or anything."""
    handle = _told(nvml, None, lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    memory = _told(nvml, None, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    capability = _told(nvml, None, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return NvidiaGpu(
        name=_told(nvml, f"NVIDIA GPU {index}", lambda: _text(nvml.nvmlDeviceGetName(handle))),
        total_bytes=int(memory.total) if memory else None,
        free_bytes=int(memory.free) if memory else None,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else UNKNOWN,
        driver=driver,
    )


def _told(nvml: Any, otherwise: Any, question: Callable[[], Any]) -> Any:
    try:
        return question()
    except nvml.NVMLError:
        return otherwise


def _text(value: str | bytes) -> str:
    """Older drivers answer in bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _silent(error: Exception) -> BackendUnavailable:
    return BackendUnavailable(
        f"The NVIDIA driver does not answer: {error}.",
        "Restart the machine: a driver that was updated works from then on. If that does not help, install it again.",
    )


# Folder below the root, limit, use, and the part of the use that the kernel gives back: cgroup versions 2 and 1.
_CGROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_memory_bytes(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int:
    """Memory that can be used now without swapping, within the limits of this process's cgroup and of those above it.

    ``root`` and ``membership`` are where Linux tells them.
    """
    return min([int(psutil.virtual_memory().available), *_cgroup_rooms(root, membership)])


def _cgroup_rooms(root: Path, membership: Path) -> Iterator[int]:
    for folder, limit, use, reclaimable in _CGROUPS:
        top = root / folder
        own = top / _cgroup(membership, folder).lstrip("/")
        for group in (own, *own.parents):
            with contextlib.suppress(OSError, ValueError):  # no such cgroup, or "max"
                statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                used = int((group / use).read_text()) - int(statistics.get(reclaimable, 0))
                yield max(0, int((group / limit).read_text()) - used)
            if group == top:
                break


def _cgroup(membership: Path, controller: str) -> str:
    """The path of this process's cgroup below the root: that of ``controller``, or "" for version 2."""
    with contextlib.suppress(OSError, ValueError):
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
    return ""
