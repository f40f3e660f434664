"""A draft model beside the model it drafts for: where it lies, and that the model itself never gives way to it."""

from pathlib import Path

import msgspec
import pytest

from localinfer import placing
from localinfer.machine import Machine
from localinfer.models import fit, gguf
from localinfer.models.layout import NOTHING_LEARNT, Layout, Placement
from localinfer.models.plan import HOST, Ask
from localinfer.models.shape import ModelShape
from localinfer.models.sizes import outputs
from localinfer.placing import Beside
from localinfer.types import DraftModel, EngineStatus, Metrics
from tests.architectures import write_header
from tests.models.machines import GIB, MIB, cpu_only, cuda, dense, experts, machine, metal
from tests.test_placing import Here, loaded, no_library, options

__all__ = ["no_library"]

SMALL = dense(0.5, layers=12, kv=256)


def placed(
    tmp_path: Path,
    here: Machine,
    shape: ModelShape | None = SMALL,
    *,
    asked: bool = True,
    model: str = "llama-8b",
    force: bool = False,
    **fields: object,
) -> placing.Placing:
    path = write_header(tmp_path, model)
    beside = Beside(draft=DraftModel(model="small.gguf", name="small"), shape=shape, asked=asked) if shape else None
    return placing.place(gguf.check_all([path]), options(path, **fields), Here(here), beside=beside, force=force)


def draft_bytes(found: placing.Placing) -> dict[str, int]:
    return {term.device: term.size_bytes for term in found.plan.terms if term.kind == "draft"}


@pytest.mark.parametrize("asked", [True, False])
def test_both_lie_on_a_card_with_room(tmp_path: Path, asked: bool) -> None:
    alone = placed(tmp_path, machine(32, cuda(24)), None)
    found = placed(tmp_path, machine(32, cuda(24)), asked=asked)

    draft = found.options.draft
    assert draft is not None
    assert (draft.name, draft.device, draft.gpu_layers) == ("small", "CUDA0", -1)
    assert found.options.notices == ()
    assert msgspec.structs.replace(found.options, draft=None) == alone.options
    assert draft_bytes(found)["CUDA0"] > 0.5 * GIB
    assert draft_bytes(found)[HOST] >= SMALL.embedding_bytes  # llama.cpp leaves the embeddings there
    more = found.plan.devices[0].needed_bytes - alone.plan.devices[0].needed_bytes
    assert more == draft_bytes(found)["CUDA0"]


@pytest.mark.parametrize(
    "here",
    [machine(6, cuda(8)), machine(8, metal(6.5), system="macos"), cpu_only(7.3)],
    ids=["card", "shared", "processor"],
)
def test_one_that_does_not_fit_changes_nothing_but_what_is_said(tmp_path: Path, here: Machine) -> None:
    alone, found = placed(tmp_path, here, None), placed(tmp_path, here, dense(5, layers=12))

    assert found.options.draft is None
    assert found.plan == alone.plan
    (notice,) = [told for told in found.options.notices if told not in alone.options.notices]
    assert notice.startswith("small does not draft: it takes ")
    assert notice.endswith(" are left.")
    assert msgspec.structs.replace(found.options, notices=alone.options.notices) == alone.options


def test_one_that_was_asked_for_may_lie_in_memory_where_the_card_is_full(tmp_path: Path) -> None:
    here = machine(32, cuda(6.7))
    assert placed(tmp_path, here, None).plan.device == "CUDA0"
    found = placed(tmp_path, here)
    assert found.options.draft is not None
    assert (found.options.draft.device, found.options.draft.gpu_layers) == (HOST, 0)
    assert set(draft_bytes(found)) == {HOST}

    by_itself = placed(tmp_path, here, asked=False)
    assert by_itself.options.draft is None
    assert by_itself.options.notices == ()


@pytest.mark.parametrize(
    ("here", "model"),
    [(cpu_only(64), "llama-8b"), (machine(64, cuda(4)), "llama-8b"), (machine(96, cuda(12)), "qwen3moe")],
    ids=["processor", "a part of the layers", "experts in memory"],
)
def test_none_is_loaded_by_itself_unless_all_lies_on_the_card(tmp_path: Path, here: Machine, model: str) -> None:
    assert placed(tmp_path, here, asked=False, model=model).options.draft is None
    assert placed(tmp_path, here, asked=True, model=model).options.draft is not None


def test_on_a_processor_it_is_loaded_only_where_it_was_asked_for(tmp_path: Path) -> None:
    found = placed(tmp_path, cpu_only(64))
    assert found.options.draft is not None
    assert (found.options.draft.device, found.options.draft.gpu_layers) == (HOST, 0)


def test_a_larger_one_is_loaded_with_a_word(tmp_path: Path) -> None:
    found = placed(tmp_path, machine(64, cuda(48)), dense(9))
    assert found.options.draft is not None
    assert found.options.notices == ("small is larger than a model: its drafts will hardly pay.",)


def test_force_loads_it_all_the_same(tmp_path: Path) -> None:
    here = machine(6, cuda(8))
    assert placed(tmp_path, here, dense(5), force=True).options.draft is not None
    assert placed(tmp_path, here, dense(5), force=True, asked=False).options.draft is None


def test_when_memory_runs_out_the_draft_goes_first(tmp_path: Path) -> None:
    found = placed(tmp_path, machine(32, cuda(24)))
    without, smaller = found.fallbacks
    assert without.draft is None
    assert without.context == found.options.context
    assert "small does not draft" in without.notices[-1]
    assert (smaller.draft, smaller.context) == (None, 4096)


# What was measured afterwards


def holding(draft: str) -> EngineStatus:
    status = loaded(33)
    assert status.model is not None
    return msgspec.structs.replace(status, model=msgspec.structs.replace(status.model, draft=draft))


def test_a_draft_that_was_not_loaded_is_given_back_by_nobody(tmp_path: Path) -> None:
    found = placed(tmp_path, machine(32, cuda(24)))
    with_it, without = (placing.gives_back(found, holding(name))["CUDA0"] for name in ("small", ""))
    assert with_it - without == draft_bytes(found)["CUDA0"]


def test_drafts_that_pay_teach_nothing_about_the_model(tmp_path: Path) -> None:
    found = placed(tmp_path, machine(32, cuda(24)))
    assert found.plan.decode_tps is not None
    slow = found.plan.decode_tps.low * 0.4
    plain = Metrics(completion_tokens=100, tps=slow)
    helped = Metrics(completion_tokens=100, tps=3 * slow, speculation_gain=3.0)
    judged = [placing.judge(found, holding("small"), metrics).problem for metrics in (plain, helped)]
    assert judged[0] == judged[1] != ""


# The term itself


def test_the_draft_is_weights_and_a_cache_of_its_own_and_buffers() -> None:
    host = cpu_only(64).devices[-1]
    ask = Ask(slots=4, draft=SMALL)
    terms = Layout(dense(4), ask, host, NOTHING_LEARNT).terms(Placement(), 4096)
    (term,) = [term for term in terms if term.kind == "draft"]
    kv = 12 * 2 * 256 * 2 * 4096 * 4
    assert term.size_bytes > SMALL.weights_bytes + kv
    assert term.size_bytes < SMALL.weights_bytes + kv + 300 * MIB
    assert fit.draft_bytes(SMALL, ask, 4096) == term.size_bytes
    small = fit.draft_bytes(SMALL, msgspec.structs.replace(ask, kv_type="q4_0"), 4096)
    assert small == term.size_bytes  # its cache is of full precision whatever the model's is


def test_a_draft_of_an_unknown_architecture_weighs_what_its_file_does() -> None:
    unknown = msgspec.structs.replace(SMALL, layers=(), other_bytes=3 * GIB)
    assert fit.draft_bytes(unknown, Ask(), 4096) == unknown.weights_bytes


def test_the_rows_for_drafts_are_planned() -> None:
    assert [outputs(slots) for slots in (1, 4, 8, 16)] == [32, 35, 56, 112]
    one, many = (
        next(t for t in fit.plan(experts(4), cpu_only(64), Ask(slots=slots)).terms if t.kind == "compute").size_bytes
        for slots in (1, 4)
    )
    assert one > 32 * 32_000 * 4
    assert many > one
