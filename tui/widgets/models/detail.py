"""Everything about one model: what it is, how it would lie in memory, its quantizations, where it comes from.

It shows what it is given; what is not known yet is not there.
"""

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from localinfer.models.explain import DASH, download_size, speed
from localinfer.types import Value
from tui.text.clean import clean
from tui.widgets.models import words
from tui.widgets.models.lines import Line

if TYPE_CHECKING:
    from localinfer.advice import Entry, Planned
    from localinfer.downloads import Download

_LEAST = 24
_ORIGINS = {
    "localinfer": "here, fetched by localinfer",
    "huggingface": "here, in the Hugging Face cache",
    "lmstudio": "here, from LM Studio",
    "ollama": "here, from Ollama",
    "llama.cpp": "here, in llama.cpp's cache",
}


class Shown(Value, frozen=True):
    """What is shown. ``variant`` is the quantization chosen, ``frees`` what switching frees, in words.

    ``current``: it is the model in use. ``busy`` says what is being found out, ``trouble`` what could not be.
    """

    line: Line
    variant: int
    frees: str = ""
    current: bool = False
    download: "Download | None" = None
    free_disk_bytes: int | None = None
    busy: str = ""
    trouble: str = ""


class Detail(VerticalScroll):
    """``show`` replaces what is shown."""

    DEFAULT_CSS = """
    Detail { background: $surface; padding: 0 1 0 2; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    Detail > Static { width: 1fr; height: auto; }
    Detail:focus { background-tint: $foreground 4%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "screen.variant(-1)", show=False),
        Binding("right", "screen.variant(1)", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown: Shown | None = None
        self._body = Static("", markup=False)

    def compose(self) -> ComposeResult:
        yield self._body

    def show(self, shown: Shown | None) -> None:
        """Show one model; None shows nothing."""
        if shown == self._shown:
            return
        another = self._shown is None or shown is None or shown.line.key != self._shown.line.key
        self._shown = shown
        self._draw()
        if another:
            self.scroll_home(animate=False)

    def on_resize(self, event: events.Resize) -> None:
        """Bars are as wide as there is room."""
        self._draw()

    def _draw(self) -> None:
        width = max(_LEAST, self.scrollable_content_region.width)
        self._body.update(content(self._shown, width) if self._shown is not None else Content(""))


def content(shown: Shown, width: int) -> Content:
    """All that is said, ``width`` cells wide."""
    line = shown.line
    planned = line.variants[shown.variant] if line.variants else None
    blocks = [_head(shown), _status(shown, planned, width)]
    if planned is not None:
        blocks.append(_plan(planned, width))
        if len(line.variants) > 1:
            blocks.append(_quantizations(line, shown.variant, width))
        blocks.append(_origin(planned.entry))
    elif line.section == "hub":
        blocks.append(Content(f"On the hub: {clean(line.title)}"))
    return Content("\n\n").join(block for block in blocks if block.plain.strip())


def _head(shown: Shown) -> Content:
    line = shown.line
    facts = [*line.facts, line.licence]
    can = ", ".join(line.capabilities)
    told = [Content.styled(clean(line.title), "bold")]
    if fact := " · ".join(clean(one) for one in facts if one):
        told.append(Content.styled(fact, "$text-muted"))
    if can:
        told.append(Content.styled(f"can: {can}", "$text-muted"))
    if line.recommended:
        told.append(Content.styled("★ the best of the catalogue for this machine", "$text-accent"))
    return Content("\n").join(told)


def _status(shown: Shown, planned: "Planned | None", width: int) -> Content:
    """What is going on with it, and what Enter does."""
    download = shown.download
    told: list[Content] = []
    if download is not None and download.state != "done":
        variant = planned.entry.variant if planned is not None else None
        told += _downloading(download, width, resumes=not getattr(variant, "pypi", ()))
    elif shown.current:
        told.append(Content.styled("✓ in use", "$text-success"))
    elif planned is not None:
        told += _enter(shown, planned)
    elif shown.line.gated:
        told.append(Content.styled("Its terms must be accepted on the hub before it is given.", "$text-warning"))
    if shown.busy:
        told.append(Content.styled(shown.busy, "$text-muted"))
    if shown.trouble:
        told.append(Content.styled(clean(shown.trouble), "$text-error"))
    return Content("\n").join(told)


def _enter(shown: Shown, planned: "Planned") -> list[Content]:
    entry, frees = planned.entry, f"; {clean(shown.frees)}" if shown.frees else ""
    if planned.plan is None:
        return [Content.styled(clean(planned.error or "It cannot run here."), "$text-error")]
    if entry.here:
        return [_key("Enter", f"loads it{frees}")]
    size = download_size(entry.download_bytes, approximate=entry.approximate)
    told = [_key("Enter", f"fetches {size}, then loads it{frees}")]
    free = shown.free_disk_bytes
    if free is not None:
        lacks = free < entry.size_bytes
        words_ = f"{download_size(free)} of disk {'are free: not enough' if lacks else 'are free'}"
        told.append(Content.styled(words_, "$text-error" if lacks else "$text-muted"))
    return told


def _downloading(download: "Download", width: int, *, resumes: bool) -> list[Content]:
    """How far it is. ``resumes``: once stopped it goes on from there; one from the package index does not."""
    told = []
    if download.state == "running" and download.fraction is not None:
        told.append(words.bar(download.fraction, width))
    style = "$text-error" if download.state == "failed" else "$foreground"
    told.append(Content.styled(words.download(download), style))
    if download.state == "failed":
        told.append(Content(clean(download.message)))
        if download.hint:
            told.append(Content.styled(clean(download.hint), "$text-muted"))
    if download.notice and download.active:
        told.append(Content.styled(clean(download.notice), "$text-muted"))
    if download.active:
        told.append(_key("Delete", "stops it; what has arrived is kept" if resumes else "stops it"))
        told.append(Content.styled("It goes on when you leave this screen.", "$text-muted"))
    else:
        told.append(_key("Enter", "goes on from there" if resumes else "begins it again"))
    return told


def _plan(planned: "Planned", width: int) -> Content:
    plan = planned.plan
    if plan is None:
        return Content("")
    told = [Content.assemble(words.verdict(plan), Content(f" with {plan.context:,} tokens of context"))]
    if plan.kv_type != "f16":
        told.append(Content.styled(f"{plan.kv_type} KV cache", "$text-muted"))
    told += [Content.styled(clean(text), "$text-muted") for text in (plan.sentence, *plan.notes)]
    told += [Content(""), Content.styled(words.UNITS, "$text-muted"), words.memory(plan, width)]
    prefill = f" · prefill {speed(plan.prefill_tps)}" if plan.prefill_tps else ""
    if plan.decode_tps is not None:
        told += [Content(""), Content(f"tok/s: decode {speed(plan.decode_tps)}{prefill}")]
    return Content("\n").join(told)


def _quantizations(line: Line, variant: int, width: int) -> Content:
    told = [Content.assemble("Quantizations ", ("← → chooses", "$text-muted"))]
    name_width = min(18, max(len(one.entry.quantization or DASH) for one in line.variants))
    for index, one in enumerate(line.variants):
        entry, plan = one.entry, one.plan
        size = download_size(entry.size_bytes, approximate=entry.approximate)
        row = Content.assemble(
            "▸ " if index == variant else "  ",
            clean(entry.quantization or DASH).ljust(name_width)[:name_width],
            f" {size:>8} ",
            words.verdict(plan, one.error).pad_right(0),
        )
        rest = f" {speed(plan.decode_tps) if plan else DASH} tok/s" if width >= 46 else ""
        here = " · here" if entry.here else ""
        row = Content.assemble(row, (f"{rest}{here}", "$text-muted")).truncate(width, ellipsis=True)
        told.append(row.stylize("bold") if index == variant else row)
    return Content("\n").join(told)


def _origin(entry: "Entry") -> Content:
    if entry.here:
        where = _ORIGINS.get(entry.origin, "here")
        return Content.assemble(f"{where}\n", (clean(str(entry.paths[0])), "$text-muted"))
    variant = entry.variant
    if variant is not None and variant.repo:
        return Content.assemble("on the hub ", (clean(variant.repo), "$text-muted"))
    return Content(f"from the {clean(entry.origin)}")


def _key(key: str, what: str) -> Content:
    return Content.assemble((key, "bold $text-accent"), f" {what}")
