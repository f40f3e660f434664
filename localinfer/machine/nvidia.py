"""The NVIDIA cards of this machine as their driver reports them.

It asks the driver, never an inference library, so that it can say when a build cannot use what is there.
"""

import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

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
