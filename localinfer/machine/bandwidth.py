"""Memory bandwidth in bytes per second: published figures of cards and chips, and a short read of the machine's memory.

What a driver says itself goes before all of this. Laptop parts share their desktop names' first words and nothing else,
so that a name must match whole.
"""

import re
import time
from pathlib import Path

from localinfer import kept, settings
from localinfer.machine.values import Cpu

_GB = 1e9

# GB/s by name without the maker's words; a size in GB sets apart cards that share a name.
_CARDS: dict[str, float] = {
    **{"gtx 1050 ti": 112, "rtx 2080": 448, "rtx 2080 ti": 616, "t4": 320},
    **{"rtx 3060 12gb": 360, "rtx 3060 ti": 448, "rtx 3070": 448, "rtx 3080 10gb": 760, "rtx 3090": 936},
    **{"rtx 3090 ti": 1008, "rtx 4060": 272, "rtx 4060 ti": 288, "rtx 4070": 504, "rtx 4070 ti super": 672},
    **{"rtx 4080": 717, "rtx 4080 super": 736, "rtx 4090": 1008, "rtx 5060": 448, "rtx 5060 ti": 448},
    **{"rtx 5070": 672, "rtx 5070 ti": 896, "rtx 5080": 960, "rtx 5090": 1792, "gb10": 273},
    **{"rx 6800": 512, "rx 7800 xt": 624, "rx 7900 xt": 800, "rx 7900 xtx": 960, "rx 9070": 640, "rx 9070 xt": 640},
    **{"8060s": 256, "arc b580": 456},
}
_MAKERS = re.compile(r"\(.*?\)|\b(nvidia|geforce|tesla|amd|radeon|intel|graphics|apple)\b", re.IGNORECASE)

_CHIPS: dict[str, float] = {
    **{"m1": 68, "m1 pro": 200, "m1 max": 400, "m1 ultra": 800},
    **{"m2": 100, "m2 pro": 200, "m2 max": 400, "m2 ultra": 800},
    **{"m3": 100, "m3 pro": 150, "m3 max": 300, "m3 ultra": 819},
    **{"m4": 120, "m4 pro": 273, "m4 max": 410},
    **{"m5": 153.6, "m5 pro": 307, "m5 max": 614},
}
# The chips of which the variant with more GPU cores has a wider memory: those cores, and its GB/s.
_LARGE_CHIPS: dict[str, tuple[int, float]] = {"m3 max": (40, 400), "m4 max": (40, 546)}

_READ_BYTES = 256 << 20  # well beyond the caches of what people have at home
_READ_S = 0.2
_READINGS = 4
_PLAUSIBLE = (1e9, 1e13)
_FILE = "bandwidth.json"


def of_card(name: str, total_bytes: int | None) -> float | None:
    """The published bandwidth of the graphics card of that name; None if it is not known."""
    words = bare(name)
    sized = f"{words} {round((total_bytes or 0) / 2**30)}gb"
    known = _CARDS.get(sized) or _CARDS.get(words)
    return known * _GB if known else None


def of_chip(name: str, gpu_cores: int | None) -> float | None:
    """The published bandwidth of an Apple chip; with unknown cores that of the smaller variant."""
    words = bare(name)
    cores, large = _LARGE_CHIPS.get(words, (0, 0.0))
    known = large if cores and (gpu_cores or 0) >= cores else _CHIPS.get(words)
    return known * _GB if known else None


def depends_on_cores(chip: str) -> bool:
    """Whether variants of that Apple chip differ in bandwidth."""
    return bare(chip) in _LARGE_CHIPS


def bare(name: str) -> str:
    """The words of a card's or chip's name that set it apart from others of its maker."""
    return " ".join(_MAKERS.sub(" ", name).lower().split())


def of_memory(cpu: Cpu, *, measure: bool) -> float | None:
    """The bandwidth of the machine's memory as read by ``cpu.cores`` threads.

    It is the best that was measured before, else None; with ``measure`` it is measured then (about a second) and kept.
    A machine that is busy reads slower, so the first few calls with ``measure`` all measure.
    """
    file = settings.state_dir() / _FILE
    key = f"{cpu.name} × {cpu.cores}"
    known = _load(file)
    if measure and len(known.get(key, ())) < _READINGS:
        known[key] = (*known.get(key, ()), _read_speed(cpu.cores))
        kept.save(file, known)
    return max(known.get(key, ()), default=None)


def _load(file: Path) -> dict[str, tuple[float, ...]]:
    """What was measured before. A figure that no memory has was never kept: the file may have been damaged."""
    known = kept.load(file, dict[str, tuple[float, ...]], {})
    least, most = _PLAUSIBLE
    return {key: tuple(speed for speed in speeds if least <= speed <= most) for key, speeds in known.items()}


def _read_speed(threads: int) -> float:
    """Bytes per second that ``threads`` threads read together from a buffer that no cache holds.

    The fastest of several passes counts: it was the least disturbed by other programs, and the figure is kept.
    """
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np

    parts = np.array_split(np.ones(_READ_BYTES // 8, np.uint64), threads)
    with ThreadPoolExecutor(threads) as pool:

        def read() -> None:
            for _ in pool.map(np.bitwise_or.reduce, parts):
                pass

        read()  # the threads start, the pages are there
        fastest_s, end = float("inf"), time.perf_counter() + _READ_S
        while (start := time.perf_counter()) < end or fastest_s == float("inf"):
            read()
            fastest_s = min(fastest_s, time.perf_counter() - start)
    return _READ_BYTES / fastest_s
