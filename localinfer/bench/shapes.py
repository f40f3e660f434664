"""Prefill and decode, alone: random tokens in, tokens out, at several lengths. No drafts, no waiting, one sequence."""

import random
import time
from collections.abc import Callable, Sequence

from localinfer.bench.extent import Extent
from localinfer.bench.sums import spread
from localinfer.bench.target import Local, Trace
from localinfer.bench.values import Shape, Spread
from localinfer.bench.watch import Interval, Watch
from localinfer.models.plan import MemoryPlan
from localinfer.roofline import roofline
from localinfer.types import ModelInfo

WARM_UP = (64, 16)
_WARM_S = 1.0
_WARM_RUNS = 3

Say = Callable[[str], None]


class Warmth:
    """How fast the model was when it had warmed up: enough to plan by, and shown to nobody."""

    def __init__(self, trace: Trace) -> None:
        self._prefill_tps = trace.metrics.prefill_tps
        self._decode_tps = trace.tps

    def expected_s(self, isl: int, osl: int) -> float:
        """About how long a repetition takes; 0 where it cannot be told."""
        return sum(count / tps for count, tps in ((isl, self._prefill_tps), (osl, self._decode_tps)) if tps)


def warm_up(target: Local, info: ModelInfo, seed: int) -> Warmth:
    """Run what is not measured, until pages, caches, clocks and the choice of threads have settled."""
    started_s = time.monotonic()
    for number in range(_WARM_RUNS):
        trace = target.generate(_tokens(info, WARM_UP[0], f"{seed} warm {number}"), WARM_UP[1])
        if number and time.monotonic() - started_s > _WARM_S:
            break
    return Warmth(trace)


def measure_shapes(
    target: Local,
    info: ModelInfo,
    plan: MemoryPlan | None,
    active_parameters: int | None,
    extent: Extent,
    warmth: Warmth,
    watch: Watch,
    seed: int,
    *,
    say: Say,
    keep: Callable[[tuple[Shape, ...], tuple[str, ...]], None],
) -> None:
    """Measure the shapes of ``extent``; ``keep`` hears what is known, and what was left out, after every round."""
    cells: list[_Cell] = []
    notes: list[str] = []
    for isl, osl in extent.shapes:
        expected_s = warmth.expected_s(isl, osl)
        if isl + osl > info.context:
            notes.append(f"{isl:,} + {osl:,} tokens were left out: the context holds {info.context:,}.")
        elif expected_s > extent.longest_s:
            notes.append(f"{isl:,} + {osl:,} tokens were left out: about {expected_s:,.0f} s each (see --full).")
        else:
            cells.append(_Cell(isl, osl))
    started_s = time.monotonic()
    for number in range(extent.rounds):
        if number >= 2 and time.monotonic() - started_s > extent.part_s:
            notes.append(f"Prefill and decode: {number} of {extent.rounds} rounds, to save time.")
            break
        for cell in cells:
            say(f"prefill and decode after {cell.isl:,} tokens, round {number + 1} of {extent.rounds}")
            cell.measure(target, _tokens(info, cell.isl, f"{seed} {cell.isl} {number}"))
        keep(tuple(cell.shape(plan, active_parameters, watch) for cell in cells), tuple(notes))
    keep(tuple(cell.shape(plan, active_parameters, watch) for cell in cells), tuple(notes))


class _Cell:
    def __init__(self, isl: int, osl: int) -> None:
        self.isl, self.osl = isl, osl
        self._traces: list[Trace] = []
        self._intervals: list[Interval] = []

    def measure(self, target: Local, token_ids: Sequence[int]) -> None:
        started_s = time.monotonic()
        self._traces.append(target.generate(token_ids, self.osl))
        self._intervals.append((started_s, time.monotonic()))

    def shape(self, plan: MemoryPlan | None, active_parameters: int | None, watch: Watch) -> Shape:
        traces = self._traces
        prefill = spread(trace.metrics.prefill_tps for trace in traces)
        decode = spread(trace.tps for trace in traces)
        depth = self.isl + self.osl // 2
        line = roofline(plan, depth, decode.p50) if plan is not None and decode is not None else None
        read = sum(part.read_bytes(depth) for part in plan.traffic) if plan is not None else 0
        flops = 2 * active_parameters * prefill.p50 if active_parameters and prefill is not None else None
        return Shape(
            isl=self.isl,
            osl=self.osl,
            prefill_tps=prefill,
            prefill_flops=flops,
            decode_tps=decode,
            ttft_s=spread(trace.ttft_s for trace in traces),
            itl_ms=gaps(traces),
            bytes_per_token=read or None,
            bandwidth=line.bandwidth if line else None,
            bandwidth_share=line.share if line else None,
            bandwidth_estimated=line.estimate if line else False,
            joules_per_token=spread(
                None if trace.decode_joules is None or self.osl < 2 else trace.decode_joules / (self.osl - 1)
                for trace in traces
            ),
            marks=watch.marks(self._intervals),
        )


def gaps(traces: Sequence[Trace]) -> Spread | None:
    """The spread of the gaps between tokens, of all answers together; a sample is an answer's median gap. None where
    one of the answers does not tell."""
    told = [trace for trace in traces if (trace.completion_tokens or 0) > 1]
    if any(not trace.gaps_ms for trace in told):
        return None
    medians = [sorted(trace.gaps_ms)[len(trace.gaps_ms) // 2] for trace in told]
    return spread(medians, [gap for trace in told for gap in trace.gaps_ms])


def _tokens(info: ModelInfo, count: int, seed: str) -> list[int]:
    """Random tokens that no other prompt begins with: what is in a cache would not be measured."""
    return random.Random(seed).choices(range(info.vocabulary), k=count)
