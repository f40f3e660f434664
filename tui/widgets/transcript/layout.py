"""Where turns stand below each other: their heights, known or estimated, and which rows a view shows.

It knows rows and numbers of turns, nothing of what is drawn. The height of a turn is an estimate until somebody has to
see it; then it is measured, and whoever looks keeps the rows that were in view where they were. A view is named by the
`Place` of its top row: a row number would mean another text as soon as an estimate above it is corrected.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """A row: ``row`` counts from the first row of ``turn``."""

    turn: int
    row: int


START = Place(0, 0)


class Layout:
    """The heights of turns in rows, each at least 1. ``measure(turn)`` draws a turn and returns its true height; it is
    asked only for turns whose height is an estimate. Looking a row up and changing a height take O(log n)."""

    def __init__(self, measure: Callable[[int], int], estimates: Sequence[int] = ()) -> None:
        self._measure = measure
        self._heights: list[int] = []
        self._known = bytearray()
        self._sums: list[int] = [0]  # a Fenwick tree, its root at index 1
        self.reset(estimates)

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """The rows of all turns together."""
        return self.top_of(len(self._heights))

    def reset(self, estimates: Sequence[int]) -> None:
        """Forget all; there are as many turns as ``estimates``."""
        self._heights = [max(1, rows) for rows in estimates]
        self._known = bytearray(len(estimates))
        self._sums = [0, *self._heights]
        for node in range(1, len(self._sums)):
            parent = node + (node & -node)
            if parent < len(self._sums):
                self._sums[parent] += self._sums[node]

    def append(self, estimate: int) -> None:
        """One more turn at the end."""
        node = len(self._heights) + 1
        rows = max(1, estimate)
        covered = self.top_of(node - 1) - self.top_of(node - (node & -node))
        self._heights.append(rows)
        self._known.append(0)
        self._sums.append(covered + rows)

    def set(self, turn: int, rows: int) -> None:
        """The true height of a turn."""
        change = max(1, rows) - self._heights[turn]
        self._known[turn] = 1
        if not change:
            return
        self._heights[turn] += change
        node = turn + 1
        while node < len(self._sums):
            self._sums[node] += change
            node += node & -node

    def known(self, turn: int) -> bool:
        """Whether the height of a turn was measured."""
        return bool(self._known[turn])

    def height(self, turn: int) -> int:
        """The height of a turn, measured now if it was an estimate."""
        if not self._known[turn]:
            self.set(turn, self._measure(turn))
        return self._heights[turn]

    def top_of(self, turn: int) -> int:
        """The rows above a turn, estimates included."""
        rows = 0
        while turn:
            rows += self._sums[turn]
            turn &= turn - 1
        return rows

    def row_of(self, place: Place) -> int:
        """The rows above a place, estimates included."""
        return self.top_of(place.turn) + place.row

    def at(self, row: int) -> Place:
        """The place of a row, by the heights as they are believed to be; rows outside give the first or last place."""
        if not self._heights:
            return START
        row = min(max(0, row), self.total - 1)
        turn = 0
        step = 1 << (len(self._heights).bit_length() - 1)
        while step:
            if turn + step < len(self._sums) and self._sums[turn + step] <= row:
                turn += step
                row -= self._sums[turn]
            step >>= 1
        return Place(turn, row)

    def walk(self, place: Place, rows: int) -> Place:
        """The place ``rows`` below (or above, where negative) another, every turn on the way measured; it ends at the
        first or the last row there is."""
        if not self._heights:
            return START
        turn, row = place.turn, place.row + rows
        while row < 0 and turn > 0:
            turn -= 1
            row += self.height(turn)
        while turn < len(self._heights) - 1 and row >= self.height(turn):
            row -= self.height(turn)
            turn += 1
        return Place(turn, min(max(0, row), self.height(turn) - 1))

    def fill(self, top: Place, rows: int) -> Place:
        """Measure all that a view of ``rows`` rows shows from ``top`` on. Where the turns end before the view does,
        it moves up. Returns the place that is really on top."""
        if not self._heights:
            return START
        turn = min(max(0, top.turn), len(self._heights) - 1)
        row = min(max(0, top.row), self.height(turn) - 1)
        below = self.height(turn) - row
        last = turn
        while below < rows and last < len(self._heights) - 1:
            last += 1
            below += self.height(last)
        return self.end(rows) if below < rows else Place(turn, row)

    def end(self, rows: int) -> Place:
        """The top of a view of ``rows`` rows whose last row is the last there is, all that it shows measured."""
        if not self._heights:
            return START
        last = len(self._heights) - 1
        return self.walk(Place(last, self.height(last) - 1), 1 - max(1, rows))
