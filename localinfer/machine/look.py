"""Looking at a machine: every source asked once, whatever any of them answers."""

from collections.abc import Iterable, Sequence

from localinfer.errors import BackendUnavailable
from localinfer.machine import apple, bandwidth, devices, sysfs
from localinfer.machine.cpu import cpu
from localinfer.machine.memory import available_memory_bytes, total_memory_bytes
from localinfer.machine.nvidia import NvidiaGpu, nvidia_gpus
from localinfer.machine.power import power
from localinfer.machine.sources import HERE, Sources
from localinfer.machine.values import Build, Device, Machine, Problem

_NO_DRIVER = "Install NVIDIA's driver, restart the machine, then run “localinfer setup-gpu”."


def look(sources: Sources = HERE, builds: Sequence[Build] = (), *, measure: bool = False) -> Machine:
    """This machine, and what ``builds`` can use of it. Without ``builds`` nothing is known to be usable.

    ``measure`` reads memory for about a second to learn its bandwidth, the first time: it is remembered. Raises
    nothing: what a source does not tell is missing, and what stands in the way of using the machine is among its
    problems.
    """
    processor = cpu(sources)
    total, available = total_memory_bytes(sources), available_memory_bytes(sources)
    gpus, problems = _nvidia(sources)
    listed = sysfs.cards(sources, available)
    if not gpus:
        mute = [card for card in listed if sysfs.is_nvidia(card)]
        if mute and not problems:
            problems += [Problem(message=f"There is no driver for the {mute[0].name}.", hint=_NO_DRIVER)]
    cards = [devices.nvidia_device(index, gpu) for index, gpu in enumerate(gpus)]
    cards += [card for card in listed if not (gpus and sysfs.is_nvidia(card))]
    if metal := apple.gpu(sources, available, _working_set_bytes(builds)):
        cards.append(metal)
    merged = devices.merge(cards, builds)
    speed = bandwidth.of_memory(processor, measure=measure)
    return Machine(
        system=sources.system,
        cpu=processor,
        ram_total_bytes=total,
        ram_available_bytes=available,
        devices=(*merged, devices.cpu_device(processor, total, available, speed, builds)),
        wsl="microsoft" in sources.read("/proc/sys/kernel/osrelease").lower(),
        builds=tuple(builds),
        power=power(sources, _throttled(gpus)),
        problems=(*problems, *_unused(merged, builds, sources, known=bool(problems))),
    )


def _nvidia(sources: Sources) -> tuple[tuple[NvidiaGpu, ...], list[Problem]]:
    try:
        return nvidia_gpus(sources.nvml), []
    except BackendUnavailable as error:
        return (), [Problem(message=error.message, hint=error.hint)]


def _unused(merged: Iterable[Device], builds: Sequence[Build], sources: Sources, *, known: bool) -> Iterable[Problem]:
    """A problem for each card that no build can use. ``known``: why NVIDIA's are not used is known already."""
    if not builds:
        return
    hidden = sources.environment.get("CUDA_VISIBLE_DEVICES")
    known = known or (hidden is not None and any(device.usable and sysfs.is_nvidia(device) for device in merged))
    for device in merged:
        if device.kind == "gpu" and not device.usable and not (known and sysfs.is_nvidia(device)):
            yield devices.problem(device, builds, hidden)


def _working_set_bytes(builds: Iterable[Build]) -> int | None:
    """What Metal told a build that its GPU may hold, if one has asked."""
    sizes = (
        device.total_bytes
        for build in builds
        for device in build.devices
        if device.kind == "GPU" and devices.maker(device.description) == "apple"
    )
    return next((size for size in sizes if size > 0), None)


def _throttled(gpus: Iterable[NvidiaGpu]) -> str:
    return next((f"the {devices.short(gpu.name)} {gpu.throttled}" for gpu in gpus if gpu.throttled), "")
