"""The draft model: its cache in step with what is said, its odds, and what happens where it cannot be had."""

import itertools
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from backends.base import SequenceJob
from backends.llama_cpp.draft_model import NativeDrafter, open_drafter
from backends.llama_cpp.native import NativeModel
from localinfer.types import DraftModel, Sampling, Speculation
from tests.backends.llama_cpp.driving import opened
from tests.backends.llama_cpp.speculating import draft_always, say
from tests.tiny_models import write_tiny_model

PROMPT = [(7 * index) % 300 + 40 for index in range(40)]
FREE = [0.0] * 6  # prices at which everything is worth drafting
_ids = itertools.count(1)


def job(drafter: str = "model", limit: int = 64, tokens: list[int] = PROMPT) -> SequenceJob:
    return SequenceJob(
        id=next(_ids),
        tokens=tokens,
        sampling=Sampling(temperature=0),
        max_tokens=limit,
        ignore_eos=True,
        speculation=Speculation(drafter=drafter),  # type: ignore[arg-type]
    )


@pytest.fixture
def drafter(tiny: NativeModel, tmp_path: Path) -> Iterator[NativeDrafter]:
    with ExitStack() as resources:
        yield open_it(tiny, tmp_path, resources)


def open_it(tiny: NativeModel, folder: Path, resources: ExitStack, *, slots: int = 3) -> NativeDrafter:
    draft = DraftModel(model=str(write_tiny_model(folder, "llama")), name="tiny")
    return open_drafter(draft, tiny, resources, slots=slots, length=512, threads=1, cells=512 * slots)


def read_all(drafter: NativeDrafter, id: int) -> None:
    while drafter.behind_s(id):
        drafter.read(id)


def test_its_cache_stays_in_step_with_what_is_said(drafter: NativeDrafter, tiny: NativeModel, tmp_path: Path) -> None:
    """Whatever part of its drafts was right, checked or thrown away, it drafts what a fresh one drafts."""
    rng = random.Random(5)
    said = {1: list(PROMPT), 2: PROMPT[::-1], 3: PROMPT[5:]}
    for id, tokens in said.items():
        drafter.begin(id, tokens, (), id - 1)
    for turn in range(25):
        together = [id for id in said if rng.random() < 0.7] or [1]
        for id in together:
            read_all(drafter, id)
        drafts = drafter.draft(dict.fromkeys(together, FREE))
        for id in said:
            draft = drafts[id].tokens if id in drafts else ()
            right = rng.randrange(len(draft) + 1)
            tokens = [*draft[:right], rng.randrange(40, 340)]
            drafter.extend(id, tokens)
            said[id] += tokens
        if turn % 8 == 7:
            with ExitStack() as resources:
                fresh = open_it(tiny, tmp_path, resources)
                for id in said:
                    fresh.begin(id, said[id], (), id - 1)
                    read_all(fresh, id)
                    read_all(drafter, id)
                    again = fresh.draft({id: FREE})[id].tokens
                    assert drafter.draft({id: FREE})[id].tokens == again


def test_the_next_sequence_in_its_row_reuses_what_they_share(drafter: NativeDrafter) -> None:
    drafter.begin(1, PROMPT, (), 0)
    read_all(drafter, 1)
    drafter.draft({1: FREE})
    drafter.end(1)
    drafter.begin(2, [*PROMPT[:-1], 50, 51], (), 0)
    assert not drafter.behind_s(2)
    drafter.end(2)
    drafter.begin(3, PROMPT[::-1], (), 0)
    assert drafter.behind_s(3)


def test_it_drafts_no_more_than_pays(drafter: NativeDrafter) -> None:
    drafter.begin(1, PROMPT, (), 0)
    read_all(drafter, 1)
    assert drafter.draft({1: [2.0] * 6}) == {}
    assert len(drafter.draft({1: FREE[:2]})[1].tokens) == 2
    survival = drafter.draft({1: FREE})[1].survival
    assert list(survival) == sorted(survival, reverse=True)


def test_it_never_drafts_beyond_the_context(drafter: NativeDrafter) -> None:
    drafter.begin(1, [50] * 509, (), 0)
    read_all(drafter, 1)
    for left in (3, 2, 1, 0):
        drafts = drafter.draft({1: FREE})
        assert len(drafts[1].tokens if drafts else ()) <= left
        drafter.extend(1, [51])


def test_a_token_it_does_not_know_ends_its_drafts(drafter: NativeDrafter, tiny: NativeModel) -> None:
    """Vocabularies may differ in what stands unused at their end."""
    drafter.begin(1, PROMPT, (), 0)
    drafter.begin(2, [*PROMPT, tiny.n_vocab], (), 1)
    assert drafter.chance(1) > 0
    assert drafter.chance(2) == 0
    drafter.extend(1, [tiny.n_vocab])
    assert drafter.chance(1) == 0


def test_a_model_that_drafts_for_itself_is_always_right(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path, "llama")
    with opened(path, slots=2, context=512, draft=DraftModel(model=str(path), name="itself")) as backend:
        draft_always(backend)
        assert backend.info.draft == "itself"
        said = say(backend, [job(), job(tokens=PROMPT[::-1])])
        for one in said:
            assert one.drafter == "itself"
            assert one.drafted > 20
            assert one.accepted >= one.drafted - 2  # two kernels may disagree on a tie


def test_one_that_is_always_wrong_is_switched_off_with_the_reason(tmp_path: Path) -> None:
    target, draft = write_tiny_model(tmp_path, "llama"), write_tiny_model(tmp_path, "llama", variant=1)
    with opened(target, context=512, draft=DraftModel(model=str(draft), name="stranger")) as backend:
        draft_always(backend)
        first, second = say(backend, [job(limit=128)])[0], say(backend, [job(limit=128)])[0]
        assert first.accepted < first.drafted / 4
        assert "are right" in first.reasons[-1]
        assert second.drafted <= first.drafted  # what one sequence taught, the next one knows


@pytest.mark.parametrize("broken", ["missing", "garbage", "recurrent"])
def test_where_it_cannot_be_loaded_the_model_runs_alone(tmp_path: Path, broken: str) -> None:
    target = write_tiny_model(tmp_path, "llama")
    draft = tmp_path / "missing.gguf"
    if broken == "garbage":
        draft.write_bytes(b"GGUF" + bytes(500))
    elif broken == "recurrent":
        draft = write_tiny_model(tmp_path, "mamba")
    with opened(target, context=512, draft=DraftModel(model=str(draft), name="other")) as backend:
        assert not backend.info.draft
        assert backend.info.no_draft.startswith("other does not draft: ")
        said = say(backend, [job("auto", 16)])[0]
        assert len(said.tokens) == 16
        assert said.drafter == "prompt lookup"
        asked = say(backend, [job("model", 16)])[0]
        assert len(asked.tokens) == 16
        assert asked.reasons == ["no draft model is loaded"]


def test_lookup_first_and_the_model_where_it_has_nothing(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path, "llama")
    with opened(path, context=512, draft=DraftModel(model=str(path), name="itself")) as backend:
        draft_always(backend)
        said = say(backend, [job("auto")])[0]
        assert said.drafter == "prompt lookup + itself"
        assert said.accepted > 20
