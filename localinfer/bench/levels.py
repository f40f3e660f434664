"""The workload at several levels of concurrency: clients that ask, read, wait a moment and ask again."""

import itertools
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from localinfer.bench.extent import Extent
from localinfer.bench.shapes import Say, gaps
from localinfer.bench.sums import spread
from localinfer.bench.target import MARK, Joules, Target, Trace
from localinfer.bench.values import Level
from localinfer.bench.watch import Interval, Watch
from localinfer.bench.workloads import Prompt
from localinfer.errors import LocalInferError

PAUSE = 0.05  # of a request's time: the mean of the waits between a client's requests
_LONGEST_PAUSE = 4  # times the mean
_LEAVE_S = 2.0  # a server that says nothing is not waited for
_WAKE_S = 0.2  # a wait without a limit cannot be interrupted by Ctrl-C on every system


def usual_pause_s(target: Target, prompt: Prompt, extent: Extent) -> float:
    """The mean wait between two requests of a client, from the time that one unmeasured request takes."""
    trace = target.answer(prompt.marked(MARK), extent.answer_tokens)
    return PAUSE * (trace.ended_ns - trace.submitted_ns) / 1e9


def measure_levels(
    target: Target,
    prompts: Sequence[Prompt],
    concurrency: Sequence[int],
    extent: Extent,
    pause_s: float,
    watch: Watch | None,
    joules: Joules,
    seed: int,
    *,
    say: Say,
    keep: Callable[[tuple[Level, ...], tuple[str, ...]], None],
) -> None:
    """Measure every level; ``keep`` hears what is known after every round. The rounds of the levels take turns.

    The waits between requests are exponential with mean ``pause_s``, drawn from ``seed``: the same for whatever is
    measured. Without a ``watch`` nothing is said of other programs.
    """
    cells = [_Cell(level, extent) for level in concurrency]
    notes: list[str] = []
    started_s = time.monotonic()
    for number in range(extent.rounds):
        if number >= 2 and time.monotonic() - started_s > extent.part_s:
            notes.append(f"Requests at the same time: {number} of {extent.rounds} rounds, to save time.")
            break
        for cell in cells:
            say(f"{cell.level} at the same time, round {number + 1} of {extent.rounds}")
            cell.measure(target, prompts, pause_s, joules, f"{seed} {cell.level} {number}")
        keep(tuple(cell.value(watch) for cell in cells), tuple(notes))
    keep(tuple(cell.value(watch) for cell in cells), tuple(notes))


class _Cell:
    def __init__(self, level: int, extent: Extent) -> None:
        self.level = level
        self._tokens = extent.answer_tokens
        self._requests = max(extent.least_requests, extent.per_client * level)
        self._traces: list[Trace] = []
        self._totals: list[float | None] = []
        self._joules: list[float | None] = []
        self._intervals: list[Interval] = []

    def measure(self, target: Target, prompts: Sequence[Prompt], pause_s: float, joules: Joules, seed: str) -> None:
        """One round: the same prompts as in every other, each with a mark that no other request has."""
        asked = [prompt.marked(_mark(seed, number)) for number, prompt in enumerate(self._chosen(prompts))]
        started_s, before = time.monotonic(), joules()
        traces = _Round(target, asked, self._tokens, pause_s, seed).run(self.level)
        after = joules()
        self._intervals.append((started_s, time.monotonic()))
        self._traces += traces
        tokens = _total(trace.completion_tokens for trace in traces)
        took_s = (max(trace.ended_ns for trace in traces) - min(trace.submitted_ns for trace in traces)) / 1e9
        self._totals.append(tokens / took_s if tokens and took_s > 0 else None)
        known = before is not None and after is not None and tokens
        self._joules.append((after - before) / tokens if known else None)  # type: ignore[operator]

    def value(self, watch: Watch | None) -> Level:
        traces = self._traces
        return Level(
            concurrency=self.level,
            requests=len(traces),
            prompt_tokens=_total(trace.prompt_tokens for trace in traces),
            completion_tokens=_total(trace.completion_tokens for trace in traces),
            ttft_s=spread(trace.ttft_s for trace in traces),
            itl_ms=gaps(traces),
            tps=spread(trace.tps for trace in traces),
            total_tps=spread(self._totals),
            joules_per_token=spread(self._joules),
            marks=watch.marks(self._intervals) if watch else (),
        )

    def _chosen(self, prompts: Sequence[Prompt]) -> Iterator[Prompt]:
        return itertools.islice(itertools.cycle(prompts), self._requests)


class _Round:
    """Clients that share a list of prompts until it is empty."""

    def __init__(self, target: Target, prompts: Sequence[Prompt], tokens: int, pause_s: float, seed: str) -> None:
        self._target = target
        self._prompts = list(reversed(prompts))
        self._tokens = tokens
        self._pause_s = pause_s
        self._seed = seed
        self._stopped = threading.Event()
        self._outcomes: queue.SimpleQueue[list[Trace] | Exception] = queue.SimpleQueue()

    def run(self, clients: int) -> list[Trace]:
        """All answers. Raises the first error of a client, when the others have been told to end."""
        threads = [
            threading.Thread(target=self._live, args=(number,), name=f"bench-client-{number}", daemon=True)
            for number in range(clients)
        ]
        for thread in threads:
            thread.start()
        traces: list[Trace] = []
        try:
            for _ in threads:
                traces += self._next()
            return traces
        finally:
            self._stopped.set()
            self._target.stop()
            for thread in threads:
                thread.join(_LEAVE_S)

    def _next(self) -> list[Trace]:
        while True:
            try:
                outcome = self._outcomes.get(timeout=_WAKE_S)
            except queue.Empty:
                continue
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

    def _live(self, number: int) -> None:
        try:
            self._outcomes.put(self._client(number))
        except Exception as error:  # raised where the round is waited for
            self._outcomes.put(error)

    def _client(self, number: int) -> list[Trace]:
        draw = random.Random(f"{self._seed} client {number}")
        traces: list[Trace] = []
        while not self._stopped.wait(_drawn(draw, self._pause_s)):
            try:
                prompt = self._prompts.pop()
            except IndexError:
                return traces
            traces.append(self._target.answer(prompt, self._tokens))
        raise LocalInferError("The measurement was stopped.")


def _drawn(draw: random.Random, mean_s: float) -> float:
    return min(draw.expovariate(1 / mean_s), _LONGEST_PAUSE * mean_s) if mean_s > 0 else 0.0


def _mark(seed: str, number: int) -> str:
    """Six letters that no other request of this run has in front."""
    return "".join(random.Random(f"{seed} mark {number}").choices("abcdefghijkmnpqrstuvwxyz", k=6))


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum; None where one is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
