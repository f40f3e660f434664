"""A report as tables for a terminal: rich's, drawn to text. It knows values and words, and measures nothing."""

import io
import re
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from localinfer.bench.chart import speeds
from localinfer.bench.values import Difference, Level, Report, Result, Shape, Speculated, Spread
from localinfer.models.explain import DASH, count, gib

_ROOMY = 90  # columns from which on two spaces fit between columns

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VERDICTS = {
    **dict.fromkeys(("faster", "less"), "green"),
    **dict.fromkeys(("slower", "more"), "red"),
    **dict.fromkeys(("no difference", "too few samples"), "dim"),
}


def drawn(report: Report, width: int, *, colours: bool) -> str:
    """The report in ``width`` columns, with terminal codes where ``colours``. All foreign text in it is harmless."""
    parts: list[RenderableType] = [_line(f"! {warning}", "bold red") for warning in report.warnings]
    if parts:
        told = "These figures are worse than the machine can do: they say little about the model."
        parts.append(_line(f"! {told}", "bold red"))
        parts.append(_line(""))
    for result in report.results:
        parts += _result(result, width)
    if not report.complete:
        parts += [_line("Stopped: this is what was measured by then."), _line("")]
    text = _rendered(Group(*parts), width, colours=colours)
    if chart := speeds(report.results, min(width, 100), colours=colours):
        text += f"Tokens per second\n\n{chart.rstrip()}\n"
    if report.comparison:
        text += "\n" + _rendered(_comparison(report.comparison, width), width, colours=colours)
    return text


def _rendered(what: RenderableType, width: int, *, colours: bool) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colours,
        color_system="standard" if colours else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


def _result(result: Result, width: int) -> Iterable[RenderableType]:
    subject = result.subject
    facts = [subject.quantization, f"{count(subject.parameters)} parameters" if subject.parameters else ""]
    if subject.active_parameters and subject.parameters and subject.active_parameters < 0.95 * subject.parameters:
        facts.append(f"{count(subject.active_parameters)} active")
    threads = f" ×{subject.threads}" if subject.threads and subject.placement == "CPU" else ""
    facts += [
        f"{subject.backend} {subject.placement}{threads}".strip(),
        f"drafts: {subject.draft}" if subject.draft else "",
    ]
    yield _line(" · ".join(part for part in (subject.name, *facts, subject.url) if part), "bold")
    if subject.kind == "model":
        yield _line(_loading(result), "dim")
    if result.shapes:
        yield from _part("One prompt alone: random tokens, no drafts; medians", _shapes(result.shapes, width))
    if result.levels:
        words = "Clients at the same time, each with pauses; percentiles of all requests"
        yield from _part(words, _levels(result.levels, width))
    if result.speculation:
        words = "Drafts: the same prompts with each, one right after the other"
        yield from _part(words, _drafts(result.speculation, width))
    for mark in _worst(_all_marks(result)):
        yield _line(f"! {mark} while figures with this mark were taken", "red")
    for note in result.notes:
        yield _line(note, "dim")
    yield _line("")


def _loading(result: Result) -> str:
    subject = result.subject
    parts = [f"loaded in {_number(result.load_s)} s"]
    if result.resident_bytes:
        planned = f" (planned in all: {gib(result.planned_bytes)})" if result.planned_bytes else ""
        parts.append(f"{gib(result.resident_bytes)} of RAM{planned}")
    if subject.context:
        parts.append(f"context {subject.slots} × {subject.context:,}")
    return " · ".join(parts)


def _part(title: str, table: Table) -> Iterable[RenderableType]:
    yield _line("")
    yield _line(title)
    yield table


def _all_marks(result: Result) -> Iterable[str]:
    cells: tuple[Shape | Level | Speculated, ...] = (*result.shapes, *result.levels, *result.speculation)
    return (mark for cell in cells for mark in cell.marks)


def _worst(marks: Iterable[str]) -> list[str]:
    """Of marks that differ only in their numbers the one with the largest."""
    worst: dict[str, str] = {}
    for mark in marks:
        kind = _NUMBER.sub("", mark)
        worst[kind] = max(worst.get(kind, mark), mark, key=lambda text: [float(n) for n in _NUMBER.findall(text)])
    return list(worst.values())


def _shapes(cells: Sequence[Shape], width: int) -> Table:
    heads = (
        *("TOKENS\nin + out", "PREFILL\ntok/s", "COMPUTE\nGFLOP/s", "DECODE\ntok/s", "GAP, ms\nP50/P90/P99"),
        *("READ\nMB/token", "OF BAND-\nWIDTH", "ENERGY\nJ/token"),
    )
    table = _table(heads, width)
    for cell in cells:
        share = f"{cell.bandwidth_share:.0%}" if cell.bandwidth_share is not None else DASH
        table.add_row(
            f"{cell.isl:,} + {cell.osl:,}",
            _middle(cell.prefill_tps),
            _number(cell.prefill_flops / 1e9 if cell.prefill_flops else None),
            _middle(cell.decode_tps),
            _percentiles(cell.itl_ms),
            _number(cell.bytes_per_token / 1e6 if cell.bytes_per_token else None),
            f"~{share}" if cell.bandwidth_estimated else share,
            _middle(cell.joules_per_token),
            _mark(cell.marks),
        )
    return table


def _levels(cells: Sequence[Level], width: int) -> Table:
    heads = (
        *("CLIENTS\n", "REQUESTS\n", "TTFT, s\nP50/P90/P99", "GAP, ms\nP50/P90/P99"),
        *("EACH, tok/s\nP50/P90/P99", "TOTAL\ntok/s", "ENERGY\nJ/token"),
    )
    table = _table(heads, width)
    for cell in cells:
        table.add_row(
            f"{cell.concurrency}",
            f"{cell.requests}",
            _percentiles(cell.ttft_s),
            _percentiles(cell.itl_ms),
            _percentiles(cell.tps),
            _middle(cell.total_tps),
            _middle(cell.joules_per_token),
            _mark(cell.marks),
        )
    return table


def _drafts(cells: Sequence[Speculated], width: int) -> Table:
    heads = (
        *("WORKLOAD\n", "DRAFTS\n", "SPEED\ntok/s", "GAIN\n× off", "GAIN BY\nENGINE", "ACCEPTED\nof drafted"),
        *("LENGTH\ntok/pass", "SAME\nTEXT"),
    )
    table = _table(heads, width, left=2)
    before = ""
    for cell in cells:
        same = f"{cell.same_text}/{cell.prompts}" if cell.same_text is not None else ""
        off = cell.drafter == "off"
        table.add_row(
            Text(_plain(cell.workload) if cell.workload != before else ""),
            {"off": "off", "lookup": "lookup", "model": "draft model"}[cell.drafter],
            _middle(cell.tps),
            "" if off else _ratio(cell.gain),
            "" if off else _ratio(cell.engine_gain),
            "" if off else (f"{cell.acceptance_rate:.0%}" if cell.acceptance_rate is not None else DASH),
            "" if off else _number(cell.mean_accepted_length),
            same,
            _mark(cell.marks),
        )
        before = cell.workload
    return table


def _comparison(differences: Sequence[Difference], width: int) -> RenderableType:
    table = _table(("FIGURE", "THEN", "NOW", "CHANGE", "p", ""), width, left=1)
    subject = ""
    for one in differences:
        if one.subject != subject and len({each.subject for each in differences}) > 1:
            table.add_row(Text(_plain(one.subject), style="bold"))
        subject = one.subject
        then, now = (
            gib(value) if one.unit == "bytes" else f"{_number(value)} {one.unit}" for value in (one.then, one.now)
        )
        p = DASH if one.p is None else "< 0.001" if one.p < 0.001 else f"{one.p:.3f}"
        verdict = Text(one.verdict, style=_VERDICTS[one.verdict])
        table.add_row(Text(_plain(one.figure)), then, now, f"{one.change:+.1%}", p, verdict, "!" if one.marked else "")
    return Group(_line("Then and now: medians, and a Mann-Whitney U test of the samples"), table)


def _table(heads: Sequence[str], width: int, *, left: int = 0) -> Table:
    """A table whose first ``left`` columns are words; a narrow last one takes the marks."""
    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0) if width >= _ROOMY else (0, 0),
        pad_edge=False,
        show_edge=False,
        header_style="dim",
    )
    for index, head in enumerate(heads):
        words = index < left or not head.strip()
        table.add_column(head, justify="left" if words else "right", no_wrap=True, overflow="ellipsis")
    table.add_column("", no_wrap=True, style="red")
    return table


def _line(text: str, style: str = "") -> Text:
    return Text(_plain(text), style=style)


def _plain(text: str) -> str:
    """``text`` without anything that a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _mark(marks: tuple[str, ...]) -> str:
    return "!" if marks else ""


def _middle(spread: Spread | None) -> str:
    return _number(spread.p50) if spread is not None else DASH


def _ratio(spread: Spread | None) -> str:
    return f"{spread.p50:.2f}" if spread is not None else DASH


def _percentiles(spread: Spread | None) -> str:
    if spread is None:
        return DASH
    return "/".join(map(_short, (spread.p50, spread.p90, spread.p99)))


def _short(value: float) -> str:
    """Two significant digits and more, for three in a column."""
    decimals = 0 if value >= 10 or value == 0 else 1 if value >= 1 else 2 if value >= 0.1 else 3
    return f"{value:,.{decimals}f}"


def _number(value: float | None) -> str:
    """Three significant digits, no exponent."""
    if value is None:
        return DASH
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
