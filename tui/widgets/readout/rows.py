"""A row of figures: pieces of text with the names of their styles, fitted to a width in cells.

It knows neither the figures nor what a style looks like.
"""

from collections.abc import Sequence
from typing import NamedTuple

import rich.cells
from rich.cells import set_cell_size

from tui.text.clean import clean


class Span(NamedTuple):
    """A piece of a row; ``style`` is a name of ``column.STYLES``."""

    text: str
    style: str = "value"


class Row(NamedTuple):
    """One line. ``figure`` names what it shows, as ``explanations`` does; "" for a line that cannot be chosen.
    ``spare``: it goes first where there is no room, because what it shows stands elsewhere too. ``second`` names what
    the spans from number ``gap`` on show, the first of which is a gap. ``more`` is what there was no room for: it is
    told of the figure when it is chosen."""

    figure: str
    spans: tuple[Span, ...]
    spare: bool = False
    second: str = ""
    gap: int = 0
    more: str = ""

    @property
    def figures(self) -> tuple[str, ...]:
        """What can be chosen in it."""
        return tuple(figure for figure in (self.figure, self.second) if figure)

    @property
    def text(self) -> str:
        """What is shown, without styles."""
        return "".join(span.text for span in self.spans)


BLANK = Row("", ())


def cell_len(text: str) -> int:
    """Cells that ``text`` takes."""
    return len(text) if text.isascii() else rich.cells.cell_len(text)


def words(text: str) -> str:
    """Foreign text on one line."""
    return " ".join(clean(text).split())


def fit(text: str, width: int) -> str:
    """``text`` in exactly ``width`` cells: filled up with spaces, or shortened with an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + "…"


def row(figure: str, width: int, left: Sequence[Span], right: Sequence[Span] = ()) -> Row:
    """``left`` flush left and ``right`` flush right in exactly ``width`` cells; ``left`` gives way, its last piece
    first."""
    tail = _cut(right, width)
    room = width - _cells(tail)
    head = _cut(left, room if not tail else max(0, room - 1))
    gap = Span(" " * (room - _cells(head)), "value")
    return Row(figure, tuple(span for span in (*head, gap, *tail) if span.text))


def both(width: int, first: tuple[str, Sequence[Span]], second: tuple[str, Sequence[Span]]) -> Row:
    """Two figures in one row, each with its name: one flush left, the other flush right and never cut."""
    left = [span for span in first[1] if span.text]
    whole = row(first[0], width, left, second[1])
    fits = width - _cells(left) > _cells(second[1])
    return whole._replace(second=second[0], gap=len(left)) if fits else whole


class Entry(NamedTuple):
    """A figure that shares its row with another: what it is called, and its value."""

    figure: str
    name: tuple[Span, ...]
    value: str


def named(figure: str, glyph: Span, name: str, value: str) -> Entry:
    """An entry whose part of a bar has ``glyph``."""
    return Entry(figure, (glyph, Span(f" {name}", "label")), value)


def pair(width: int, first: Entry, second: Entry) -> Row:
    """Two entries side by side, their values flush right."""
    gap = min(2, max(0, width))
    half = max(0, width - gap) // 2
    left = row("", half, first.name, [Span(first.value)]).spans
    right = row("", width - gap - half, second.name, [Span(second.value)]).spans
    between = (Span(" " * gap),) if gap else ()
    return Row(first.figure, (*left, *between, *right), second=second.figure, gap=len(left))


def wrap(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` cells, broken at spaces; a longer word is shortened."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and cell_len(line) + 1 + cell_len(word) <= width:
            line = f"{line} {word}"
        else:
            lines.append(line)
            line = word if cell_len(word) <= width else fit(word, width)
    return [*lines, line][1:]


def _cells(spans: Sequence[Span]) -> int:
    return sum(cell_len(span.text) for span in spans)


def _cut(spans: Sequence[Span], width: int) -> list[Span]:
    """The beginning of ``spans`` in at most ``width`` cells."""
    cut = []
    for span in spans:
        taken = cell_len(span.text)
        if taken > width:
            cut.append(Span(fit(span.text, width), span.style))
            break
        cut.append(span)
        width -= taken
    return cut
