"""localinfer's side where the passes matter: the backend in this process, and what each of its passes yielded."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from backends.base import DraftingChanged, Finished, Sampled, SequenceJob
from backends.llama_cpp import LlamaCppBackend
from localinfer.types import Sampling, Speculation
from tests.backends.llama_cpp.driving import opened
from tests.bench.clients import Job, Side, generate

_ids = itertools.count(1)


class Pass(msgspec.Struct, frozen=True):
    """What one pass yielded of one sequence, and when, on the monotonic clock."""

    at_s: float
    tokens: int
    drafted: int
    accepted: int


class Run(msgspec.Struct):
    """One generation: its tokens, and its passes, of which the first is the end of the prefill."""

    tokens: list[int] = msgspec.field(default_factory=list)
    passes: list[Pass] = msgspec.field(default_factory=list)
    off: str = ""

    @property
    def drafted(self) -> int:
        """Tokens that were drafted."""
        return sum(each.drafted for each in self.passes)

    @property
    def accepted(self) -> int:
        """Drafted tokens that were right."""
        return sum(each.accepted for each in self.passes)

    def decoded(self, after: int = 1) -> tuple[int, float]:
        """Tokens that came after the first ``after``, and the seconds they took."""
        said = itertools.accumulate(each.tokens for each in self.passes)
        begin, count = next((each, done) for each, done in zip(self.passes, said, strict=True) if done >= after)
        return len(self.tokens) - count, self.passes[-1].at_s - begin.at_s


@contextmanager
def backend(model: Path, **options: Any) -> Iterator[LlamaCppBackend]:
    """The model loaded as a worker loads it, on all free cores, its passes measured."""
    with opened(model, threads=None, **options) as loaded:
        assert isinstance(loaded, LlamaCppBackend)
        while loaded.prepare():
            pass
        yield loaded


def run(
    loaded: LlamaCppBackend, prompts: Sequence[Sequence[int]], speculation: Speculation, tokens: int
) -> tuple[list[Run], float]:
    """Generate ``tokens`` tokens after each prompt, greedily and all at once; the runs, and the seconds of them all."""
    runs: dict[int, Run] = {}
    begun_s = time.perf_counter()
    for prompt in prompts:
        job = SequenceJob(
            id=next(_ids),
            tokens=prompt,
            sampling=Sampling(temperature=0),
            max_tokens=tokens,
            ignore_eos=True,
            speculation=speculation,
        )
        runs[job.id] = Run()
        loaded.submit(job)
    going = len(runs)
    while going:
        for event in loaded.step():
            if isinstance(event, Sampled):
                done = Pass(time.perf_counter(), len(event.tokens), event.drafted, event.accepted)
                runs[event.id].tokens += event.tokens
                runs[event.id].passes.append(done)
            elif isinstance(event, DraftingChanged):
                runs[event.id].off = event.off
            elif isinstance(event, Finished):
                going -= 1
    return list(runs.values()), time.perf_counter() - begun_s


class Speed(msgspec.Struct, frozen=True):
    """Decoded tokens and the seconds they took, of one generation or of several one after another."""

    tokens: int
    seconds: float
    drafted: int = 0
    accepted: int = 0

    @property
    def tps(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds

    @property
    def acceptance(self) -> str:
        """The share of the drafted tokens that were right, for people."""
        return f"{self.accepted / self.drafted:.0%}" if self.drafted else "–"

    @classmethod
    def of(cls, run: Run, after: int = 1) -> "Speed":
        """That of a run, after its first tokens."""
        return cls(*run.decoded(after), run.drafted, run.accepted)

    @classmethod
    def all(cls, speeds: Iterable["Speed"]) -> "Speed":
        """That of several."""
        return cls(*map(sum, zip(*map(msgspec.structs.astuple, speeds), strict=True)))


def server_speed(side: Side, prompt: Sequence[int], tokens: int) -> Speed:
    """That of llama-server, which counts from its first token on."""
    trace = generate(side, Job(tuple(prompt), tokens))
    return Speed(trace.tokens - 1, trace.tokens / trace.decode_tps, trace.drafted, trace.accepted)


def tps(speeds: Mapping[str, Speed]) -> str:
    """Speeds by name, for people."""
    return ", ".join(f"{name} {speed.tps:.1f}" for name, speed in speeds.items())
