"""Bars and sparklines in whole cells. Every part has a glyph of its own: colour is never needed to tell them apart."""

from collections.abc import Sequence

from tui.widgets.readout.rows import Row, Span

EMPTY = "·"
STEPS = "▁▂▃▄▅▆▇█"


def cells(parts: Sequence[float], width: int) -> list[int]:
    """``width`` cells shared out in proportion to ``parts``: the sum is ``width``, and what is not nothing has a cell.

    All zero where nothing is to be shown; where there are more parts than cells, the largest have them.
    """
    total = sum(parts)
    if total <= 0 or width <= 0:
        return [0] * len(parts)
    some = [index for index, part in enumerate(parts) if part > 0]
    some = sorted(some, key=lambda index: -parts[index])[:width]
    shared = [0] * len(parts)
    for index in some:
        shared[index] = max(1, int(parts[index] / total * width))
    while (over := sum(shared) - width) != 0:
        step = 1 if over < 0 else -1
        # Where a cell is missing it goes to the part that is shown too short by most, and the other way round.
        able = [index for index in some if step > 0 or shared[index] > 1]
        index = max(able, key=lambda one: step * (parts[one] / total * width - shared[one]))
        shared[index] += step
    return shared


def stacked(figure: str, width: int, parts: Sequence[tuple[float, str, str]]) -> Row:
    """Parts (value, glyph, style) in one bar of ``width`` cells."""
    shared = cells([max(0.0, part[0]) for part in parts], width)
    spans = [Span(glyph * taken, style) for taken, (_, glyph, style) in zip(shared, parts, strict=True) if taken]
    return Row(figure, tuple(spans) or (Span(EMPTY * width, "empty"),))


def level(share: float | None, width: int) -> tuple[Span, Span]:
    """A share of 0 to 1 as a bar; more fills it."""
    filled = 0 if share is None else min(width, max(0, round(share * width)))
    if share is not None and share > 0 and width:
        filled = max(1, filled)
    return Span("█" * filled, "bar"), Span(EMPTY * (width - filled), "empty")


def shares(values: Sequence[float], width: int) -> tuple[Span, Span]:
    """The first ``width`` of a series of shares, a bar each from nothing up to 1; cells without one are empty."""
    line = "".join(STEPS[_step(value, 1.0)] for value in values[: max(0, width)])
    return Span(line, "spark"), Span(EMPTY * (width - len(line)), "empty")


def spark(values: Sequence[float | None], width: int, last: int) -> str:
    """The end of a series as bars from nothing to its highest value, right-aligned in ``width`` cells.

    ``last`` is the number of the last value on an endless count. Where there is no room for each value, neighbours
    share a cell by their mean; which ones depends on their numbers, so that a bar keeps its height as it moves on.
    """
    each = max(1, -(-len(values) // width)) if width > 0 else 1
    groups: dict[int, list[float]] = {}
    for number, value in enumerate(values, start=last - len(values) + 1):
        if value is not None:
            groups.setdefault(number // each, []).append(value)
    means = {group: sum(found) / len(found) for group, found in groups.items()}
    top = max(means.values(), default=0.0)
    end = last // each
    line = [means.get(group) for group in range(end - width + 1, end + 1)]
    return "".join(" " if mean is None else STEPS[_step(mean, top)] for mean in line)


def _step(value: float, top: float) -> int:
    return min(len(STEPS) - 1, int(value / top * len(STEPS))) if top > 0 else 0
