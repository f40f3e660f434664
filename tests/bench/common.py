"""What every benchmark script shares: its arguments, the interleaved comparison, and the table of results.

Figures are taken in pairs, localinfer and llama.cpp one right after the other and in changing order, because a
machine’s speed drifts. A ratio is the median of the pairs’ ratios.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec
import psutil

from localinfer.metrics import percentile
from tests.bench.clients import Side
from tests.bench.native import llama_server
from tests.bench.ours import worker

T = TypeVar("T")

PAIRS = 5


class Pairs(NamedTuple, Generic[T]):
    """What was measured on both sides, pair by pair."""

    ours: list[T]
    peer: list[T]


class Target(msgspec.Struct, frozen=True):
    """A bound on our figure or on its ratio to the peer's."""

    of: Literal["ours", "ratio"]
    bound: Literal["≥", "≤"]
    limit: float

    def __str__(self) -> str:
        return f"{'ratio ' if self.of == 'ratio' else ''}{self.bound} {number(self.limit)}"

    def held(self, value: float) -> bool:
        """Whether ``value`` keeps it."""
        return value >= self.limit if self.bound == "≥" else value <= self.limit


class Row(msgspec.Struct, frozen=True):
    """One figure: what was measured, and what was promised (None: shown for comparison only)."""

    figure: str
    target: Target | None
    ours: tuple[float, ...]
    peer: tuple[float, ...] = ()

    @property
    def ratios(self) -> list[float]:
        """Ours ÷ peer's, pair by pair; empty when there is nothing to divide by."""
        if len(self.peer) != len(self.ours) or not all(self.peer):
            return []
        return [ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)]

    @property
    def held(self) -> bool | None:
        """Whether the target was kept; None without one."""
        if self.target is None:
            return None
        return self.target.held(median(self.ratios if self.target.of == "ratio" else self.ours))

    def cells(self) -> tuple[str, ...]:
        """figure, target, ours, peer, ratio with its range, held."""
        ratios = self.ratios
        spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
        held = {True: "yes", False: "**no**", None: ""}[self.held]
        return (
            self.figure,
            str(self.target or ""),
            number(median(self.ours)),
            number(median(self.peer)) if self.peer else "",
            f"{median(ratios):.2f}{spread}" if ratios else "",
            held,
        )


def row(figure: str, target: Target | None, pairs: Pairs[T], value: Callable[[T], float]) -> Row:
    """The row of one figure of what was measured in ``pairs``."""
    return Row(figure, target, tuple(map(value, pairs.ours)), tuple(map(value, pairs.peer)))


def ratio_at_least(limit: float) -> Target:
    """Ours ÷ peer's is ``limit`` or more."""
    return Target("ratio", "≥", limit)


def ratio_at_most(limit: float) -> Target:
    """Ours ÷ peer's is ``limit`` or less."""
    return Target("ratio", "≤", limit)


def at_least(limit: float) -> Target:
    """Our figure is ``limit`` or more."""
    return Target("ours", "≥", limit)


def at_most(limit: float) -> Target:
    """Our figure is ``limit`` or less."""
    return Target("ours", "≤", limit)


def median(values: Sequence[float]) -> float:
    """The median of a non-empty sequence."""
    return percentile(sorted(values), 0.5)


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def interleave(pairs: int, ours: Callable[[int], T], peer: Callable[[int], T]) -> Pairs[T]:
    """Measure both sides ``pairs`` times, in changing order; each gets the number of the pair.

    What they start they must have ended when they return.
    """
    taken: Pairs[T] = Pairs([], [])
    for index in range(pairs):
        steps = [("localinfer", taken.ours, ours), ("llama.cpp", taken.peer, peer)]
        for name, results, measure in steps if index % 2 == 0 else reversed(steps):
            results.append(noted(f"pair {index + 1} of {pairs}, {name}", partial(measure, index)))
    return taken


def noted(name: str, measure: Callable[[], T], show: Callable[[T], object] = lambda result: result) -> T:
    """Measure, and say on the error stream what came out and how busy the machine was with other things.

    What ``measure`` starts it must have ended when it returns.
    """
    before = _cpu_s()
    result = measure()
    elsewhere = _elsewhere(before, _cpu_s())
    print(f"  {name}, {elsewhere:.1f} cores busy elsewhere: {show(result)}", file=sys.stderr, flush=True)
    return result


def _cpu_s() -> tuple[float, float, float]:
    """Now; seconds of busy cores of the whole machine; those of this process and of its children that have ended."""
    busy, own = psutil.cpu_times(), os.times()
    idle = busy.idle + getattr(busy, "iowait", 0.0)
    return time.monotonic(), sum(busy[:8]) - idle, sum(own[:4])


def _elsewhere(before: tuple[float, float, float], after: tuple[float, float, float]) -> float:
    """Cores that other programs kept busy on average: where it is not about zero, the figures say little."""
    wall_s, busy_s, own_s = (b - a for a, b in zip(before, after, strict=True))
    return max(0.0, busy_s - own_s) / wall_s


def compare(model: Path, measure: Callable[[Side, int], T], *, slots: int, context: int, pairs: int) -> Pairs[T]:
    """Interleave ``measure(side, pair)`` on a fresh worker and on a fresh llama-server of the same size."""

    def ours(index: int) -> T:
        with worker(model, slots=slots, context=context) as side:
            return measure(side, index)

    def peer(index: int) -> T:
        with llama_server(model, slots=slots, context=context) as side:
            return measure(side, index)

    return interleave(pairs, ours, peer)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Arguments that every script takes."""
    arguments = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    arguments.add_argument("model", type=Path, help="a GGUF file")
    arguments.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs to measure (default {PAIRS})")
    return arguments


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    return sheet(("figure", "target", "ours", "peer", "ratio", "held"), [row.cells() for row in rows])


def sheet(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *lines))
