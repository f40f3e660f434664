"""The machine's memory, within the limits of this process's control groups."""

from localinfer.machine import cgroups
from localinfer.machine.sources import HERE, Sources


def memory_bytes(sources: Sources = HERE) -> tuple[int, int]:
    """What ``total_memory_bytes`` and ``available_memory_bytes`` say, asked once."""
    total, available = sources.memory()
    for limit, room in cgroups.memory(sources):
        total, available = min(total, limit), min(available, room)
    return total, available


def total_memory_bytes(sources: Sources = HERE) -> int:
    """The memory there is, or the most that this process's control groups allow."""
    return memory_bytes(sources)[0]


def available_memory_bytes(sources: Sources = HERE) -> int:
    """Memory that can be used now without swapping, within this process's control group and those above it."""
    return memory_bytes(sources)[1]
