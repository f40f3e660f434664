"""How figures read: rounded as a careful person would, with their unit; a dash for what was not measured."""

DASH = "–"
GIB = 2**30
MIB = 2**20


def seconds(value: float | None) -> str:
    """A duration: "0.21 s", "12.4 s", "124 s"."""
    if value is None:
        return f"{DASH} s"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f} s"


def milliseconds(value: float | None) -> str:
    """A short duration without its unit: "8.4", "21"."""
    if value is None:
        return DASH
    return f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"


def number(value: float | None) -> str:
    """A rate or a factor without its unit: "0.43", "9.8", "118"."""
    if value is None:
        return DASH
    digits = 2 if value < 0.995 else 1 if value < 9.95 else 0
    return f"{value:,.{digits}f}"


def tenths(value: float | None) -> str:
    """A mean of a few things: "2.4"."""
    return DASH if value is None else f"{value:.1f}"


def factor(value: float | None) -> str:
    """How many times as much: "1.62×", "12.4×"."""
    if value is None:
        return DASH
    return f"{value:,.{2 if value < 9.995 else 1}f}×"


def getting(phase: str, progress: float | None) -> str:
    """What is done to have a model: "loading 43 %"; "" where nothing is."""
    if phase == "checking":
        return "checking …"
    if phase == "loading":
        return f"loading {percent(progress)}" if progress is not None else "loading …"
    return ""


def rate(value: float | None) -> str:
    """Tokens per second: "9.8 tok/s", "118 tok/s"."""
    return f"{number(value)} tok/s"


def count(value: int | None) -> str:
    """A number of things: "1,334"."""
    return DASH if value is None else f"{value:,}"


def percent(value: float | None) -> str:
    """A share: "71 %". What is not nothing is not called 0 %, and what is not all is not called 100 %."""
    if value is None:
        return f"{DASH} %"
    rounded = round(value * 100)
    if rounded == 0 and value > 0:
        return "<1 %"
    if rounded == 100 and value < 1:
        return "99 %"
    return f"{rounded:,} %"


def size(value: int | None) -> str:
    """Bytes: "312 MiB", "4.1 GiB"."""
    if value is None:
        return DASH
    if value < 1023.5 * MIB:
        return f"{value / MIB:.0f} MiB"
    return f"{value / GIB:.1f} GiB" if value < 99.95 * GIB else f"{value / GIB:,.0f} GiB"


def bandwidth(value: float | None) -> str:
    """Bytes per second: "42 GB/s"."""
    return f"{DASH} GB/s" if value is None else f"{number(value / 1e9)} GB/s"


def celsius(value: float | None) -> str:
    """A temperature: "71 °C"."""
    return f"{DASH} °C" if value is None else f"{value:.0f} °C"


def watts(value: float | None) -> str:
    """A power: "112 W"."""
    return f"{DASH} W" if value is None else f"{value:,.0f} W"
