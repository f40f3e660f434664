"""What an engine is doing for whom, as text: the worker, its slots, each generation as a row, and those that are over.

It knows a view of an engine at one moment and draws it for a width; it asks nobody.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from rich.cells import cell_len
from textual.content import Content

from localinfer.engine import WorkerEngine
from localinfer.metrics import now_ns
from localinfer.types import Active, EngineStatus, Value
from tui.text.cells import shortened
from tui.text.clean import clean
from tui.widgets.readout import figures

GAP = "  "
LEAST_WHO = 12  # cells for who asked
MOST_WHO = 48
RUNNING = "Running"

_OUTCOMES = {"stop": "done", "length": "length", "cancelled": "stopped", None: "failed"}
_STATES = {
    "idle": "no model is loaded",
    "loading": "the model is being loaded",
    "ready": "ready",
    "failed": "failed; the next request starts it again",
    "closed": "unloaded",
}
_STYLES = {"decode": "$text-success", "prefill": "$text-accent", "failed": "$text-error"}


class EngineView(Value, frozen=True):
    """One engine at the moment ``at_ns``. ``finished`` are the last generations that are over, the latest first."""

    status: EngineStatus
    at_ns: int
    active: tuple[Active, ...] = ()
    finished: tuple[Active, ...] = ()
    log: Path | None = None


def view_of(engine: WorkerEngine | None) -> EngineView:
    """``engine`` now; None stands for no engine at all."""
    if engine is None:
        return EngineView(status=EngineStatus(state="idle"), at_ns=now_ns())
    return EngineView(
        status=engine.status(),
        active=engine.active(),
        finished=engine.finished(),
        log=engine.log,
        at_ns=now_ns(),
    )


class _Column(Value, frozen=True):
    """``figure`` is what a generation has there; ``priority`` the order in which columns get room, 0 first."""

    title: str
    width: int
    priority: int
    figure: Callable[[Active, EngineView], str]


def _ended(one: Active, view: EngineView) -> str:
    if one.ended_ns is None:
        return passed(_since(one.submitted_ns, view.at_ns))
    return f"{passed(_since(one.ended_ns, view.at_ns))} ago"


def _took(one: Active, _: EngineView) -> str:
    return figures.DASH if one.ended_ns is None else figures.seconds(_since(one.submitted_ns, one.ended_ns))


def _ttft(one: Active, _: EngineView) -> str:
    return figures.DASH if one.metrics.ttft_s is None else figures.seconds(one.metrics.ttft_s)


def _itl(one: Active, _: EngineView) -> str:
    p99 = one.metrics.itl_p99_ms
    return figures.DASH if p99 is None else f"{figures.milliseconds(p99)} ms"


_COLUMNS = (
    _Column(title="state", width=8, priority=0, figure=lambda one, view: state(one, view.status)),
    _Column(title="prompt", width=8, priority=0, figure=lambda one, _: figures.count(one.metrics.prompt_tokens)),
    _Column(title="cached", width=8, priority=2, figure=lambda one, _: figures.count(one.metrics.cached_tokens)),
    _Column(title="out", width=7, priority=0, figure=lambda one, _: figures.count(one.metrics.completion_tokens)),
    _Column(title="tok/s", width=6, priority=0, figure=lambda one, _: figures.number(one.metrics.tps)),
    _Column(title="TTFT", width=7, priority=1, figure=_ttft),
    _Column(title="ITL p99", width=8, priority=3, figure=_itl),
    _Column(title="took", width=7, priority=4, figure=_took),
    _Column(title="age", width=10, priority=1, figure=_ended),
)


def state(one: Active, status: EngineStatus) -> str:
    """What a generation is at, in a word."""
    if one.state == "over":
        return _OUTCOMES[one.metrics.finish_reason]
    return "loading" if status.state == "loading" else one.state


def passed(seconds: float) -> str:
    """A time that has passed, as people say it: "12 s", "3 min", "2 h"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min" if seconds < 3600 else f"{seconds // 3600:.0f} h"


def summary(view: EngineView, width: int) -> Content:
    """The model, the worker and the slots, a line each."""
    return Content("\n").join(
        Content.assemble((f"{label:<8}", "$text-muted"), shortened(text, width - 8))
        for label, text in _facts(view.status)
    )


def title_style(focused: bool) -> str:
    """How the title of a part is written: the part that the keys go to is underlined."""
    return "bold underline" if focused else "bold"


def table(view: EngineView, width: int, *, focused: bool = False) -> Content:
    """A row for each generation under a heading, those that are over below the others."""
    columns = _fitting(width)
    fixed = sum(column.width + len(GAP) for column in columns)
    who = max(1, min(width - fixed, MOST_WHO))
    lines = [_heading(columns, who).stylize(title_style(focused), 0, len(RUNNING))]
    lines += [_row(one, view, columns, who) for one in view.active]
    if not view.active:
        lines.append(Content.styled("Nothing is running.", "$text-muted"))
    if view.finished:
        lines += [Content(), Content.styled("Finished", "bold")]
        lines += [_row(one, view, columns, who) for one in view.finished]
    return Content("\n").join(lines)


def _facts(status: EngineStatus) -> Iterator[tuple[str, str]]:
    model = status.model
    named = [] if model is None else [model.name, model.quantization, model.backend, model.placement]
    yield "Model", _joined(named) or figures.DASH
    worker = [_STATES[status.state]]
    if status.pid is not None:
        threads = "1 thread" if status.threads == 1 else f"{figures.count(status.threads)} threads"
        worker += [f"pid {status.pid}", figures.size(status.rss_bytes), threads]
    yield "Worker", _joined(worker)
    used = min(status.running, status.slots)
    bar = "■" * min(used, 16) + "□" * (min(status.slots, 16) - min(used, 16))
    queue = f"{status.queued:,} waiting" if status.queued else "none waiting"
    yield "Slots", f"{bar} {used} of {status.slots} in use · {queue}" if status.slots else figures.DASH


def _joined(parts: list[str]) -> str:
    return " · ".join(clean(part).replace("\n", " ") for part in parts if part)


def _fitting(width: int) -> list[_Column]:
    """The columns there is room for beside who asked."""
    kept: list[_Column] = []
    for column in sorted(_COLUMNS, key=lambda each: each.priority):
        if sum(each.width + len(GAP) for each in (*kept, column)) + LEAST_WHO > width:
            break
        kept.append(column)
    return [column for column in _COLUMNS if column in kept]


def _heading(columns: list[_Column], who: int) -> Content:
    cells = (_aligned(column.title, column) for column in columns)
    return Content.styled(GAP.join([_padded(RUNNING, who), *cells]), "bold")


def _row(one: Active, view: EngineView, columns: list[_Column], who: int) -> Content:
    cells = [Content(_padded(clean(one.label).replace("\n", " ") or figures.DASH, who))]
    for column in columns:
        text = column.figure(one, view)
        cells.append(Content.styled(_aligned(text, column), _STYLES.get(text, "")))
    row = Content(GAP).join(cells)
    return row if one.state != "over" else row.stylize_before("$text-muted")


def _aligned(text: str, column: _Column) -> str:
    text = shortened(text, column.width)
    return f"{text:<{column.width}}" if column.title == "state" else f"{text:>{column.width}}"


def _padded(text: str, width: int) -> str:
    cut = shortened(text, width)
    return cut + " " * (width - cell_len(cut))


def _since(start_ns: int, end_ns: int) -> float:
    return max(0, end_ns - start_ns) / 1e9
