"""With drafts and without, the same text: greedy but for ties, and with a seed, alone and in company.

Every draft is made to pay here, so that many are wrong.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from backends.base import Backend, Logprob, Refused, Sampled, SequenceJob, StepEvent, Tokenizer
from backends.llama_cpp.native import Logits, NativeContext
from backends.llama_cpp.sampling import Sampler
from localinfer.errors import LocalInferError, OutOfMemory
from localinfer.types import DraftModel, Sampling, Speculation
from tests.backends.llama_cpp.driving import chat, opened
from tests.backends.llama_cpp.speculating import TIE, Said, draft_always, draft_file, say, split
from tests.tiny_models import write_tiny_model

QUESTIONS = [
    "Repeat exactly: for i in range(10):\n    total += values[i]\n    print(total, values[i])\n",
    "List the numbers from one to thirty in words.",
    "Write the same short sentence about the sea five times.",
    "Explain how a bicycle stays upright.",
    "Copy this table twice:\n| name | price |\n| --- | --- |\n| apple | 3 |\n| pear | 4 |\n",
    "Correct the spelling: Teh qick brown fox jumsp ovr the lazy dog, and teh dog sleeps.",
]
_ids = itertools.count(1)


def requests(
    tokenizer: Tokenizer, prompts: list[str], sampling: Sampling, drafter: str, limit: int
) -> list[SequenceJob]:
    return [
        SequenceJob(
            id=next(_ids),
            tokens=chat(tokenizer, prompt),
            sampling=sampling,
            max_tokens=limit,
            speculation=Speculation(drafter=drafter),  # type: ignore[arg-type]
        )
        for prompt in prompts
    ]


@pytest.fixture(scope="module")
def drafted(starter_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """The starter with a coarser copy of itself to draft for it, four slots."""
    draft = draft_file(tmp_path_factory.mktemp("draft"), starter_model)
    with opened(starter_model, slots=4, draft=DraftModel(model=str(draft), name="coarse")) as backend:
        draft_always(backend)
        yield backend


def compare(plain: list[Said], other: list[Said]) -> None:
    for one, two in zip(plain, other, strict=True):
        place = split(one, two)
        if place is not None:
            print(f"parted after {place[0]} tokens; the likeliest two were {place[1]:.3f} apart")
            assert place[1] < TIE
        if place is None:
            assert two.ended == one.ended
            assert len(two.logprobs) == len(one.logprobs)
            for a, b in zip(one.logprobs, two.logprobs, strict=True):
                assert abs(a.value - b.value) < 0.2


def check(backend: Backend, prompts: list[str], temperature: float, drafter: str, together: int, limit: int) -> None:
    sampling = Sampling(temperature=temperature, seed=7, top_logprobs=2)
    plain: list[Said] = []
    other: list[Said] = []
    for start in range(0, len(prompts), together):
        group = prompts[start : start + together]
        plain += say(backend, requests(backend.tokenizer, group, sampling, "off", limit))
        other += say(backend, requests(backend.tokenizer, group, sampling, drafter, limit))
    assert not any(said.drafted for said in plain)
    assert sum(said.drafted for said in other) > len(prompts)
    assert sum(said.accepted for said in other) > 0
    assert sum(said.accepted for said in other) < sum(said.drafted for said in other)
    if temperature == 0:
        compare(plain, other)
    else:  # a draw near a bound falls the other way when a logit moves a little
        same = sum(split(one, two) is None for one, two in zip(plain, other, strict=True))
        assert same >= len(prompts) / 2


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("drafter", ["lookup", "model"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_the_text_is_the_same(drafted: Backend, temperature: float, drafter: str, together: int) -> None:
    check(drafted, QUESTIONS[: max(2, together)], temperature, drafter, together, 20)


@pytest.mark.soak
@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("drafter", ["lookup", "model"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_fifty_texts_are_the_same(drafted: Backend, temperature: float, drafter: str, together: int) -> None:
    frames = [
        "{}",
        "{} Be brief.",
        "First: {}",
        "{} Then repeat it.",
        "{} Use a list.",
        "{} Answer in code.",
        "{}\n\n{}",
    ]
    prompts = [frame.format(*(question,) * 2) for frame in frames for question in QUESTIONS]
    prompts += [f"{question} Number {number}." for number, question in enumerate(QUESTIONS * 2)]
    check(drafted, prompts[:50], temperature, drafter, together, 100)


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "mamba", "lfm2"])
@pytest.mark.parametrize("together", [1, 3])
def test_every_kind_of_memory_takes_drafts_back(tmp_path: Path, architecture: str, together: int) -> None:
    """A cache, one with a window, a recurrent state, and both."""
    path = write_tiny_model(tmp_path, architecture)  # type: ignore[arg-type]
    sampling = Sampling(temperature=0, top_logprobs=2)
    prompts = [[(5 * index + start) % 200 + 20 for index in range(60)] for start in range(together)]

    def jobs(predictions: list[list[int]]) -> list[SequenceJob]:
        return [
            SequenceJob(
                id=next(_ids),
                tokens=tokens,
                sampling=sampling,
                max_tokens=80,
                ignore_eos=True,
                speculation=Speculation(drafter="lookup" if prediction else "off"),
                prediction=prediction,
            )
            for tokens, prediction in zip(prompts, predictions, strict=True)
        ]

    with opened(path, slots=4, context=512) as backend:
        draft_always(backend)
        plain = say(backend, jobs([[] for _ in prompts]))
        wrong = [[20 if place % 7 == 6 else token for place, token in enumerate(said.tokens)] for said in plain]
        other = say(backend, jobs(wrong))
        assert sum(said.drafted for said in other) > sum(said.accepted for said in other) > 20
        for one, two in zip(plain, other, strict=True):
            place = split(one, two)
            assert place is None or place[1] < TIE, place


def test_a_limit_ends_inside_an_accepted_run(drafted: Backend) -> None:
    for limit in (1, 2, 5, 9):
        jobs = requests(drafted.tokenizer, QUESTIONS[:1], Sampling(temperature=0), "auto", limit)
        said = say(drafted, jobs)[0]
        assert len(said.tokens) <= limit
        assert said.ended == ("length" if len(said.tokens) == limit else "stop")


def test_the_context_ends_inside_an_accepted_run(starter_model: Path) -> None:
    with opened(starter_model, context=256) as backend:
        draft_always(backend)
        words = backend.tokenizer.encode("one two three four five six seven eight nine ten " * 20, special=False)[:200]
        job = SequenceJob(id=next(_ids), tokens=words, sampling=Sampling(temperature=0), ignore_eos=True)
        said = say(backend, [job])[0]
        assert said.ended == "length"
        assert said.accepted
        assert len(words) + len(said.tokens) == 257  # the last one is said, and needs no room


@pytest.mark.parametrize("architecture", ["llama", "lfm2"])
def test_a_sequence_that_fails_inside_a_draft_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, architecture: Literal["llama", "lfm2"]
) -> None:
    """No token is possible in the middle of what was drafted: the row still serves the next sequence."""
    tokens = [(5 * index) % 200 + 20 for index in range(60)]

    def job(prediction: list[int]) -> SequenceJob:
        speculation = Speculation(drafter="lookup" if prediction else "off")
        sampling = Sampling(temperature=0)
        return SequenceJob(
            id=next(_ids),
            tokens=tokens,
            sampling=sampling,
            max_tokens=40,
            ignore_eos=True,
            speculation=speculation,
            prediction=prediction,
        )

    with opened(write_tiny_model(tmp_path, architecture), context=512) as backend:
        draft_always(backend)
        plain = say(backend, [job([])])[0]
        sample, drawn = Sampler.sample, itertools.count(1)

        def failing(self: Sampler, logits: Logits) -> tuple[int, Logprob | None]:
            if next(drawn) == 8:
                raise LocalInferError("There is no token to go on with.", "")
            return sample(self, logits)

        with monkeypatch.context() as patch:
            patch.setattr(Sampler, "sample", failing)
            failed = job(plain.tokens)
            backend.submit(failed)
            events: list[StepEvent] = []
            while not any(isinstance(event, Refused) for event in events):
                events += backend.step()
        assert any(isinstance(event, Sampled) and event.accepted for event in events)
        longer = SequenceJob(
            id=next(_ids),
            tokens=[*tokens, *plain.tokens[:8]],  # all that the row holds, and one more
            sampling=Sampling(temperature=0),
            max_tokens=20,
            ignore_eos=True,
            speculation=Speculation(drafter="off"),
        )
        assert say(backend, [longer])[0].tokens == plain.tokens[8:28]


def test_where_there_is_no_room_drafts_are_the_first_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No sequence is refused for drafts."""
    prompt = [(5 * index) % 200 + 20 for index in range(60)]
    decode, full = NativeContext.decode, 0

    def decode_in_little_room(self: NativeContext) -> None:
        nonlocal full
        if 1 < self.batch.rows < len(prompt):
            full += 1
            raise OutOfMemory("There is no room.", "")
        decode(self)

    def job(prediction: list[int]) -> SequenceJob:
        return SequenceJob(
            id=next(_ids),
            tokens=prompt,
            sampling=Sampling(temperature=0),
            max_tokens=20,
            ignore_eos=True,
            prediction=prediction,
        )

    with opened(write_tiny_model(tmp_path, "llama"), context=512) as backend:
        draft_always(backend)
        plain = say(backend, [job([])])[0]
    with opened(write_tiny_model(tmp_path, "llama"), context=512) as backend:
        draft_always(backend)
        monkeypatch.setattr(NativeContext, "decode", decode_in_little_room)
        said = say(backend, [job(plain.tokens)])[0]
    assert full > 5
    assert (said.tokens, said.drafted) == (plain.tokens, 0)


def test_a_cancelled_sequence_leaves_nothing_behind(drafted: Backend) -> None:
    """Its row serves the next sequence as if nothing had been drafted in it."""
    sampling = Sampling(temperature=0, top_logprobs=2)
    plain = say(drafted, requests(drafted.tokenizer, QUESTIONS[:1], sampling, "off", 40))
    for steps in (3, 6):
        job = requests(drafted.tokenizer, QUESTIONS[:1], sampling, "auto", 40)[0]
        drafted.submit(job)
        for _ in range(steps):
            drafted.step()
        drafted.cancel(job.id)
        compare(plain, say(drafted, requests(drafted.tokenizer, QUESTIONS[:1], sampling, "auto", 40)))
