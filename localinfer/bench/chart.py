"""Speeds as bars in a terminal. The only file that imports plotext, which draws into a state of its own."""

from collections.abc import Iterator, Sequence

from localinfer.bench.values import Result

_MOST_BARS = 24
_BEYOND = 3  # columns that plotext writes beyond the width it is given, for numbers of four digits


def speeds(results: Sequence[Result], width: int, *, colours: bool) -> str:
    """Tokens per second of every kind, a bar each, ``width`` columns wide; "" where there are fewer than two."""
    several = len(results) > 1
    bars = [bar for result in results for bar in _bars(result, several=several)][:_MOST_BARS]
    if len(bars) < 2:
        return ""
    import plotext

    width -= _BEYOND
    plotext.clear_figure()
    plotext.simple_bar([name for name, _ in bars], [round(tps, 1) for _, tps in bars], width=width, color="cyan")
    drawn = str(plotext.build())
    return drawn if colours else str(plotext.uncolorize(drawn))


def _bars(result: Result, *, several: bool) -> Iterator[tuple[str, float]]:
    subject = f"{_plain(result.subject.name)[:20]} " if several else ""
    for shape in result.shapes:
        if shape.decode_tps is not None:
            yield f"{subject}decode after {shape.isl:,}", shape.decode_tps.p50
    for level in result.levels:
        if level.total_tps is not None:
            clients = "1 client" if level.concurrency == 1 else f"{level.concurrency} clients together"
            yield f"{subject}{clients}", level.total_tps.p50
    for cell in result.speculation:
        if cell.tps is not None and cell.drafter != "off":
            drafter = "lookup" if cell.drafter == "lookup" else "draft model"
            yield f"{subject}{_plain(cell.workload)[:20]}, {drafter}", cell.tps.p50


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
