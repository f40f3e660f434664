"""What is asked from outside: files, commands, the system's own figures, the NVIDIA driver's library.

One seam, so that a machine can be recorded and looked at elsewhere. It knows where to ask, never what the answers mean.
Nothing here raises: what cannot be told is empty or None.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import psutil

System = Literal["linux", "macos", "windows"]

COMMAND_TIMEOUT_S = 2.0
LONGEST_FILE_BYTES = 4 << 20
LONGEST_NAME = 120

_SYSTEMS: dict[str, System] = {"darwin": "macos", "win32": "windows"}


def plain(name: str) -> str:
    """``name`` in one line without anything that a terminal would obey, cut to ``LONGEST_NAME`` characters."""
    return " ".join("".join(c for c in name if c.isprintable() or c.isspace()).split())[:LONGEST_NAME]


class Sources:
    """This machine, or the files of another below ``root``. ``nvml`` stands in for the ``pynvml`` module."""

    system: System = _SYSTEMS.get(sys.platform, "linux")
    nvml: Any = None

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of this process."""
        return os.environ

    def read(self, path: str) -> str:
        """The text of the file at the absolute ``path``."""
        try:
            with (self.root / path.lstrip("/")).open("rb") as file:
                return file.read(LONGEST_FILE_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def entries(self, path: str) -> list[str]:
        """The names in the folder at the absolute ``path``, sorted."""
        try:
            return sorted(os.listdir(self.root / path.lstrip("/")))  # noqa: PTH208  names are all that is wanted
        except (OSError, ValueError):
            return []

    def run(self, *command: str) -> str:
        """What ``command`` writes to its standard output, also where it fails; nothing if it takes too long."""
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
                timeout=COMMAND_TIMEOUT_S,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return ""
        return done.stdout.decode("utf-8", "replace")

    def memory(self) -> tuple[int, int]:
        """The machine's memory in bytes: all of it, and what can be used now without swapping."""
        memory = psutil.virtual_memory()
        return int(memory.total), int(memory.available)

    def cores(self) -> tuple[int | None, int]:
        """Physical cores of the machine, and logical ones this process may run on."""
        return psutil.cpu_count(logical=False), len(usable_cpus())

    def processor_seconds(self) -> tuple[float, float]:
        """Seconds that the processors this process may run on were busy, and all of theirs, since the machine started.

        Systems without affinity count all of the machine's.
        """
        with contextlib.suppress(Exception):  # psutil fails in many ways where the system keeps its figures to itself
            usable = usable_cpus()
            each = [times for cpu, times in enumerate(psutil.cpu_times(percpu=True)) if cpu in usable]
            # A guest's time is part of its host's user time.
            total = sum(sum(times) - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0) for times in each)
            return total - sum(times.idle + getattr(times, "iowait", 0) for times in each), total
        return 0.0, 0.0

    def battery(self) -> tuple[float | None, bool | None] | None:
        """Percent and whether mains power is connected, from the system's own call; None without a battery."""
        with contextlib.suppress(Exception):  # each system fails in its own way, and some have no such call
            found = psutil.sensors_battery()
            return None if found is None else (found.percent, found.power_plugged)
        return None

    def processor_feature(self, number: int) -> bool:
        """Windows: whether the processor has the feature of that number (``IsProcessorFeaturePresent``)."""
        if sys.platform == "win32":
            import ctypes

            return bool(ctypes.windll.kernel32.IsProcessorFeaturePresent(number))
        return False


HERE = Sources()


def usable_cpus() -> frozenset[int]:
    """The logical processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
