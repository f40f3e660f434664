"""The same seed gives the same text, whoever else is being served: the starter model, real sampling.

Prompts are short: from 64 tokens in one pass on, llama.cpp's attention on a CPU takes a kernel that rounds otherwise,
and these answers would depend on how their prompts were cut. On devices whose kernels depend on the batch, a draw
within ``TIE`` of the point where another token begins may split.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from backends.base import Backend, Logprob, SequenceJob
from backends.llama_cpp import scheduler
from backends.llama_cpp.native import Logits, NativeModel
from backends.llama_cpp.sampling import Sampler
from localinfer.types import Sampling
from tests.backends.llama_cpp.driving import answers, chat, job, opened
from tests.backends.llama_cpp.samplers import PLAIN, with_

TIE = 1e-3
TOKENS = 24
QUESTIONS = (
    "Write a short story about a fox.",
    "Why is the sky blue?",
    "List five fruits.",
    "What is the capital of France, and what is it known for?",
    "Tell me a joke.",
    "How do I cook rice?",
)


class RecordingSampler(Sampler):
    """Keeps the margin of every draw under the seed of its sequence."""

    margins: dict[int | None, list[float]]

    def __init__(self, model: NativeModel, sampling: Sampling, context: int, prompt: Sequence[int]) -> None:
        super().__init__(model, sampling, context, prompt)
        self._record = self.margins.setdefault(sampling.seed, [])

    def sample(self, logits: Logits) -> tuple[int, Logprob | None]:
        result = super().sample(logits)
        self._record.append(self.margin)
        return result


@pytest.fixture
def margins(monkeypatch: pytest.MonkeyPatch) -> dict[int | None, list[float]]:
    """The margins of every draw from here on, by seed."""
    RecordingSampler.margins = {}
    monkeypatch.setattr(scheduler, "Sampler", RecordingSampler)
    return RecordingSampler.margins


@pytest.fixture(scope="module")
def alone(starter_model: Path) -> Iterator[Backend]:
    with opened(starter_model) as backend:
        yield backend


@pytest.fixture(scope="module")
def shared(starter_model: Path) -> Iterator[Backend]:
    with opened(starter_model, slots=4) as backend:
        yield backend


def jobs(backend: Backend, sampling: Sampling) -> list[SequenceJob]:
    return [
        job(chat(backend.tokenizer, question), with_(sampling, seed=seed), TOKENS)
        for seed, question in enumerate(QUESTIONS)
    ]


@pytest.mark.parametrize(
    "sampling",
    [
        PLAIN,
        Sampling(repeat_penalty=1.1, dry_multiplier=0.8, xtc_probability=0.3, typical_p=0.9),
        with_(PLAIN, mirostat=2),
    ],
)
def test_the_same_alone_and_among_others(
    alone: Backend, shared: Backend, margins: dict[int | None, list[float]], sampling: Sampling
) -> None:
    """Four at a time, all from the start or one after the other."""
    lone = [answers(alone, [each])[0].tokens for each in jobs(alone, sampling)]
    assert len({tuple(tokens) for tokens in lone}) == len(QUESTIONS)
    lone_margins = dict(margins)
    ties = 0
    for every in (0, 5):
        margins.clear()
        together = [answer.tokens for answer in answers(shared, jobs(shared, sampling), every=every)]
        for seed, (one, other) in enumerate(zip(lone, together, strict=True)):
            assert len(one) == len(other) == TOKENS
            split = next((index for index in range(TOKENS) if one[index] != other[index]), None)
            if split is not None:
                assert min(lone_margins[seed][split], margins[seed][split]) < TIE, f"seed {seed} splits at {split}"
                ties += 1
    assert ties <= 2


def test_another_seed_gives_another_text(alone: Backend) -> None:
    prompt = chat(alone.tokenizer, QUESTIONS[0])
    texts = {
        tuple(answers(alone, [job(prompt, Sampling(seed=seed), TOKENS)])[0].tokens) for seed in (1, 2, 3, None, None)
    }
    assert len(texts) == 5
