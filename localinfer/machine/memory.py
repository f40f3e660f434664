"""The memory that is free on this machine, within the limits of this process's cgroup."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil

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
