"""One row of the screen from one line of a turn: gutter, selected text, padding.

Rows are named by keys that are ordered as the text is and that hold while text arrives and turns fold: a number made
of turn, part and line. They are the y of Textual's selections.
"""

from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from tui.widgets.transcript.sheet import Part

GUTTER = 2  # cells left of the text: the bar and a space
_LINES = 1 << 24
_PARTS = 1 << 4


class Line(NamedTuple):
    """A line of a turn, by the part it belongs to."""

    turn: int
    part: Part
    line: int

    @property
    def key(self) -> int:
        """The number that stands for it in a selection."""
        return (self.turn * _PARTS + self.part) * _LINES + self.line

    @classmethod
    def of(cls, key: int) -> "Line":
        """The line that a key stands for."""
        turn, rest = divmod(key, _PARTS * _LINES)
        part, line = divmod(rest, _LINES)
        return cls(turn, Part(min(part, Part.GAP)), line)


def row(strip: Strip, *, bar: Segment, base: Style, width: int) -> Strip:
    """A whole row, ``width`` cells wide, nothing in it without the colours of ``base``."""
    null = Style.null()
    line = strip if strip.cell_length <= width - GUTTER else strip.crop(0, max(0, width - GUTTER))
    segments = [
        Segment(bar.text, base + (bar.style or null)),
        Segment(" ", base),
        *(Segment(text, base + style if style else base) for text, style, _ in line),
    ]
    if rest := max(0, width - GUTTER - line.cell_length):
        segments.append(Segment(" " * rest, base))
    return Strip(segments, GUTTER + line.cell_length + rest).crop(0, width)


def located(row: Strip, key: int) -> Strip:
    """A row whose cells tell Textual which character of which line a mouse is on. The gutter is the line's start."""
    segments: list[Segment] = []
    at = 0
    for index, (text, style, _) in enumerate(row):
        offset = Style.from_meta({"offset": (at, key)})
        segments.append(Segment(text, style + offset if style else offset))
        at += 0 if index < GUTTER else len(text)
    return Strip(segments, row.cell_length)


def highlighted(strip: Strip, selection: Selection, key: int, style: Style) -> Strip:
    """A line with the selected part of its text in ``style``."""
    span = selection.get_span(key)
    if span is None:
        return strip
    start, end = span
    segments: list[Segment] = []
    at = 0
    for text, own, _ in strip:
        first = min(max(0, start - at), len(text))
        last = len(text) if end == -1 else min(max(first, end - at), len(text))
        pieces = ((text[:first], own), (text[first:last], (own or Style.null()) + style), (text[last:], own))
        segments += [Segment(piece, its) for piece, its in pieces if piece]
        at += len(text)
    return Strip(segments, strip.cell_length)
