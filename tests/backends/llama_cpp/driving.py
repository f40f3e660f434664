"""Driving the llama.cpp backend in this process: sequences in, tokens out."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

import backends
from backends.base import Backend, Finished, Logprob, PrefillStarted, Sampled, SequenceJob, Tokenizer
from localinfer.types import LoadOptions, Sampling

_ids = itertools.count(1)


class Answer(msgspec.Struct):
    """What one sequence came to: its tokens, a log-probability for each if asked for, and the prompt tokens reused."""

    tokens: list[int] = msgspec.field(default_factory=list)
    logprobs: list[Logprob] = msgspec.field(default_factory=list)
    cached: int = 0


@contextmanager
def opened(model: Path, **options: Any) -> Iterator[Backend]:
    """A backend that is closed again; one slot and one thread if nothing else is said."""
    fields = {"slots": 1, "context": 1024, "threads": 1} | options
    backend = backends.load(LoadOptions(backend="llama.cpp", model=str(model), name="test", **fields), lambda _: None)
    try:
        yield backend
    finally:
        backend.close()


def job(tokens: Sequence[int], sampling: Sampling, limit: int) -> SequenceJob:
    """A sequence of ``limit`` tokens, whatever they are."""
    return SequenceJob(id=next(_ids), tokens=tokens, sampling=sampling, max_tokens=limit, ignore_eos=True)


def answers(backend: Backend, jobs: Sequence[SequenceJob], *, every: int = 0) -> list[Answer]:
    """Run the jobs together, all from the start or one more after ``every`` steps; their answers in order."""
    results = {each.id: Answer() for each in jobs}
    waiting, running = list(jobs), set(results)
    for step in range(10_000):
        while waiting and (not every or step % every == 0):
            backend.submit(waiting.pop(0))
            if every:
                break
        for event in backend.step():
            if isinstance(event, Sampled):
                results[event.id].tokens.extend(event.tokens)
                results[event.id].logprobs.extend(event.logprobs)
            elif isinstance(event, PrefillStarted):
                results[event.id].cached = event.cached
            elif isinstance(event, Finished):
                running.discard(event.id)
        if not running:
            return [results[each.id] for each in jobs]
    raise AssertionError(f"{running} did not finish")


def chat(tokenizer: Tokenizer, *turns: str) -> list[int]:
    """A ChatML prompt of turns by user and assistant in alternation, open for the assistant's next."""
    roles = itertools.cycle(("user", "assistant"))
    text = "".join(f"<|im_start|>{role}\n{turn}<|im_end|>\n" for role, turn in zip(roles, turns, strict=False))
    return tokenizer.encode(f"{text}<|im_start|>assistant\n", special=True)
