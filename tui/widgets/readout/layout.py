"""Which rows of the column are on the screen, and where: the figures, the chosen one and what it means."""

from tui.widgets.readout import hardware, sections
from tui.widgets.readout.explanations import EXPLANATIONS
from tui.widgets.readout.rows import BLANK, Row, Span, row, wrap
from tui.widgets.readout.values import Reading

Line = tuple[Span, ...]
MARK = "▸"
_MARGIN = 1  # left and right; the mark stands in the left one
_MOST_MEANING = 6


def draw(reading: Reading, width: int) -> list[list[Row]]:
    """All sections, the most important first, as rows of ``width`` cells."""
    drawn = [
        sections.time_to_first_text(reading, width),
        sections.speed(reading, width),
        sections.context(reading, width),
        sections.speculation(reading, width),
        sections.roofline(reading, width),
        *(hardware.memory(device, width) for device in reading.memory),
        hardware.machine(reading, width),
    ]
    return [section for section in drawn if section]


def lines(reading: Reading, width: int, height: int, chosen: int | None) -> tuple[list[Line], int]:
    """``height`` lines of ``width`` cells at most, and the number of the chosen figure, which is as near as there is
    one to ``chosen``; None: nothing is chosen, and the sections that fit are shown whole."""
    inner = max(0, width - 2 * _MARGIN)
    drawn = draw(reading, inner)
    trouble = hardware.trouble(reading, inner)
    if chosen is None:
        rows = _calm(drawn, height)[: max(0, height - len(trouble))] + trouble
        return [_line(one, width) for one in rows[:height]], 0
    rows = _joined(drawn, height) + trouble
    stops = [(index, place) for index, one in enumerate(rows) for place in range(len(one.figures))]
    chosen = min(chosen, len(stops) - 1)
    at, place = stops[chosen]
    meaning = _meaning(rows[at].figures[place], rows[at].more, inner)[: max(0, height - 1)]
    room = max(0, height - len(meaning))
    start = max(0, min(at - room // 2, len(rows) - room))
    shown = [
        _line(one, width, place if start + number == at else None)
        for number, one in enumerate(rows[start : start + room])
    ]
    shown += [_line(BLANK, width)] * (room - len(shown))
    return shown + [_line(one, width) for one in meaning], chosen


def _calm(drawn: list[list[Row]], height: int) -> list[Row]:
    """The sections that fit, whole."""
    if _length(drawn) > height - hardware.TROUBLE:
        drawn = [[one for one in section if not one.spare] for section in drawn]
    while len(drawn) > 1 and _length(drawn) > height:
        drawn = drawn[:-1]
    return _joined(drawn, height)


def _length(drawn: list[list[Row]]) -> int:
    return sum(map(len, drawn))


def _joined(drawn: list[list[Row]], height: int) -> list[Row]:
    """The sections one after the other, with air between them, from the top, as far as ``height`` allows.

    Room for trouble is left free, so that nothing moves when there is some.
    """
    air = height - _length(drawn) - hardware.TROUBLE
    rows: list[Row] = []
    for number, section in enumerate(drawn):
        if 0 < number <= air:
            rows.append(BLANK)
        rows += section
    return rows


def _meaning(figure: str, more: str, width: int) -> list[Row]:
    """What a figure is, under its name, and what else is to be told of it."""
    name, meaning = EXPLANATIONS[figure]
    told = wrap(f"{meaning[:1].upper()}{meaning[1:]}.", width) + wrap(more, width)
    told = told[:_MOST_MEANING]
    rule = "─" * max(0, width - len(name) - 4)
    head = row("", width, [Span("── ", "rule"), Span(name, "chosen"), Span(f" {rule}", "rule")])
    return [head, *(row("", width, [Span(line)]) for line in told)]


def _line(one: Row, width: int, chosen: int | None = None) -> Line:
    """A row between its margins; the figure in it that is ``chosen`` has the mark before it."""
    margin = Span(" " * _MARGIN)
    if width < 2 * _MARGIN:
        return (Span(" " * width),)
    spans = one.spans or (Span(" " * (width - 2 * _MARGIN)),)
    if chosen is None:
        return (margin, *spans, margin)
    if not one.second:
        return (Span(MARK, "chosen"), *map(_marked, spans), margin)
    first, gap, second = spans[: one.gap], spans[one.gap : one.gap + 1], spans[one.gap + 1 :]
    if chosen == 0:
        return (Span(MARK, "chosen"), *map(_marked, first), *gap, *second, margin)
    mark = tuple(Span(f"{span.text[:-1]}{MARK}", "chosen") for span in gap)
    return (margin, *first, *mark, *map(_marked, second), margin)


def _marked(span: Span) -> Span:
    return Span(span.text, "chosen" if span.style in ("label", "title", "value") else span.style)
