"""What a pass of the model takes here, by how many rows it computes, as measured.

A pass is made of parts that are computed one after the other, each of so many sequences and rows: most passes have one.
The time of a part is modelled as

    seconds(sequences, rows) = plain · curve(rows) / curve(1) · streams(sequences)

where ``plain`` is the time of one row of one sequence now, ``curve`` the shape over rows on this device with its steps,
and ``streams`` what several sequences change; a pass of several parts takes ``split`` times their sum. All follow what
is measured: ``plain`` fast, because it grows with the context and with what else the machine does, the others slowly.
It knows nothing of drafts.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec


class Part(msgspec.Struct, frozen=True):
    """``rows`` tokens computed together, of ``sequences`` sequences."""

    sequences: int
    rows: int


Parts: TypeAlias = Sequence[Part]

# Where nothing was measured yet: relative times of a 0.5B model on two CPU cores, and of a device whose passes read
# the weights once whatever they compute.
CPU_GUESS: Mapping[int, float] = {1: 1.0, 2: 1.8, 3: 2.2, 4: 2.6, 6: 3.8, 8: 4.5, 12: 6.3, 16: 7.5, 32: 13.0}
GPU_GUESS: Mapping[int, float] = {1: 1.0, 8: 1.15, 16: 1.4, 32: 1.9, 64: 3.0}

_FAST, _SLOW, _SLIGHT, _DOUBTED = 0.12, 0.05, 0.04, 0.15
_NEIGHBOURS = ((0, 1.0), (1, 0.5), (2, 0.25))  # rows away, and how much of what one row count teaches holds there
_FEWEST, _MOST = 1 / 3, 3.0  # a measurement further off than this is a hiccup, and believed so far only


class PassCosts:
    """Estimates of what passes take. ``rows`` is the most that a part can have."""

    def __init__(self, rows: int, guess: Mapping[int, float]) -> None:
        self._rows = rows
        self._guess = _interpolate(guess, rows)
        self._curve = list(self._guess)
        self._measured = False  # the curve, as a whole
        self._plain_s: float | None = None
        self._streams: dict[int, float] = {}
        self._split = 1.0  # what passes of several parts take, to the sum of their parts

    @property
    def plain_s(self) -> float | None:
        """Seconds of a pass over one row; None before anything was measured."""
        return self._plain_s

    def calibrate(self, measured: Mapping[int, float]) -> None:
        """Seconds of passes over so many rows of one sequence, 1 among them: the curve from here on. Beyond the most of
        them it goes on as it was guessed."""
        self._measured = True
        self._plain_s = measured[1]
        points = {rows: seconds / measured[1] for rows, seconds in measured.items()}
        last = min(max(points), self._rows)
        guessed = {row: points[last] * self._guess[row] / self._guess[last] for row in range(last + 1, self._rows + 1)}
        self._curve = _interpolate(points | guessed, self._rows)

    def curve(self, sequences: int = 1) -> Sequence[float]:
        """Seconds of a part of ``sequences`` by its rows; the first entry is that of no rows, 0. Needs ``plain_s``."""
        scale = (self._plain_s or 0.0) * self._streams.get(sequences, 1.0)
        return [scale * value for value in self._curve]

    def seconds(self, parts: Parts) -> float:
        """What a pass takes. Needs ``plain_s``."""
        streams = self._streams
        total = sum(self._relative(part.rows) * streams.get(part.sequences, 1.0) for part in parts)
        return (self._plain_s or 0.0) * total * (self._split if len(parts) > 1 else 1.0)

    def _relative(self, rows: int) -> float:
        """To a pass over one row; beyond the curve each row takes as long as those of its end on average."""
        most = self._rows
        return self._curve[rows] if rows <= most else self._curve[most] * rows / most

    def observe(self, parts: Parts, elapsed_s: float) -> None:
        """A pass of these parts took ``elapsed_s``. One of several parts teaches nothing of any of them, but what it
        takes that there are several."""
        if elapsed_s <= 0:
            return
        if len(parts) > 1:
            if self._plain_s is not None:
                ratio = min(max(elapsed_s / self.seconds(parts), _FEWEST), _MOST) - 1
                self._split *= 1 + _FAST * ratio
            return
        sequences, rows = parts[0].sequences, min(parts[0].rows, self._rows)
        if self._plain_s is None:
            self._plain_s = elapsed_s / self._relative(parts[0].rows)
            return
        ratio = min(max(elapsed_s / self.seconds(parts), _FEWEST), _MOST) - 1
        if sequences > 1:
            weight = _FAST if rows == sequences else _SLIGHT
            self._streams[sequences] = self._streams.get(sequences, 1.0) * (1 + weight * ratio)
        else:
            # Of a shape that was measured it is likelier that the device became faster or slower as a whole.
            self._plain_s *= 1 + (_FAST if rows == 1 or self._measured else _SLIGHT) * ratio
        if rows > sequences:
            self._bend(rows, (_SLOW if self._measured else _DOUBTED) * ratio)

    def _bend(self, rows: int, change: float) -> None:
        for distance, share in _NEIGHBOURS:
            for near in {rows - distance, rows + distance}:
                if 1 < near <= self._rows:
                    # No pass is cheaper than a plain one: else what "plain" takes would be taken for too much forever.
                    self._curve[near] = max(self._curve[near] * (1 + change * share), self._curve[1])


def _interpolate(points: Mapping[int, float], rows: int) -> list[float]:
    """Values from 0 to ``rows``, straight between the points and on after the last one; 0 at 0."""
    known = sorted({0: 0.0, **points}.items())
    values = []
    for row in range(rows + 1):
        after = next((index for index, (at, _) in enumerate(known) if at >= row), len(known) - 1)
        (x0, y0), (x1, y1) = known[max(after - 1, 0)], known[max(after, 1)]
        values.append(y0 + (y1 - y0) * (row - x0) / (x1 - x0))
    return values
