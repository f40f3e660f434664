"""How the machine is doing now: load, temperature, memory and power, again and again and at little cost.

It finds out once which figures this machine tells, and asks for those only. What a machine is, ``look`` says.
"""

import time
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from localinfer.machine import apple, bandwidth, cgroups, devices, sysfs
from localinfer.machine.memory import memory_bytes
from localinfer.machine.nvidia import NvidiaWatch
from localinfer.machine.power import power
from localinfer.machine.sensors import Processor
from localinfer.machine.sources import HERE, Sources
from localinfer.machine.values import Device, GpuPulse, Power, Pulse

__all__ = ["GpuPulse", "Pulse", "PulseReader"]

LOAD_WINDOW_S = 0.5  # the kernel counts time in hundredths: a load over less than this would be noise
SLOW_EVERY_S = 5.0  # for what changes slowly, or costs a command

Clock = Callable[[], float]


class PulseReader:
    """Takes the pulse of the machine of ``sources``; ``take`` is for one thread at a time, best not the event loop's.

    ``devices`` are those of a ``Machine``, whose ids the graphics cards then get. Nothing is asked before the first
    ``take``, which opens the drivers and takes longer than the others. On macOS one ``take`` in ``SLOW_EVERY_S`` runs
    two short commands.
    """

    def __init__(self, devices: Sequence[Device] = (), sources: Sources = HERE, clock: Clock = time.monotonic) -> None:
        self._sources = sources
        self._devices = tuple(devices)
        self._clock = clock
        self._load = _Load(sources)
        self._processor = Processor(sources)
        self._cards: _Cards | None = None
        self._power = Power()
        self._slow_at_s: float | None = None

    def take(self) -> Pulse:
        """The pulse now. Raises nothing."""
        now_s = self._clock()
        if self._cards is None:
            self._cards = _Cards(self._sources, self._devices)
        if self._slow_at_s is None or now_s - self._slow_at_s >= SLOW_EVERY_S:
            self._slow_at_s = now_s
            told = power(self._sources)
            self._power = replace(told, throttled=told.throttled or self._processor.slowed())
            self._cards.ask_slowly()
        total, available = memory_bytes(self._sources)
        gpus = self._cards.pulses()
        return Pulse(
            at_s=now_s,
            cpu_load=self._load.read(now_s),
            cpu_temperature_c=self._processor.temperature_c(),
            gpus=gpus,
            ram_used_bytes=max(0, total - available),
            ram_total_bytes=total,
            power=replace(self._power, throttled=self._power.throttled or self._cards.throttled()),
        )

    def close(self) -> None:
        """Let go of the drivers; a later ``take`` opens them again."""
        if self._cards is not None:
            self._cards.close()
            self._cards = None


class _Load:
    """How busy the processors are that this process may use: of its control group's quota, where it has one."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._quota = True  # whether there is one
        self._before: tuple[float, float, float] | None = None
        self._last: float | None = None

    def read(self, now_s: float) -> float | None:
        if self._before is not None and now_s - self._before[0] < LOAD_WINDOW_S:
            return self._last
        used_s, possible_s = self._seconds(now_s)
        if self._before is not None:
            used, possible = used_s - self._before[1], possible_s - self._before[2]
            self._last = min(1.0, max(0.0, used / possible)) if possible > 0 else None
        self._before = now_s, used_s, possible_s
        return self._last

    def _seconds(self, now_s: float) -> tuple[float, float]:
        """Processor time used so far, and what could have been."""
        if self._quota:
            use = cgroups.quota_use(self._sources)
            if use is not None and use[0] < self._sources.cores()[1]:
                return use[1], use[0] * now_s
            self._quota = False
        return self._sources.processor_seconds()


class _Cards:
    """The graphics cards that tell something, whoever made them, by the ids of ``devices``."""

    def __init__(self, sources: Sources, devices: Iterable[Device]) -> None:
        self._sources = sources
        self._waiting = [device for device in devices if device.kind != "cpu"]
        self._nvidia = NvidiaWatch(sources.nvml)
        self._nvidia_ids = [self._id(name, f"CUDA{index}") for index, name in enumerate(self._nvidia.names)]
        self._amd = [(folder, self._id(card.name, card.id), card) for folder, card in sysfs.amd_cards(sources)]
        self._apple = self._apple_gpu()

    def ask_slowly(self) -> None:
        if self._apple is not None:
            load, used_bytes = apple.gpu_use(self._sources)
            self._apple = replace(self._apple, load=load, used_bytes=used_bytes)

    def pulses(self) -> tuple[GpuPulse, ...]:
        nvidia = (replace(pulse, id=id) for id, pulse in zip(self._nvidia_ids, self._nvidia.pulses(), strict=True))
        amd = (replace(sysfs.amd_pulse(self._sources, folder, card), id=id) for folder, id, card in self._amd)
        return (*nvidia, *amd, *([] if self._apple is None else [self._apple]))

    def throttled(self) -> str:
        name, words = self._nvidia.throttled
        return f"the {devices.short(name)} {words}" if words else ""

    def close(self) -> None:
        self._nvidia.close()

    def _id(self, name: str, otherwise: str) -> str:
        """The id of the first device of that name that no other card has taken."""
        for device in self._waiting:
            if bandwidth.bare(device.name) == bandwidth.bare(name):
                self._waiting.remove(device)
                return device.id
        return otherwise

    def _apple_gpu(self) -> GpuPulse | None:
        for device in self._waiting:
            if devices.maker(device.name) == "apple":
                return GpuPulse(id=device.id, name=device.name, total_bytes=device.total_bytes)
        card = apple.gpu(self._sources, 0)
        return None if card is None else GpuPulse(id=card.id, name=card.name, total_bytes=card.total_bytes)
