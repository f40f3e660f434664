"""Which model drafts for another: what may be named, what is chosen by itself, what is refused before a load."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from localinfer import drafts
from localinfer.advice import Advice, Entry
from localinfer.engines import Engines, open_engine
from localinfer.errors import BackendUnavailable, BadRequest, ModelNotFound, Offline
from localinfer.machine import Machine
from localinfer.models import gguf, oracle, store
from localinfer.models.catalog import catalog
from localinfer.models.plan import HOST
from localinfer.models.store import ModelRef
from localinfer.placing import Beside, planning
from localinfer.types import LoadOptions
from tests.models.conftest import hub
from tests.models.hub_server import HubServer
from tests.models.machines import cpu_only, cuda, machine
from tests.tiny_models import Architecture, write_tiny_model

__all__ = ["hub"]

OPTIONS = LoadOptions(backend="llama.cpp", model="", name="", context=512, threads=1)
TARGET, PAIR = catalog().find("qwen3-8b"), catalog().find("qwen3-0.6b")
Tiny = Callable[[Architecture], ModelRef]


class Here(Advice):
    """Advice about a machine that was made up, with these models on it."""

    def __init__(self, machine: Machine, *entries: Entry) -> None:
        super().__init__(measure=False)
        self.__dict__["machine"] = machine
        self._entries = entries

    def here(self) -> tuple[Entry, ...]:
        return self._entries


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build here knows no CUDA0: closed forms alone."""

    def refuse(*_: object, **__: object) -> object:
        raise BackendUnavailable("not here")

    monkeypatch.setattr(oracle, "measure", refuse)


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return lambda name: ModelRef(name=name, paths=(write_tiny_model(tmp_path, name),))


def entry(ref: ModelRef, *, pair: bool = False) -> Entry:
    size = ref.path.stat().st_size
    spec = PAIR if pair else None
    return Entry(
        name=ref.name, title=ref.name, quantization="", size_bytes=size, origin="x", paths=ref.paths, spec=spec
    )


def propose(target: ModelRef, draft: ModelRef | str, advice: Advice | None = None) -> Beside | None:
    return drafts.propose(target, draft, OPTIONS, advice or Here(cpu_only(32)), offline=True, progress=lambda _: None)


# A model that was named


def test_a_model_with_the_same_vocabulary_may_draft(tiny: Tiny) -> None:
    found = propose(tiny("lfm2"), str(tiny("llama").path))
    assert found is not None
    assert found.asked
    assert (found.draft.name, found.draft.model) == ("llama", str(tiny("llama").path))


@pytest.mark.parametrize("word", ["lookup", "off"])
def test_words_load_nothing(word: str, tiny: Tiny) -> None:
    drafts.check(word)
    assert propose(tiny("lfm2"), word, Here(machine(32, cuda(24)))) is None


def test_another_vocabulary_is_refused(tiny: Tiny) -> None:
    with pytest.raises(BadRequest, match="another vocabulary") as refused:
        propose(tiny("llama"), tiny("gemma3"))
    assert refused.value.param == "draft"
    assert "same family" in refused.value.hint


@pytest.mark.parametrize("name", ["lfm2", "mamba"])
def test_a_model_that_cannot_take_back_tokens_is_refused(name: Architecture, tiny: Tiny) -> None:
    with pytest.raises(BadRequest, match="recurrent"):
        propose(tiny("llama"), tiny(name))
    (target, draft) = tiny("llama"), tiny(name)
    assert drafts.offers(str(target.path), OPTIONS, advice=Here(cpu_only(32), entry(draft))) == ()


def test_a_model_cannot_draft_for_itself(tiny: Tiny, tmp_path: Path) -> None:
    link = tmp_path / "link.gguf"
    link.hardlink_to(tiny("llama").path)
    for draft in (tiny("llama"), str(link)):
        with pytest.raises(BadRequest, match="same file"):
            propose(tiny("llama"), draft)


def test_what_is_no_model_is_said_with_the_words_there_are() -> None:
    for name, said in (
        ("nonsense", "auto, lookup, off"),
        ("", "auto, lookup, off"),
        ("./no.gguf", "no file ./no.gguf"),
    ):
        with pytest.raises(BadRequest, match=said) as refused:
            drafts.check(name)
        assert refused.value.hint
    drafts.check("owner/repo:Q4_0")
    drafts.check("qwen3-0.6b")


def test_a_model_that_is_not_here_is_not_fetched_offline(tiny: Tiny) -> None:
    with pytest.raises(Offline):
        propose(tiny("llama"), "qwen3-0.6b")


def test_a_wrong_draft_ends_the_opening_before_any_worker(tiny: Tiny) -> None:
    with pytest.raises(BadRequest, match="another vocabulary"):
        open_engine(
            str(tiny("llama").path), OPTIONS, offline=True, progress=lambda _: None, draft=str(tiny("gemma3").path)
        )
    with pytest.raises(BadRequest, match="nonsense"):  # before the model itself is looked for
        open_engine("owner/missing", OPTIONS, offline=True, progress=lambda _: None, draft="nonsense")


def test_a_draft_of_the_hub_is_compared_before_it_is_fetched(
    hub: HubServer, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    for name in ("gemma3", "llama"):
        hub.offer(f"owner/{name}-GGUF", {f"{name}-Q8_0.gguf": tiny(name).path.read_bytes()})

    def proposed(draft: str) -> Beside | None:
        advice = Here(cpu_only(32))
        return drafts.propose(tiny("lfm2"), draft, OPTIONS, advice, offline=False, progress=lambda _: None)

    with pytest.raises(BadRequest, match="another vocabulary"):
        proposed("owner/gemma3-GGUF:Q8_0")
    assert not list((tmp_path / "cache").rglob("*.gguf"))

    found = proposed("owner/llama-GGUF:Q8_0")
    assert found is not None
    assert Path(found.draft.model).read_bytes() == tiny("llama").path.read_bytes()


# What is chosen by itself


def paired(tiny: Tiny, advice: Callable[[Machine, Entry], Advice], here: Machine, draft: Architecture) -> Beside | None:
    target = msgspec.structs.replace(tiny("lfm2"), spec=TARGET)
    return propose(target, "auto", advice(here, entry(tiny(draft), pair=True)))


def test_the_pair_of_the_catalogue_drafts_where_there_is_a_gpu(tiny: Tiny) -> None:
    assert TARGET.draft == PAIR.id
    found = paired(tiny, Here, machine(32, cuda(24)), "llama")
    assert found is not None
    assert (found.draft.model, found.asked) == (str(tiny("llama").path), False)


def test_it_does_not_on_a_processor_nor_with_another_vocabulary_nor_unfetched(tiny: Tiny) -> None:
    gpu = machine(32, cuda(24))
    assert paired(tiny, Here, cpu_only(64), "llama") is None
    assert paired(tiny, Here, machine(32, cuda(24, usable=False)), "llama") is None
    assert paired(tiny, Here, gpu, "gemma3") is None
    assert propose(msgspec.structs.replace(tiny("lfm2"), spec=TARGET), "auto", Here(gpu)) is None
    assert propose(tiny("lfm2"), "auto", Here(gpu, entry(tiny("llama"), pair=True))) is None  # nobody knows this model


# From a proposal to a load


def test_a_prospect_carries_the_draft(tiny: Tiny) -> None:
    engines = Engines(lambda: Here(cpu_only(32)))
    try:
        alone = engines.prepare(tiny("lfm2"), OPTIONS)
        both = engines.prepare(tiny("lfm2"), OPTIONS, draft=tiny("llama"))
    finally:
        engines.close()
    assert alone.options.draft is None
    assert both.options.draft is not None
    assert (both.options.draft.name, both.options.draft.device) == ("llama", HOST)
    assert both.placing is not None
    assert "draft" in {term.kind for term in both.placing.plan.terms}


# What is offered


def test_offers_begin_with_the_pair_and_go_on_with_what_is_here(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft, other = tiny("lfm2"), tiny("llama"), tiny("gemma3")
    advice = Here(machine(32, cuda(24)), *map(entry, (target, draft, other)))

    (only,) = drafts.offers(str(target.path), OPTIONS, advice=advice)
    assert (only.name, only.fetched, only.fits) == ("llama", True, True)
    assert "fits on the GPU with" in only.sentence
    assert drafts.offers(str(draft.path), OPTIONS, advice=advice) == ()  # a larger one is none

    known = msgspec.structs.replace(target, spec=TARGET)
    monkeypatch.setattr(store, "resolve", lambda _: known)
    pair, also = drafts.offers("whatever", OPTIONS, advice=advice)
    assert (pair.name.partition(":")[0], pair.title, pair.fetched, also.name) == (PAIR.id, PAIR.name, False, "llama")
    assert pair.fits
    assert "MB, fits on the GPU" in pair.sentence


def test_an_offer_that_does_not_fit_says_what_is_left(tiny: Tiny) -> None:
    target, draft = tiny("lfm2"), tiny("llama")
    plan_alone = drafts.offers(str(target.path), OPTIONS, advice=Here(cpu_only(32), entry(draft)))
    assert "on a processor it hardly ever pays" in plan_alone[0].sentence
    # Room for the model, to within a few bytes, and none for another.
    headers = gguf.check_all(target.paths)
    ask, planned = planning(headers, OPTIONS, Here(cpu_only(32)), HOST)
    needed = planned(ask).devices[0].needed_bytes
    (found,) = drafts.offers(str(target.path), OPTIONS, advice=Here(cpu_only(needed / 0.75 / 2**30), entry(draft)))
    assert found.fits is False
    assert "beside the model" in found.sentence


def test_offers_for_what_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        drafts.offers(str(tmp_path / "missing.gguf"), OPTIONS, advice=Here(cpu_only(32)))
