"""The control groups of Linux (versions 1 and 2): what they allow this process of processor time and memory."""

import contextlib
import re
from collections.abc import Iterator

from localinfer.machine.sources import Sources

NO_QUOTA = 65536.0  # cores

_ROOT = "/sys/fs/cgroup"
_MEMBERSHIP = "/proc/self/cgroup"

# Folder below the root, limit, use, and the part of the use that the kernel gives back: versions 2 and 1.
_MEMORY = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def memory(sources: Sources) -> Iterator[tuple[int, int]]:
    """Limit and room in bytes of each group with a limit, from this process's own up to the root."""
    for controller, limit, use, reclaimable in _MEMORY:
        for group in _groups(sources, controller):
            with contextlib.suppress(ValueError):  # no such group, or "max"
                most = int(sources.read(f"{group}/{limit}"))
                statistics = dict(line.split() for line in sources.read(f"{group}/memory.stat").splitlines())
                used = int(sources.read(f"{group}/{use}")) - int(statistics.get(reclaimable, 0))
                yield most, max(0, most - used)


def cpu_quota(sources: Sources) -> float:
    """Cores' worth of time that this process may use; ``NO_QUOTA`` where the groups do not say."""
    quotas = [NO_QUOTA]
    for group in _groups(sources, ""):
        time, _, period = sources.read(f"{group}/cpu.max").partition(" ")
        quotas.append(_quota(time, period))
    for group in _groups(sources, "cpu"):
        quotas.append(_quota(sources.read(f"{group}/cpu.cfs_quota_us"), sources.read(f"{group}/cpu.cfs_period_us")))
    return min(quotas)


def quota_use(sources: Sources) -> tuple[float, float] | None:
    """The tightest quota in cores, and the seconds of processor time its group has used; None without a quota."""
    uses = []
    for group in _groups(sources, ""):
        time, _, period = sources.read(f"{group}/cpu.max").partition(" ")
        used = re.search(r"(?m)^usage_usec (\d+)$", sources.read(f"{group}/cpu.stat"))
        uses.append((_quota(time, period), int(used[1]) / 1e6 if used else None))
    for group in _groups(sources, "cpu"):
        quota = _quota(sources.read(f"{group}/cpu.cfs_quota_us"), sources.read(f"{group}/cpu.cfs_period_us"))
        used_ns = sources.read(f"{_ROOT}/cpuacct{group.removeprefix(f'{_ROOT}/cpu')}/cpuacct.usage").strip()
        uses.append((quota, int(used_ns) / 1e9 if used_ns.isdecimal() else None))
    quota, used_s = min(uses, key=lambda use: use[0])
    return None if used_s is None or quota >= NO_QUOTA else (quota, used_s)


def _quota(time: str, period: str) -> float:
    """Microseconds of processor time in each period, as cores; no limit is written as "max" or -1."""
    try:
        quota = int(time) / int(period)
    except (ValueError, ZeroDivisionError):
        return NO_QUOTA
    return quota if quota > 0 else NO_QUOTA


def _groups(sources: Sources, controller: str) -> Iterator[str]:
    """The folders of this process's group and those above it: of ``controller``, or of version 2 for ""."""
    top = f"{_ROOT}/{controller}" if controller else _ROOT
    names = [name for name in _own(sources, controller).split("/") if name not in ("", ".", "..")]
    for depth in range(len(names), -1, -1):
        yield "/".join([top, *names[:depth]])


def _own(sources: Sources, controller: str) -> str:
    for line in sources.read(_MEMBERSHIP).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == controller or controller in controllers.split(","):
            return path
    return ""
