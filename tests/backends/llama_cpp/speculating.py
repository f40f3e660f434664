"""Making the llama.cpp backend draft at every opportunity, and comparing what it says with and without drafts."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from backends.base import Backend, DraftingChanged, Finished, Logprob, Sampled, SequenceJob
from backends.drafting import Parts, PassCosts
from backends.llama_cpp import LlamaCppBackend

TIE = 0.1  # logits this close may change places between kernels


class _Cheap(PassCosts):
    """A device on which further rows cost nothing, whatever is measured."""

    def __init__(self) -> None:
        super().__init__(64, {1: 1.0, 64: 1.0})
        self.calibrate({1: 1.0, 64: 1.0})

    def observe(self, parts: Parts, elapsed_s: float) -> None:
        """What is measured changes nothing."""


class Said(msgspec.Struct):
    """What one sequence came to."""

    tokens: list[int] = msgspec.field(default_factory=list)
    logprobs: list[Logprob] = msgspec.field(default_factory=list)
    drafted: int = 0
    accepted: int = 0
    drafter: str = ""
    reasons: list[str] = msgspec.field(default_factory=list)
    ended: str = ""


def draft_always(backend: Backend) -> None:
    """Let every draft pay: each pass seems to take a second, whatever it checks, and drafting hardly any time."""
    assert isinstance(backend, LlamaCppBackend)
    if backend.drafter is not None:
        behind_s = backend.drafter.behind_s
        setattr(backend.drafter, "token_s", lambda sequences: 1e-4)  # noqa: B010
        setattr(backend.drafter, "behind_s", lambda id: min(behind_s(id), 1e-4))  # noqa: B010
    speculator = backend.speculator
    speculator.costs = _Cheap()
    passed = speculator.passed

    def second(
        places: Sequence[int],
        rows: Sequence[int],
        tokens: int,
        elapsed_s: float,
        drafting_s: float,
        *,
        beside_prefill: bool = False,
    ) -> float:
        return passed(places, rows, tokens, 1.0, 0.0, beside_prefill=beside_prefill)

    setattr(speculator, "passed", second)  # noqa: B010


def say(backend: Backend, jobs: Sequence[SequenceJob]) -> list[Said]:
    """Run the jobs together."""
    results = {job.id: Said() for job in jobs}
    for job in jobs:
        backend.submit(job)
    for _ in range(20_000):
        for event in backend.step():
            said = results[event.id]
            if isinstance(event, Sampled):
                said.tokens += event.tokens
                said.logprobs += event.logprobs
                said.drafted += event.drafted
                said.accepted += event.accepted
            elif isinstance(event, DraftingChanged):
                said.drafter = event.drafter
                said.reasons.append(event.off)
            elif isinstance(event, Finished):
                said.ended = event.reason
        if all(said.ended for said in results.values()):
            return list(results.values())
    raise AssertionError("the sequences did not finish")


def split(plain: Said, other: Said) -> tuple[int, float] | None:
    """Where two texts part, and how far apart the two likeliest tokens were there; None where they do not."""
    for place, (one, two) in enumerate(zip(plain.tokens, other.tokens, strict=False)):
        if one != two:
            best, second = plain.logprobs[place].top[:2]
            return place, best[1] - second[1]
    return None if len(plain.tokens) == len(other.tokens) else (min(len(plain.tokens), len(other.tokens)), 1e9)


def draft_file(folder: Path, source: Path) -> Path:
    """The same model at the coarsest quantisation: one that drafts for it, and is often wrong."""
    import ctypes

    from backends.llama_cpp.library import lib

    target = folder / "draft-Q2_K.gguf"
    params = lib.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize = lib.LLAMA_FTYPE_MOSTLY_Q2_K, True
    assert lib.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params)) == 0
    return target
