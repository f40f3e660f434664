"""What can be asked and timed: the seam between a measurement and what is measured, and our own engine behind it."""

import threading
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from localinfer.bench.values import Drafter
from localinfer.bench.workloads import Prompt
from localinfer.engine import WorkerEngine
from localinfer.errors import ContextOverflow, LocalInferError
from localinfer.generation import Generation
from localinfer.metrics import now_ns
from localinfer.types import GenerationRequest, Metrics, Piece, Sampling, Speculation, Value

_GREEDY = Sampling(temperature=0)

MARK = "warm-up"  # as long as a prompt's mark ever is

Joules = Callable[[], float | None]
Usual = Literal["auto", "lookup", "off"]


class Trace(Value, frozen=True):
    """One answer as it was seen. Instants are of ``perf_counter_ns``; ``first_ns`` is that of the first text.

    ``gaps_ms`` are those between tokens, empty where a token's own time is not known. ``decode_joules`` is what was
    used between the first and the last token. What is not told is None.
    """

    submitted_ns: int
    ended_ns: int
    ttft_s: float | None = None
    tps: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    gaps_ms: tuple[float, ...] = ()
    text: str = ""
    decode_joules: float | None = None
    metrics: Metrics = Metrics()


class Target(Protocol):
    """Something that answers prompts, several at a time."""

    def answer(self, prompt: Prompt, max_tokens: int, drafter: Drafter | None = None) -> Trace:
        """Answer greedily, up to the end of the answer or ``max_tokens``; from any thread. None: its own drafting.

        Raises ``LocalInferError``, also after ``stop``.
        """

    def stop(self) -> None:
        """End what is being answered."""


class Local:
    """Our own engine; see ``Target``. ``joules`` reads the energy meters, ``usual`` drafts unless another is named."""

    def __init__(self, engine: WorkerEngine, joules: Joules = lambda: None, usual: Usual = "auto") -> None:
        self._engine = engine
        self._joules = joules
        self._usual = usual
        self._lock = threading.Lock()
        self._running: set[Generation] = set()

    def answer(self, prompt: Prompt, max_tokens: int, drafter: Drafter | None = None) -> Trace:
        speculation = Speculation(drafter=drafter or self._usual)
        return self._run(
            GenerationRequest(
                messages=prompt.messages,
                sampling=_GREEDY,
                max_tokens=max_tokens,
                speculation=speculation,
                label="bench",
            )
        )

    def generate(self, token_ids: Sequence[int], osl: int) -> Trace:
        """Read ``token_ids`` and generate ``osl`` tokens, whatever they are, without drafts."""
        return self._run(
            GenerationRequest(
                token_ids=tuple(token_ids),
                sampling=_GREEDY,
                max_tokens=osl,
                ignore_eos=True,
                speculation=Speculation(drafter="off"),
                label="bench",
            )
        )

    def stop(self) -> None:
        with self._lock:
            running = tuple(self._running)
        for generation in running:
            generation.cancel()

    def _run(self, request: GenerationRequest) -> Trace:
        submitted_ns = now_ns()
        generation = self._engine.submit(request)
        with self._lock:
            self._running.add(generation)
        try:
            return self._follow(generation, submitted_ns)
        finally:
            with self._lock:
                self._running.discard(generation)

    def _follow(self, generation: Generation, submitted_ns: int) -> Trace:
        text: list[str] = []
        gaps_ms: list[float] = []
        last_ns = 0
        joules: float | None = None
        for event in generation:
            if isinstance(event, Piece):
                text.append(event.text)
                if event.tokens:
                    if last_ns:
                        gaps_ms.append((event.at_ns - last_ns) / 1e6)
                    else:
                        joules = self._joules()
                    gaps_ms += [0.0] * (event.tokens - 1)
                    last_ns = event.at_ns
        metrics = generation.metrics
        if metrics.finish_reason == "cancelled":
            raise LocalInferError("The measurement was stopped.")
        after = self._joules()
        return Trace(
            submitted_ns=submitted_ns,
            ended_ns=last_ns or now_ns(),
            ttft_s=metrics.ttft_s,
            tps=metrics.tps,
            prompt_tokens=metrics.prompt_tokens,
            completion_tokens=metrics.completion_tokens,
            gaps_ms=tuple(gaps_ms),
            text="".join(text),
            decode_joules=None if joules is None or after is None else after - joules,
            metrics=metrics,
        )


def too_long(prompt: Prompt, tokens: int, context: int) -> ContextOverflow:
    """The error for a prompt of ``tokens`` that leaves no room for an answer."""
    return ContextOverflow(
        f"The prompt in {prompt.origin} has {tokens:,} tokens: with its answer it does not fit in a context of "
        f"{context:,}.",
        "Shorten it, or measure with a larger context (--context).",
        prompt_tokens=tokens,
        context=context,
    )
