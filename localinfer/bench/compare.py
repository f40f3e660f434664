"""Two reports side by side: what is faster, what is slower, and what is no more than noise."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from localinfer import decoding, settings
from localinfer.bench.sums import least_p, mann_whitney, median
from localinfer.bench.values import Difference, Report, Result, Spread
from localinfer.errors import BadRequest
from localinfer.models.names import printable

ALPHA = 0.05  # p below which a difference is not chance
FLOOR = 0.03  # of the older figure: each run is steady in itself, yet two runs of one model differ by about as much

_MOST_BYTES = 64_000_000


class _Figure(NamedTuple):
    """One figure of one subject. ``marked``: something disturbed it."""

    name: str
    unit: str
    samples: tuple[float, ...]
    marked: bool = False


def read_report(path: Path) -> Report:
    """The report that ``localinfer bench --json`` wrote to ``path``. Raises ``BadRequest``."""
    name = printable(path.name, 80)
    hint = "Name a file that “localinfer bench --json” wrote."
    try:
        return decoding.json(settings.read_file(path, _MOST_BYTES), Report)
    except OSError as error:
        reason = printable(error.strerror or str(error), 200)
        raise BadRequest(f"{name} cannot be read: {reason}.", hint, param="compare") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = printable(str(error), 200)
        raise BadRequest(f"{name} is no report of the bench: {reason}.", hint, param="compare") from error


def compare(then: Report, now: Report) -> tuple[Difference, ...]:
    """Every figure that both reports have, of the same subjects; of two reports with one subject each, of those. What
    was measured in another way (see ``caveats``) is left out.

    A difference counts where a two-sided Mann-Whitney U test of the samples gives p < ``ALPHA`` and the medians differ
    by ``FLOOR`` or more. Many figures are compared: of a hundred that are the same, a few pass the test by chance,
    which is another reason for the floor.
    """
    alike = _alike(then, now)
    found = []
    for old, new in _pairs(then, now):
        known = {(figure.name, figure.unit): figure for figure in _figures(old, workload=alike)}
        for figure in _figures(new, workload=alike):
            if before := known.get((figure.name, figure.unit)):
                found.append(_difference(new.subject.name, before, figure))
    return tuple(found)


def caveats(then: Report, now: Report) -> tuple[str, ...]:
    """What a reader of the comparison should know, in sentences."""
    found = []
    if then.host.processor != now.host.processor or then.host.devices != now.host.devices:
        found.append("The older report is of another machine.")
    if not _alike(then, now):
        run = f"a {then.extent} run of the workload “{printable(then.workload, 60)}”"
        found.append(f"The older report is of {run}: clients and drafts are not compared.")
    if then.warnings or not then.complete:
        found.append(f"The older report was {'stopped' if not then.complete else 'disturbed'}: see its warnings.")
    return tuple(found)


def _alike(then: Report, now: Report) -> bool:
    """Whether clients asked the same in both."""
    return (then.extent, then.workload) == (now.extent, now.workload)


def _pairs(then: Report, now: Report) -> Iterator[tuple[Result, Result]]:
    if len(then.results) == len(now.results) == 1:
        yield then.results[0], now.results[0]
        return
    old = {(result.subject.kind, result.subject.name): result for result in then.results}
    for result in now.results:
        if found := old.get((result.subject.kind, result.subject.name)):
            yield found, result


def _figures(result: Result, *, workload: bool) -> Iterator[_Figure]:
    yield from _single("loading", "s", result.load_s)
    yield from _single("memory held", "bytes", result.resident_bytes)
    for shape in result.shapes:
        at, marked = f"{shape.isl:,} + {shape.osl:,} tokens", bool(shape.marks)
        yield from _several(f"prefill, {at}", "tok/s", shape.prefill_tps, marked)
        yield from _several(f"decode, {at}", "tok/s", shape.decode_tps, marked)
        yield from _several(f"decode, {at}", "J/token", shape.joules_per_token, marked)
    for level in result.levels if workload else ():
        at, marked = f"{level.concurrency} client{'s' if level.concurrency > 1 else ''}", bool(level.marks)
        yield from _several(f"first text, {at}", "s", level.ttft_s, marked)
        yield from _several(f"gap, {at}", "ms", level.itl_ms, marked)
        yield from _several(f"each, {at}", "tok/s", level.tps, marked)
        yield from _several(f"together, {at}", "tok/s", level.total_tps, marked)
        yield from _several(f"together, {at}", "J/token", level.joules_per_token, marked)
    for cell in result.speculation if workload else ():
        words = {"off": "drafts off", "lookup": "lookup", "model": "draft model"}[cell.drafter]
        yield from _several(f"{cell.workload}, {words}", "tok/s", cell.tps, bool(cell.marks))


def _single(name: str, unit: str, value: float | None) -> Iterator[_Figure]:
    if value is not None:
        yield _Figure(name, unit, (value,))


def _several(name: str, unit: str, spread: Spread | None, marked: bool) -> Iterator[_Figure]:
    if spread is not None and spread.samples:
        yield _Figure(name, unit, spread.samples, marked)


def _difference(subject: str, then: _Figure, now: _Figure) -> Difference:
    before, after = median(then.samples), median(now.samples)
    change = after / before - 1 if before else 0.0
    tells = least_p(len(then.samples), len(now.samples)) < ALPHA
    p = mann_whitney(then.samples, now.samples) if tells else None
    made = Difference(
        subject=subject,
        figure=now.name,
        unit=now.unit,
        then=before,
        now=after,
        change=change,
        p=p,
        verdict="too few samples",
        marked=then.marked or now.marked,
    )
    if p is None:
        return made
    if p >= ALPHA or abs(change) < FLOOR:
        return msgspec.structs.replace(made, verdict="no difference")
    if now.unit in ("bytes", "J/token"):
        return msgspec.structs.replace(made, verdict="more" if change > 0 else "less")
    return msgspec.structs.replace(made, verdict="faster" if (change > 0) == (now.unit == "tok/s") else "slower")
