"""Options that follow from a plan, and the smaller ones for when memory runs out after all."""

from pathlib import Path

import msgspec
import pytest

from localinfer import placing
from localinfer.advice import Advice
from localinfer.errors import BackendUnavailable, DoesNotFit
from localinfer.machine import Machine
from localinfer.models import gguf, lessons, oracle
from localinfer.models.plan import HOST
from localinfer.models.sizes import SizeRequest, Sizes
from localinfer.types import EngineStatus, LoadOptions, Metrics, ModelInfo
from tests.architectures import write_header
from tests.models.machines import GIB, MIB, cpu_only, cuda, machine


class Here(Advice):
    """Advice about a machine that was made up."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(measure=False)
        self.__dict__["machine"] = machine


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build here knows no CUDA0: closed forms alone."""

    def refuse(request: SizeRequest, **_: object) -> Sizes:
        raise BackendUnavailable("not here")

    monkeypatch.setattr(oracle, "measure", refuse)


def options(path: Path, **fields: object) -> LoadOptions:
    return LoadOptions(backend="llama.cpp", model=str(path), name="a model", **fields)  # type: ignore[arg-type]


def placed(tmp_path: Path, name: str, here: Machine, *, force: bool = False, **fields: object) -> placing.Placing:
    path = write_header(tmp_path, name)
    return placing.place(gguf.check_all([path]), options(path, **fields), Here(here), force=force)


def test_a_model_that_fits_goes_to_the_card_whole(tmp_path: Path) -> None:
    found = placed(tmp_path, "llama-8b", machine(32, cuda(24)))

    assert (found.options.device, found.options.gpu_layers, found.options.expert_layers) == ("CUDA0", 33, 0)
    assert found.options.context == 8192
    (smaller,) = found.fallbacks
    assert smaller.context == 4096
    assert "Memory ran out" in smaller.notices[-1]


def test_without_a_card_it_goes_to_the_host(tmp_path: Path) -> None:
    found = placed(tmp_path, "llama-8b", cpu_only(64))
    assert (found.options.device, found.options.gpu_layers) == (HOST, 0)


def test_experts_stay_in_memory_where_the_card_is_small(tmp_path: Path) -> None:
    found = placed(tmp_path, "qwen3moe", machine(96, cuda(12)))
    assert found.plan.verdict == "moe_offload"
    assert found.options.expert_layers == found.plan.expert_layers > 0


def test_a_shorter_context_is_said(tmp_path: Path) -> None:
    roomy = placed(tmp_path, "llama-8b", cpu_only(64)).plan
    ram = (roomy.devices[0].needed_bytes + 2**30) / 0.9 / 2**30 - 0.8
    found = placed(tmp_path, "llama-8b", cpu_only(ram))
    assert found.options.context is not None
    assert found.options.context < 8192
    assert any(f"{found.options.context:,}" in notice for notice in found.options.notices)


def test_what_does_not_fit_is_refused_unless_forced(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit, match="Does not fit") as refused:
        placed(tmp_path, "llama-70b", cpu_only(16))
    assert "--force" in refused.value.hint
    assert placed(tmp_path, "llama-70b", cpu_only(16), force=True).options.gpu_layers == 0


def test_a_context_that_was_asked_for_is_never_cut(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit, match="100,000") as refused:
        placed(tmp_path, "llama-8b", cpu_only(14), context=100_000)
    assert "61,696" in refused.value.hint


def test_requiring_a_gpu_that_holds_nothing(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit, match="No layer"):
        placed(tmp_path, "llama-8b", machine(64, cuda(0.9)), require_gpu=True)
    with pytest.raises(BackendUnavailable):
        placed(tmp_path, "llama-8b", cpu_only(64), require_gpu=True)


def test_with_a_small_context_layers_leave_the_card(tmp_path: Path) -> None:
    found = placed(tmp_path, "llama-8b", machine(32, cuda(24)), context=2048)
    (smaller,) = found.fallbacks
    assert smaller.gpu_layers == 16
    assert placed(tmp_path, "llama-8b", cpu_only(64), context=2048).fallbacks == ()


def loaded(layers: int) -> EngineStatus:
    """An engine whose model has so many layers on the card."""
    info = ModelInfo(
        name="a model",
        backend="llama.cpp",
        description="",
        context=8192,
        slots=1,
        vocabulary=1,
        parameters=1,
        weights_bytes=1,
        kv_bytes=1,
        placement=f"GPU {layers}/33 layers",
        gpu_layers=layers,
        layers=33,
    )
    return EngineStatus(state="ready", model=info)


def test_where_it_runs_is_judged_by_what_was_measured(tmp_path: Path) -> None:
    found = placed(tmp_path, "llama-8b", machine(32, cuda(24)))
    assert found.plan.decode_tps is not None
    good = Metrics(completion_tokens=100, tps=found.plan.decode_tps.middle)
    slow = msgspec.structs.replace(good, tps=1.0)

    assert placing.judge(found, loaded(33), good) == placing.Judgement(
        text="CUDA · A card · 33/33 layers · as expected"
    )
    judged = placing.judge(found, loaded(33), slow)
    assert judged.text.endswith("slower than expected")
    assert "1.0 tok/s is slow" in judged.problem
    fallen = placing.judge(found, loaded(0), slow)
    assert fallen.text == "CUDA · A card · 0/33 layers"
    assert "Only 0 layers are on the GPU; 33 were to be there" in fallen.problem
    assert placing.judge(found, loaded(33), Metrics(completion_tokens=3, tps=1.0)).problem == ""
    assert placing.judge(placed(tmp_path, "llama-8b", cpu_only(64)), loaded(0), slow).text == ""


def test_a_load_on_a_card_teaches_what_its_driver_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = placed(tmp_path, "llama-8b", machine(32, cuda(24)))
    planned = sum(t.size_bytes for t in found.plan.terms if t.device == "CUDA0" and t.kind != "overhead")
    left = 24 * GIB - planned - 700 * MIB
    monkeypatch.setattr(placing, "look", lambda: machine(32, cuda(left / GIB, total_gib=24)))

    placing.learn(found, loaded(33), Metrics(completion_tokens=100, tps=20.0))

    (overhead,) = lessons.learnt().overhead_bytes.values()
    assert abs(overhead - 700 * MIB) < MIB
    monkeypatch.setattr(placing, "look", lambda: cpu_only(32))
    assert placing._taken_bytes(found) is None
