"""How llama.cpp computes a pass, and what passes of different sizes take on this device.

With a stream of the KV cache for each sequence, llama.cpp cuts a pass into parts of equal numbers of tokens from
sequences in neighbouring rows; with one cache for all it computes everything together.
"""

import time
from collections.abc import Sequence

import numpy as np

from backends.drafting import Part, Parts, PassCosts
from backends.llama_cpp.native import NativeContext
from localinfer.errors import LocalInferError

_SIZES = (1, 2, 4, 8, 16, 3, 6, 12, 32, 24, 48)  # rows, the most telling first
_REPEATS = 2
_LONGEST_S = 0.25  # a request that arrives meanwhile waits for one pass
_TOTAL_S = 1.0


def streams(places: Sequence[int], rows: Sequence[int]) -> Parts:
    """The parts of a pass over so many ``rows`` of the sequences at ``places``, ascending, each with its own stream:
    as long as neighbours have tokens left, as many as the shortest of them has."""
    left = list(rows)
    parts: list[Part] = []
    while True:
        group: list[int] = []
        for index, place in enumerate(places):
            if left[index] and (not group or place == places[group[-1]] + 1):
                group.append(index)
        if not group:
            return parts
        count = min(left[index] for index in group)
        for index in group:
            left[index] -= count
        parts.append(Part(len(group), count * len(group)))


class Calibration:
    """Measures passes of several sizes, one pass at a time, in a context that holds nothing yet."""

    def __init__(self, context: NativeContext, costs: PassCosts, rows: int, vocabulary: int) -> None:
        self._context = context
        self._costs = costs
        self._tokens = np.arange(rows, dtype=np.int32) % vocabulary
        self._plan = [1, *(size for size in _SIZES for _ in range(_REPEATS) if size <= rows)]  # the first one warms up
        self._measured: dict[int, float] = {}
        self._warm = False
        self._spent_s = 0.0

    def step(self) -> bool:
        """Measure one more pass; False when nothing is left to measure."""
        if not self._plan:
            return False
        size = self._plan.pop(0)
        elapsed_s = self._measure(size)
        if not self._warm:  # the weights may have come from the disk
            self._warm = True
            return True
        self._spent_s += elapsed_s
        self._measured[size] = min(elapsed_s, self._measured.get(size, elapsed_s))
        if len(self._measured) > 1:
            self._costs.calibrate(self._measured)
            curve_s = self._costs.curve()
            self._plan = [size for size in self._plan if curve_s[size] < _LONGEST_S and self._spent_s < _TOTAL_S]
        return bool(self._plan)

    def stop(self) -> None:
        """Measure no more: the context is needed."""
        self._plan = []

    def _measure(self, size: int) -> float:
        batch = self._context.batch
        batch.clear()
        batch.extend(0, 0, self._tokens[:size], wanted=range(size))
        started = time.perf_counter()
        try:
            self._context.decode()
        except LocalInferError:  # it is measured as it runs, then
            self.stop()
        self._context.clear(0)
        return time.perf_counter() - started
