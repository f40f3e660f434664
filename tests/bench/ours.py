"""localinfer's side of a comparison: the engine and its worker, used as every face uses them."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localinfer.engine import WorkerEngine
from localinfer.metrics import now_ns
from localinfer.types import GenerationRequest, LoadOptions, ModelInfo, Reasoning, Sampling, Text
from tests.bench.clients import Job, Trace, generate
from tests.bench.prompts import WARM_UP

GREEDY = Sampling(temperature=0)


class Ours:
    """A worker with its model loaded; see ``clients.Side``."""

    def __init__(self, engine: WorkerEngine, info: ModelInfo) -> None:
        self.info = info
        self._engine = engine

    @property
    def pid(self) -> int:
        """The worker's process id."""
        pid = self._engine.status().pid
        assert pid is not None
        return pid

    def generate(self, job: Job, trace: Trace) -> None:
        """Run one job to its end."""
        request = _request(job)
        trace.submitted_ns = now_ns()
        generation = self._engine.submit(request)
        for event in generation:
            if isinstance(event, Text | Reasoning) and event.text and not trace.arrived(event.text):
                break
        trace.finished_ns = now_ns()
        metrics = generation.metrics
        trace.tokens = metrics.completion_tokens
        trace.fresh_tokens = (metrics.prompt_tokens or 0) - (metrics.cached_tokens or 0)
        trace.prefill_tps = metrics.prefill_tps or 0.0
        trace.decode_tps = metrics.tps or 0.0


@contextmanager
def worker(model: Path, *, slots: int, context: int) -> Iterator[Ours]:
    """A fresh worker at its own defaults with ``slots`` slots of ``context`` tokens, warmed up."""
    options = LoadOptions(backend="llama.cpp", model=str(model), name=model.stem, slots=slots, context=context)
    with tempfile.TemporaryDirectory() as logs, WorkerEngine(options, Path(logs)) as engine:
        side = Ours(engine, engine.load())
        generate(side, WARM_UP)
        yield side


def _request(job: Job) -> GenerationRequest:
    messages = tuple(part for part in job.prompt if not isinstance(part, int))
    token_ids = tuple(part for part in job.prompt if isinstance(part, int))
    return GenerationRequest(
        messages=messages,
        token_ids=token_ids or None,
        max_tokens=job.max_tokens,
        sampling=GREEDY,
        ignore_eos=True,
    )
