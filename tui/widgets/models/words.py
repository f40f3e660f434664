"""How verdicts, downloads and memory read on the screen: glyphs, words and colours of the theme."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from localinfer.models.explain import DASH, download_size, gib
from localinfer.models.plan import HOST, DeviceLoad, MemoryPlan, Term
from tui.text.clean import clean

if TYPE_CHECKING:
    from localinfer.downloads import Download

_VERDICTS = {
    "full": ("●", "on the GPU", "$text-success"),
    "full_short_ctx": ("●", "GPU, short", "$text-warning"),
    "moe_offload": ("◐", "GPU + RAM", "$text-warning"),
    "partial": ("◐", "partly", "$text-warning"),
    "cpu": ("○", "on the CPU", "$foreground"),
    "too_big": ("✗", "too big", "$text-error"),
    "unknown": ("?", "unknown", "$text-muted"),
}

_KINDS = (
    ("█", "$primary", "weights", ("weights", "draft", "projector", "speech")),
    ("▓", "$accent", "KV cache", ("kv", "state")),
    ("▒", "$secondary", "buffers", ("compute", "overhead")),
)
_SHARED = ("▚", "$primary", "of the GPU")
_KEPT = ("░", "$text-muted", "kept free")
_FREE = ("·", "$text-muted", "free")

UNITS = "In memory · 1 GiB is 1.07 GB of a file"


def verdict(plan: MemoryPlan | None, error: str = "") -> Content:
    """Where it runs: a glyph and a word."""
    if plan is None:
        return Content.styled("✗ cannot run" if error else "? not known", "$text-error" if error else "$text-muted")
    glyph, word, style = _VERDICTS[plan.verdict]
    if plan.verdict == "cpu" and plan.context < plan.asked_context:
        word, style = "CPU, short", "$text-warning"
    return Content.styled(f"{glyph} {word}", style)


def bar(fraction: float | None, width: int) -> Content:
    """How far something has come; empty where that is not known."""
    filled = round(width * (fraction or 0.0))
    return Content.assemble(("━" * filled, "$success"), ("─" * (width - filled), "$text-muted"))


def duration(seconds: float) -> str:
    """A time left: "8 s", "2:10 min", "1:05 h"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"


def download(state: "Download", *, short: bool = False) -> str:
    """How a download is doing: "1.2 of 2.7 GB · 43 % · 12.3 MB/s · 2:10 min left"."""
    if state.state == "queued":
        return "waits for its turn"
    progress = state.progress
    if state.state == "failed":
        return "failed" if short else "The download failed."
    if state.state == "stopped":
        arrived = f"{' ' if short else ' at '}{_percent(state)}" if state.fraction is not None else ""
        return f"stopped{arrived}"
    if progress is None:
        return "connecting…"
    if progress.stage == "wait":
        return "another program is fetching it"
    if progress.stage == "verify":
        return f"checking {_percent(state)}"
    if progress.stage == "unpack":
        return f"unpacking {_percent(state)}"
    parts = [_percent(state)] if short else [_bytes(progress.done_bytes, progress.total_bytes), _percent(state)]
    parts.append(rate(progress.bytes_per_s))
    if progress.eta_s is not None:
        parts.append(duration(progress.eta_s) + ("" if short else " left"))
    return " · ".join(parts)


def rate(bytes_per_s: float | None) -> str:
    """A speed of transfer, a dash while it is not known."""
    return f"{DASH} MB/s" if bytes_per_s is None else f"{bytes_per_s / 1e6:.1f} MB/s"


def memory(plan: MemoryPlan, width: int) -> Content:
    """The plan as a stacked bar for each device, with a legend under it."""
    lines: list[Content] = []
    for load in plan.devices:
        terms = [term for term in plan.terms if term.device == load.id]
        if load.needed_bytes:
            lines += [_heading(load, width), _stacked(load, terms, width), *_legend(load, terms, width), Content("")]
    return Content("\n").join(lines[:-1])


def parts(load: DeviceLoad, terms: Iterable[Term]) -> list[tuple[str, str, str, int]]:
    """What lies on a device, in the order of the bar: glyph, style, name, bytes."""
    terms = list(terms)
    found = [
        (glyph, style, name, sum(term.size_bytes for term in terms if term.kind in kinds))
        for glyph, style, name, kinds in _KINDS
    ]
    shared = load.needed_bytes - sum(size for *_, size in found)
    found.append((*_SHARED, max(0, shared)))
    found.append((*_KEPT, load.margin_bytes))
    found.append((*_FREE, max(0, load.spare_bytes)))
    return [part for part in found if part[3] > 0]


def _heading(load: DeviceLoad, width: int) -> Content:
    from localinfer.machine import short

    name = "Memory" if load.id == HOST else clean(short(load.name))
    free = load.free_bytes + load.freed_bytes
    told = f"takes {gib(load.needed_bytes)} · {gib(free)} free"
    if load.spare_bytes < 0:
        told = f"{gib(-load.spare_bytes)} missing"
    room = max(6, width - len(told) - 2)
    style = "$text-error" if load.spare_bytes < 0 else "$text-muted"
    heading = Content.assemble(Content(name).truncate(room, ellipsis=True), "  ", (told, style))
    return heading.truncate(width, ellipsis=True)


def _stacked(load: DeviceLoad, terms: Sequence[Term], width: int) -> Content:
    cells = shares([size for *_, size in parts(load, terms)], width)
    drawn = zip(parts(load, terms), cells, strict=True)
    return Content.assemble(*((glyph * count, style) for (glyph, style, *_), count in drawn))


def shares(sizes: Sequence[int], width: int) -> list[int]:
    """``width`` cells divided in proportion to ``sizes``; what is there at all gets a cell while there are enough."""
    total = sum(sizes) or 1
    cells = [max(1, round(width * size / total)) for size in sizes]
    while (over := sum(cells) - width) and cells:
        largest = cells.index(max(cells))
        if over > 0 and cells[largest] <= 1:
            return cells[:width]
        cells[largest] -= 1 if over > 0 else -1
    return cells


def _legend(load: DeviceLoad, terms: Sequence[Term], width: int) -> list[Content]:
    items = [
        Content.assemble((glyph, style), f" {name} ", (gib(size), "$text-muted"))
        for glyph, style, name, size in parts(load, terms)
    ]
    lines: list[Content] = []
    for item in items:
        if lines and lines[-1].cell_length + 2 + item.cell_length <= width:
            lines[-1] = Content.assemble(lines[-1], "  ", item)
        else:
            lines.append(item)
    return lines


def _percent(state: "Download") -> str:
    return f"{state.fraction:.0%}" if state.fraction is not None else DASH


def _bytes(done: int, total: int) -> str:
    return f"{download_size(done)} of {download_size(total)}"
