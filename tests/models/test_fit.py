"""Plans over machines and models of round figures: what must hold for every plan, and what a person would expect."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.machine import Machine
from localinfer.models import fit
from localinfer.models.layout import Lessons, Oracle, Pace
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.models.shape import Layer, ModelShape
from localinfer.models.sizes import DeviceSizes, SizeRequest, Sizes
from tests.models.machines import GIB, MIB, cpu_only, cuda, dense, experts, machine, metal

ORDER = ("full", "full_short_ctx", "moe_offload", "partial", "cpu", "too_big")

sizes_gib = st.floats(0.1, 60)
rams_gib = st.floats(1, 128)
cards_gib = st.lists(st.floats(0.5, 48), max_size=2)
shapes = st.builds(dense, sizes_gib, layers=st.integers(1, 60), kv=st.sampled_from([256, 1024, 4096])) | st.builds(
    experts, sizes_gib, layers=st.integers(2, 48)
)
machines = st.builds(
    lambda ram, cards: machine(ram, *(cuda(size, index=index) for index, size in enumerate(cards))), rams_gib, cards_gib
)


@given(shapes, machines, st.sampled_from([512, 4096, 8192, 100_000]), st.sampled_from(["f16", "q8_0", "q4_0"]))
def test_no_plan_promises_memory_that_is_not_there(
    shape: ModelShape, here: Machine, context: int, kv_type: str
) -> None:
    plan = fit.plan(shape, here, Ask(context=context, kv_type=kv_type))

    if plan.fits:
        assert all(load.spare_bytes >= 0 for load in plan.devices)
        assert plan.context <= context
        assert plan.max_context >= plan.context
    else:
        assert any(load.spare_bytes < 0 for load in plan.devices)
    assert plan.verdict not in ("full", "moe_offload") or plan.gpu_layers == plan.layers + 1
    assert plan.total_bytes == sum(plan.bytes_on(load.id) for load in plan.devices)
    assert plan.sentence.endswith(".")


@given(shapes, machines, st.sampled_from([4096, 32_768]))
def test_weights_are_counted_once_wherever_they_lie(shape: ModelShape, here: Machine, context: int) -> None:
    plan = fit.plan(shape, here, Ask(context=context))

    assert sum(term.size_bytes for term in plan.terms if term.kind == "weights") == shape.weights_bytes


@given(shapes, st.floats(2, 64), st.floats(0.5, 24), st.floats(0.1, 24))
def test_more_memory_never_makes_it_worse(shape: ModelShape, ram: float, card: float, more: float) -> None:
    little = fit.plan(shape, machine(ram, cuda(card)), Ask())
    much = fit.plan(shape, machine(ram, cuda(card + more)), Ask())

    assert ORDER.index(much.verdict) <= ORDER.index(little.verdict)


@given(shapes, rams_gib, st.floats(0.5, 48))
def test_the_largest_context_fits_and_the_next_does_not(shape: ModelShape, ram: float, card: float) -> None:
    here = machine(ram, cuda(card))
    plan = fit.plan(shape, here, Ask(context=4096))
    if plan.verdict not in ("full", "cpu") or plan.context != 4096:
        return

    largest = fit.plan(shape, here, Ask(context=plan.max_context, device=plan.device))
    assert (largest.verdict, largest.context) == (plan.verdict, plan.max_context)
    if plan.max_context < shape.context:
        beyond = fit.plan(shape, here, Ask(context=plan.max_context + 256, device=plan.device))
        assert (beyond.verdict, beyond.context) != (plan.verdict, plan.max_context + 256)


@pytest.mark.parametrize(
    ("shape", "here", "verdict"),
    [
        (dense(4), machine(32, cuda(12)), "full"),
        (dense(8, kv=4096), machine(32, cuda(12)), "full_short_ctx"),
        (experts(16), machine(64, cuda(8)), "moe_offload"),
        (dense(16), machine(64, cuda(12)), "partial"),
        (dense(4), cpu_only(16), "cpu"),
        (dense(4), machine(32, cuda(12, usable=False)), "cpu"),
        (dense(60), machine(32, cuda(12)), "too_big"),
        (dense(16), machine(24, cuda(12), cuda(12, index=1)), "full"),
        (dense(8), machine(16, metal(11.4), system="macos"), "full"),
        (dense(15), machine(16, metal(11.4), system="macos"), "too_big"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_verdict_a_person_would_expect(shape: ModelShape, here: Machine, verdict: str) -> None:
    assert fit.plan(shape, here, Ask()).verdict == verdict


def test_what_other_programs_hold_counts() -> None:
    assert fit.plan(dense(8), machine(16, cuda(12)), Ask()).verdict == "full"
    assert fit.plan(dense(8), machine(16, cuda(6, total_gib=12)), Ask()).verdict == "partial"


def test_the_model_about_to_be_replaced_is_credited() -> None:
    full_card = machine(8, cuda(2, total_gib=12))
    ask = Ask(freed={"CUDA0": 9 * GIB})

    assert fit.plan(dense(8), full_card, Ask()).verdict != "full"
    assert fit.plan(dense(8), full_card, ask).verdict == "full"


def test_everything_that_comes_along_is_a_term() -> None:
    ask = Ask(projector_bytes=900 * MIB, speech_bytes=200 * MIB, draft=dense(0.5, layers=12))

    plan = fit.plan(dense(4), machine(32, cuda(12)), ask)

    assert {"weights", "kv", "compute", "projector", "speech", "draft", "overhead"} <= {t.kind for t in plan.terms}
    assert fit.plan(dense(9), machine(64, cuda(12)), Ask()).verdict == "full"
    assert fit.plan(dense(9), machine(64, cuda(12)), ask).verdict != "full"


def test_a_smaller_kv_cache_is_proposed_where_it_makes_room() -> None:
    here = machine(16, cuda(12))
    plan = fit.plan(dense(8, kv=4096), here, Ask(context=8192))

    assert plan.verdict != "full"
    assert "q8_0 KV cache would make room" in plan.sentence
    assert fit.plan(dense(8, kv=4096), here, Ask(context=8192, kv_type="q8_0")).verdict == "full"


def test_an_unknown_architecture_is_tried_not_guessed() -> None:
    shape = msgspec.structs.replace(dense(4), layers=())

    plan = fit.plan(shape, cpu_only(16), Ask())

    assert plan.verdict == "unknown"
    assert (plan.decode_tps, plan.max_context) == (None, 0)
    assert "nan" not in plan.sentence.lower()


def test_the_context_that_a_model_was_made_for_bounds_the_default() -> None:
    assert fit.plan(dense(1, context=2048), cpu_only(16), Ask()).context == 2048
    plan = fit.plan(dense(1, context=2048), cpu_only(16), Ask(context=4096))
    assert any("2,048" in note for note in plan.notes)


def test_speed_falls_with_what_the_host_must_do() -> None:
    here = machine(64, cuda(12))

    def speed(plan: MemoryPlan) -> float:
        assert plan.decode_tps is not None
        return plan.decode_tps.high

    whole, some, none = (
        speed(fit.plan(dense(8), here, Ask())),
        speed(fit.plan(dense(16), here, Ask())),
        speed(fit.plan(dense(8), here, Ask(device=HOST))),
    )
    assert whole > 20
    assert whole > 4 * some
    assert whole > 3 * none
    assert fit.plan(dense(4), cpu_only(16, bandwidth=None), Ask()).decode_tps is None


def test_a_mixture_of_experts_is_as_large_as_all_and_as_fast_as_the_active() -> None:
    here = machine(64, cuda(24))
    sparse, full = fit.plan(experts(16), here, Ask()), fit.plan(dense(16), here, Ask())

    assert abs(sparse.bytes_on("CUDA0") - full.bytes_on("CUDA0")) < 2 * GIB
    assert sparse.decode_tps is not None
    assert full.decode_tps is not None
    assert sparse.decode_tps.low > 2 * full.decode_tps.low


def test_what_was_learnt_counts() -> None:
    here = machine(16, cuda(10))
    lessons = Lessons(overhead_bytes={"CUDA0": 3 * GIB}, decode={"CUDA0": (Pace(read_bytes=5 * GIB, ratio=0.5),) * 3})
    naive, taught = fit.plan(dense(7), here, Ask()), fit.plan(dense(7), here, Ask(), lessons=lessons)

    assert (naive.verdict, taught.verdict) == ("full", "partial")
    assert any(t.kind == "overhead" and t.source == "measured" for t in taught.terms)
    assert (naive.decode_learnt, taught.decode_learnt) == (1.0, 0.5)


def test_the_oracle_replaces_the_forms_and_corrects_other_contexts() -> None:
    here = machine(16, cuda(12))
    shape = dense(8)
    formed = fit.plan(shape, here, Ask())
    request = SizeRequest(paths=("x.gguf",), context=8192, device="CUDA0")
    said = Sizes(
        devices=(
            DeviceSizes(id="CUDA0", model_bytes=8 * GIB, context_bytes=GIB, compute_bytes=4 * GIB),
            DeviceSizes(id=HOST, model_bytes=70 * MIB, context_bytes=0, compute_bytes=20 * MIB),
        ),
        kv_bytes=GIB,
        state_bytes=0,
        layers=32,
        gpu_layers=33,
        exact=True,
    )

    plan = fit.plan(shape, here, Ask(), oracle=Oracle(request=request, sizes=said))

    assert formed.verdict == "full"
    assert plan.verdict not in ("full", "full_short_ctx")
    smaller = msgspec.structs.replace(
        said, devices=(DeviceSizes(id="CUDA0", model_bytes=8 * GIB, context_bytes=GIB, compute_bytes=50 * MIB),)
    )
    plan = fit.plan(shape, here, Ask(), oracle=Oracle(request=request, sizes=smaller))
    assert plan.verdict == "full"
    assert {t.source for t in plan.terms if t.kind in ("weights", "kv", "compute")} == {"oracle"}


def test_what_is_repacked_is_shown_and_not_needed_twice() -> None:
    here = cpu_only(16)
    request = SizeRequest(paths=("x.gguf",), context=8192, device=HOST, gpu_layers=0)
    said = Sizes(
        devices=(DeviceSizes(id=HOST, model_bytes=8 * GIB, context_bytes=GIB, compute_bytes=GIB),),
        kv_bytes=GIB,
        state_bytes=0,
        layers=32,
        gpu_layers=0,
        exact=True,
        repacked_bytes=7 * GIB,
    )

    plan = fit.plan(dense(8), here, Ask(), oracle=Oracle(request=request, sizes=said))

    assert plan.verdict == "cpu"
    assert plan.total_bytes > 17 * GIB
    assert plan.devices[0].needed_bytes < 11 * GIB


def test_layers_without_a_cache_need_none() -> None:
    shape = msgspec.structs.replace(dense(4), layers=(Layer(weights_bytes=GIB, state_bytes=50 * MIB),) * 4)

    plan = fit.plan(shape, cpu_only(16), Ask(context=100_000))

    assert {term.kind for term in plan.terms} & {"kv", "state"} == {"state"}
    assert sum(t.size_bytes for t in plan.terms if t.kind == "state") == 200 * MIB
