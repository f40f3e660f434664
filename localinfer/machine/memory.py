"""The machine's memory, within the limits of this process's control groups."""

from localinfer.machine import cgroups
from localinfer.machine.sources import HERE, Sources


def total_memory_bytes(sources: Sources = HERE) -> int:
    """The memory there is, or the most that this process's control groups allow."""
    total, _ = sources.memory()
    return min([total, *(limit for limit, _ in cgroups.memory(sources))])


def available_memory_bytes(sources: Sources = HERE) -> int:
    """Memory that can be used now without swapping, within this process's control group and those above it."""
    _, available = sources.memory()
    return min([available, *(room for _, room in cgroups.memory(sources))])
