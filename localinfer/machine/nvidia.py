"""The NVIDIA cards of this machine as their driver reports them.

It asks the driver, never an inference library, so that it can say when a build cannot use what is there.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from localinfer.errors import BackendUnavailable
from localinfer.machine.sources import plain
from localinfer.machine.values import GpuPulse
from localinfer.types import Value

UNKNOWN = "?"

# NVML's clock reasons that slow a card down by something other than its load or the person's settings.
_THROTTLING = (
    (0x40 | 0x20, "is too hot"),
    (0x80, "gets too little power"),
    (0x08, "is slowed down by its hardware"),
)
_MAX_BANDWIDTH = 1e14  # nothing near this exists: the driver told nonsense


class NvidiaGpu(Value, frozen=True):
    """One NVIDIA card as its driver reports it. ``compute_capability`` is as in "8.6".

    ``reserved_bytes`` of the total are the driver's own and for nobody to use. ``bandwidth`` is bytes per second.
    ``throttled`` is a reason in words, as in "is too hot". What the driver does not say is "?" or None: a card that
    shares the machine's memory has no memory of its own.
    """

    name: str
    total_bytes: int | None
    free_bytes: int | None
    compute_capability: str
    driver: str
    reserved_bytes: int | None = None
    bandwidth: float | None = None
    throttled: str = ""


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
        driver = plain(str(_told(UNKNOWN, lambda: _text(nvml.nvmlSystemGetDriverVersion()))))
        return tuple(_gpu(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError as error:
        raise _silent(error) from error
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


class NvidiaWatch:
    """The NVIDIA cards, asked again and again through one connection to the driver. Raises nothing.

    ``names`` are those of the cards, none where the driver does not answer. What a card does not support is asked once.
    ``throttled`` is the name of a card that is slowed down and the reason, as of the last ``pulses``.
    """

    def __init__(self, nvml: Any = None) -> None:
        self._nvml = _told(None, lambda: import_module("pynvml")) if nvml is None else nvml
        self._open = _told(False, lambda: self._nvml.nvmlInit() or True)
        self._unsupported: set[tuple[int, str]] = set()
        self.throttled = ("", "")
        count = _told(0, lambda: int(self._nvml.nvmlDeviceGetCount())) if self._open else 0
        self._handles = [_told(None, partial(self._nvml.nvmlDeviceGetHandleByIndex, index)) for index in range(count)]
        self.names = [_name(self._nvml, handle, index) for index, handle in enumerate(self._handles)]

    def pulses(self) -> list[GpuPulse]:
        """What each card is doing now; the ids are as without any inference library."""
        self.throttled = ("", "")
        return [
            self._pulse(index, handle, name)
            for index, (handle, name) in enumerate(zip(self._handles, self.names, strict=True))
        ]

    def joules(self) -> list[float | None]:
        """What each card has used since its driver was loaded; None where it does not count."""
        ask = partial(_told, None)
        return [ask(partial(_joules, self._nvml, handle)) for handle in self._handles]

    def close(self) -> None:
        """Leave the driver."""
        if self._open:
            self._open = _told(False, lambda: self._nvml.nvmlShutdown() and False)
            self._handles, self.names = [], []

    def _pulse(self, index: int, handle: Any, name: str) -> GpuPulse:
        nvml = self._nvml

        def ask(call: str, *arguments: Any, **options: Any) -> Any:
            question = (index, f"{call}{options}")
            if question in self._unsupported:
                return None
            try:
                return getattr(nvml, call)(handle, *arguments, **options)
            except Exception as error:  # foreign code: see _told
                if getattr(error, "value", None) in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
                    self._unsupported.add(question)
                return None

        memory = ask("nvmlDeviceGetMemoryInfo", version=nvml.nvmlMemory_v2) or ask("nvmlDeviceGetMemoryInfo")
        use = ask("nvmlDeviceGetUtilizationRates")
        temperature = ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)
        milliwatts = ask("nvmlDeviceGetPowerUsage")
        words = _told("", lambda: _throttled(int(ask("nvmlDeviceGetCurrentClocksThrottleReasons"))))
        if words and not self.throttled[1]:
            self.throttled = (name, words)
        return GpuPulse(
            id=f"CUDA{index}",
            name=name,
            load=_told(None, lambda: min(1.0, max(0.0, int(use.gpu) / 100))),
            temperature_c=_told(None, lambda: float(temperature)),
            used_bytes=_told(None, lambda: int(memory.used)),
            total_bytes=_told(None, lambda: int(memory.total) - int(getattr(memory, "reserved", 0))),
            power_w=_told(None, lambda: int(milliwatts) / 1000),
        )


def _gpu(nvml: Any, index: int, driver: str) -> NvidiaGpu:
    """The card at ``index``, of which the driver may not want to tell everything, or anything."""
    handle = _told(None, lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    # The second version sets apart what the driver keeps for itself; old drivers know the first only.
    memory = _told(None, lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2))
    memory = memory or _told(None, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    capability = _told(None, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    return NvidiaGpu(
        name=_name(nvml, handle, index),
        total_bytes=_told(None, lambda: int(memory.total)),
        free_bytes=_told(None, lambda: int(memory.free)),
        reserved_bytes=_told(None, lambda: int(memory.reserved)),
        compute_capability=_told(UNKNOWN, lambda: f"{int(capability[0])}.{int(capability[1])}"),
        driver=driver,
        bandwidth=_told(None, lambda: _bandwidth(nvml, handle)),
        throttled=_told("", lambda: _throttled(int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)))),
    )


def _joules(nvml: Any, handle: Any) -> float:
    return int(nvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3


def _name(nvml: Any, handle: Any, index: int) -> str:
    return _told("", lambda: plain(_text(nvml.nvmlDeviceGetName(handle)))) or f"NVIDIA GPU {index}"


def _bandwidth(nvml: Any, handle: Any) -> float | None:
    """Two transfers in each cycle of the memory's clock, as NVML counts cycles for every kind of memory."""
    cycles = int(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)) * 1e6
    bandwidth = 2 * cycles * int(nvml.nvmlDeviceGetMemoryBusWidth(handle)) / 8
    return bandwidth if 0 < bandwidth < _MAX_BANDWIDTH else None


def _throttled(reasons: int) -> str:
    return next((words for bits, words in _THROTTLING if reasons & bits), "")


def _told(otherwise: Any, question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception:  # the answer of foreign code: whatever is wrong with it, it is not told
        return otherwise


def _text(value: str | bytes) -> str:
    """Older drivers answer in bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _silent(error: Any) -> BackendUnavailable:
    return BackendUnavailable(
        f"The NVIDIA driver does not answer: {plain(str(error)).rstrip('.')} (error {error.value}).",
        "Restart the machine: a driver that was updated, or a card that was lost while the machine slept, works from "
        "then on. If that does not help, install the driver again.",
    )
