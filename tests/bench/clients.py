"""What a client asks for and what it sees: jobs, the trace of each, and several clients at a time.

Both sides of a comparison are driven and timed by this one code, so that they differ in nothing but the engine.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import msgspec

from localinfer.metrics import now_ns, percentile
from localinfer.types import Message


class Job(msgspec.Struct, frozen=True):
    """One greedy generation of exactly ``max_tokens`` tokens from token ids or from messages."""

    prompt: tuple[int, ...] | tuple[Message, ...]
    max_tokens: int


class Trace:
    """What a client has seen of one generation so far; its own thread writes it, any may read it.

    ``arrivals_ns`` are the instants at which text arrived. Setting ``stop`` ends the generation with the next arrival.
    """

    def __init__(self) -> None:
        self.submitted_ns = 0
        self.arrivals_ns: list[int] = []
        self.finished_ns = 0
        self.text = ""
        self.tokens = 0
        self.fresh_tokens = 0
        self.prefill_tps = 0.0
        self.decode_tps = 0.0
        self.drafted = 0  # as the llama-server tells it
        self.accepted = 0
        self.stop = False

    def arrived(self, text: str) -> bool:
        """Take in a piece of text; whether to go on."""
        self.arrivals_ns.append(now_ns())
        self.text += text
        return not self.stop

    @property
    def ttft_s(self) -> float:
        """Submit to first text, as the client saw it."""
        return (self.arrivals_ns[0] - self.submitted_ns) / 1e9

    def longest_gap_s(self, begin_ns: int, end_ns: int) -> float:
        """The longest time without text that touches the span from ``begin_ns`` to ``end_ns``."""
        pairs = zip(self.arrivals_ns, self.arrivals_ns[1:], strict=False)
        return max((b - a for a, b in pairs if b > begin_ns and a < end_ns), default=0) / 1e9


class Side(Protocol):
    """A running engine with its model loaded and warm."""

    def generate(self, job: Job, trace: Trace) -> None:
        """Run one job to its end, in the caller's thread."""


def generate(side: Side, job: Job) -> Trace:
    """Run one job alone."""
    trace = Trace()
    side.generate(job, trace)
    return trace


def together(side: Side, jobs: Sequence[Job], delays_s: Sequence[float] | None = None) -> list[Trace]:
    """Run every job in a client of its own; all arrive at once, or each after its delay."""

    def client(job: Job, delay_s: float) -> Trace:
        time.sleep(delay_s)
        return generate(side, job)

    with ThreadPoolExecutor(len(jobs)) as clients:
        return list(clients.map(client, jobs, delays_s or [0.0] * len(jobs)))


class Load(msgspec.Struct, frozen=True):
    """Figures of several clients together. ``total_tps``: all tokens ÷ first submit to last token."""

    total_tps: float
    ttft_p50_s: float
    ttft_p90_s: float
    fresh_tokens: int

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> "Load":
        """The figures of clients that have all finished."""
        wall_s = (max(t.finished_ns for t in traces) - min(t.submitted_ns for t in traces)) / 1e9
        ttfts = sorted(trace.ttft_s for trace in traces)
        return cls(
            total_tps=sum(trace.tokens for trace in traces) / wall_s,
            ttft_p50_s=percentile(ttfts, 0.5),
            ttft_p90_s=percentile(ttfts, 0.9),
            fresh_tokens=sum(trace.fresh_tokens for trace in traces),
        )


def wait_for(condition: Callable[[], bool], *, timeout_s: float = 120.0) -> None:
    """Wait until ``condition`` holds. Raises ``TimeoutError``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("what this benchmark waits for did not happen")
        time.sleep(0.005)
