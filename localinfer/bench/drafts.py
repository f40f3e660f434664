"""Speculation off, by lookup and by a draft model, side by side: the same prompts, one right after the other."""

import time
from collections.abc import Callable, Sequence

from localinfer.bench.extent import Extent
from localinfer.bench.shapes import Say
from localinfer.bench.sums import spread
from localinfer.bench.target import Target, Trace
from localinfer.bench.values import Drafter, Speculated
from localinfer.bench.watch import Interval, Watch
from localinfer.bench.workloads import Workload


def measure_drafts(
    target: Target,
    workloads: Sequence[Workload],
    drafters: Sequence[Drafter],
    extent: Extent,
    watch: Watch,
    *,
    say: Say,
    keep: Callable[[tuple[Speculated, ...]], None],
) -> None:
    """Measure each of ``workloads`` with each of ``drafters``, of which the first is off; ``keep`` hears what is known
    after every prompt."""
    cells: list[_Cell] = []
    for workload in workloads:
        cell = _Cell(workload.name, drafters)
        cells.append(cell)
        prompts = workload.prompts[: extent.drafted_prompts]
        for number, prompt in enumerate(prompts):
            order = [*drafters[number % len(drafters) :], *drafters[: number % len(drafters)]]
            traces: dict[Drafter, Trace] = {}
            started_s = time.monotonic()
            for drafter in order:
                say(f"drafts {_WORDS[drafter]}, {workload.name} {number + 1} of {len(prompts)}")
                traces[drafter] = target.answer(prompt, extent.drafted_tokens, drafter)
            cell.add(traces, (started_s, time.monotonic()))
            keep(tuple(value for one in cells for value in one.values(watch)))


_WORDS: dict[Drafter, str] = {"off": "off", "lookup": "by lookup", "model": "by the draft model"}


class _Cell:
    """One workload."""

    def __init__(self, name: str, drafters: Sequence[Drafter]) -> None:
        self._name = name
        self._drafters = drafters
        self._traces: dict[Drafter, list[Trace]] = {drafter: [] for drafter in drafters}
        self._intervals: list[Interval] = []

    def add(self, traces: dict[Drafter, Trace], interval: Interval) -> None:
        for drafter, trace in traces.items():
            self._traces[drafter].append(trace)
        self._intervals.append(interval)

    def values(self, watch: Watch) -> list[Speculated]:
        marks = watch.marks(self._intervals)
        return [self._value(drafter, marks) for drafter in self._drafters if self._traces[drafter]]

    def _value(self, drafter: Drafter, marks: tuple[str, ...]) -> Speculated:
        traces = self._traces[drafter]
        if drafter == "off":
            tps = spread(trace.tps for trace in traces)
            return Speculated(workload=self._name, drafter=drafter, prompts=len(traces), tps=tps, marks=marks)
        pairs = list(zip(traces, self._traces["off"], strict=True))
        drafts, drafted, accepted = (
            sum(getattr(trace.metrics, name) for trace in traces) for name in ("drafts", "drafted", "accepted")
        )
        return Speculated(
            workload=self._name,
            drafter=drafter,
            prompts=len(traces),
            tps=spread(trace.tps for trace in traces),
            # Where nothing was drafted, what differs is not a gain.
            gain=spread(
                trace.tps / plain.tps if drafted and trace.tps and plain.tps else None for trace, plain in pairs
            ),
            engine_gain=spread(trace.metrics.speculation_gain for trace in traces),
            drafted=drafted,
            accepted=accepted,
            acceptance_rate=accepted / drafted if drafted else None,
            mean_accepted_length=1 + accepted / drafts if drafts else None,
            same_text=sum(trace.text == plain.text for trace, plain in pairs),
            off_reason=traces[-1].metrics.speculation_off,
            marks=marks,
        )
