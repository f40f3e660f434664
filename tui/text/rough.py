"""Text of any length as rows that are made when somebody looks at them.

Only lengths are counted beforehand, so that megabytes take milliseconds: a line is cut where a row is full, be it in a
word. It knows neither Markdown nor turns.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, overload, runtime_checkable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text.cells import steady
from tui.text.wrap import narrow, slices

TAB = 4
_FIRST_WIDE = "\u1100"  # no character before it has two cells


@runtime_checkable
class Cheap(Protocol):
    """Lines of which the text is there before they are drawn."""

    def text(self, index: int) -> str:
        """About what the line at ``index`` says."""


class Rows(Sequence[Strip]):
    """Rows that are made one by one."""

    def row(self, index: int) -> Strip:
        """The row at ``index``, from 0."""
        raise NotImplementedError

    def text(self, index: int) -> str:
        """About what the row at ``index`` says, at less cost."""
        return self.row(index).text

    @overload
    def __getitem__(self, index: int) -> Strip: ...
    @overload
    def __getitem__(self, index: slice) -> list[Strip]: ...
    def __getitem__(self, index: int | slice) -> Strip | list[Strip]:
        if isinstance(index, slice):
            return [self.row(place) for place in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        return self.row(place)


class Rough(Rows):
    """Cleaned ``text`` in rows of at most ``width`` cells, of which the first ``indent`` stay empty."""

    def __init__(self, text: str, width: int, style: Style, indent: int = 0) -> None:
        self._indent = indent if width >= 2 * indent + 2 else 0
        self._width = max(1, width - self._indent)
        self._half = max(1, self._width // 2)
        self._style = style
        self._lines = text.expandtabs(TAB).split("\n")
        half = self._half
        heights = (1 if len(line) <= half else -(-len(line) // self._room(line)) for line in self._lines)
        self._starts = list(accumulate(heights, initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def row(self, index: int) -> Strip:
        """The row at ``index``, from 0."""
        piece = steady(self.text(index))
        if self._width < 2:
            piece = narrow(piece)
        (segments,) = slices([(piece, self._style)], [(0, len(piece))])
        strip = Strip(segments).crop(0, self._width)
        return Strip([Segment(" " * self._indent, self._style), *strip]) if self._indent else strip

    def text(self, index: int) -> str:
        """What the row at ``index`` says, before anything is left out for the terminal's sake."""
        place = bisect_right(self._starts, index) - 1
        line, start = self._lines[place], index - self._starts[place]
        room = self._room(line)
        return line[start * room : (start + 1) * room]

    def _room(self, line: str) -> int:
        """Characters that a row of ``line`` takes."""
        return self._width if line.isascii() or max(line) < _FIRST_WIDE else self._half


class Chain(Rows):
    """Rows of several sequences, one after the other."""

    def __init__(self, *parts: Sequence[Strip]) -> None:
        self._parts = parts
        self._starts = list(accumulate(map(len, parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def row(self, index: int) -> Strip:
        """The row at ``index``, from 0."""
        part = bisect_right(self._starts, index) - 1
        return self._parts[part][index - self._starts[part]]

    def text(self, index: int) -> str:
        """About what the row at ``index`` says, at less cost."""
        part = bisect_right(self._starts, index) - 1
        lines, place = self._parts[part], index - self._starts[part]
        return text_of(lines, place)


def text_of(lines: Sequence[Strip], index: int) -> str:
    """About what one of ``lines`` says, without making a Strip where that can be had."""
    said: str = lines.text(index) if isinstance(lines, Cheap) else lines[index].text
    return said
