"""Where the memory of each device goes: what the plan says the model takes, and what the system says is in use."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui.widgets.readout.values import DeviceMemory

if TYPE_CHECKING:
    from localinfer.machine.pulse import Pulse
    from localinfer.models.plan import MemoryPlan

_HOST = "cpu"
_OURS = {"weights": "weights", "kv": "kv", "state": "kv"}  # all other terms are "other"


def memory(plan: "MemoryPlan | None", pulse: "Pulse | None", *, loaded: bool) -> tuple[DeviceMemory, ...]:
    """The devices that the model's layers are on, and the machine's own memory last; before a load the machine's only.

    A device that shares the machine's memory is one with it. Weights in the machine's own memory are pages of the
    model's file, which systems count as free; everywhere else what is in use contains what the model takes.
    """
    return tuple(_devices(plan if loaded else None, pulse))


def _devices(plan: "MemoryPlan | None", pulse: "Pulse | None") -> Iterator[DeviceMemory]:
    host = {"weights": 0, "kv": 0, "other": 0}
    counted = 0  # of the model, in what the system says is in use
    shared = ""
    if plan is not None:
        from localinfer.machine import short

        known = {part.device.id: part.device for part in plan.traffic}
        for load in plan.devices:
            taken = _taken(plan, load.id)
            device = known.get(load.id)
            if load.id == _HOST or (device is not None and device.shares_ram):
                host = {kind: host[kind] + size for kind, size in taken.items()}
                counted += sum(taken.values()) - (taken["weights"] if load.id == _HOST else 0)
                shared = shared or (load.name if load.id != _HOST else "")
                continue
            gpu = next((gpu for gpu in pulse.gpus if gpu.id == load.id), None) if pulse is not None else None
            total = gpu.total_bytes if gpu is not None else device.total_bytes if device is not None else None
            used = gpu.used_bytes if gpu is not None else None
            yield _made(load.id, short(load.name), total, taken, None if used is None else used - sum(taken.values()))
    if plan is not None or pulse is not None:
        others = None if pulse is None else pulse.ram_used_bytes - counted
        total = None if pulse is None else pulse.ram_total_bytes
        yield _made(_HOST, "RAM and GPU" if shared else "RAM", total, host, others)


def _made(device: str, name: str, total: int | None, taken: dict[str, int], others: int | None) -> DeviceMemory:
    return DeviceMemory(
        id=device,
        name=name,
        total_bytes=total,
        weights_bytes=taken["weights"],
        kv_bytes=taken["kv"],
        other_bytes=taken["other"],
        programs_bytes=None if others is None else max(0, others),
    )


def _taken(plan: "MemoryPlan", device: str) -> dict[str, int]:
    taken = {"weights": 0, "kv": 0, "other": 0}
    for term in plan.terms:
        # What is repacked need not stay in memory twice: the pages of the file give way.
        if term.device == device and term.kind != "repacked":
            taken[_OURS.get(term.kind, "other")] += term.size_bytes
    return taken
