"""The share of a machine's bandwidth that decoding reaches, from plans of models made up for it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.machine import Machine
from localinfer.models import fit, speed
from localinfer.models.plan import Ask, MemoryPlan
from localinfer.models.shape import Layer
from localinfer.models.traffic import Cached, Traffic
from localinfer.roofline import Roofline, roofline
from tests.models.machines import GIB, cpu_only, cuda, dense, experts, machine

HOST = cpu_only(16).devices[-1]


def reached(plan: MemoryPlan, depth: int, passes_tps: float) -> Roofline:
    found = roofline(plan, depth, passes_tps)
    assert found is not None
    return found


def with_source(here: Machine, source: str) -> Machine:
    devices = tuple(msgspec.structs.replace(device, bandwidth_source=source) for device in here.devices)
    return msgspec.structs.replace(here, devices=devices)


def test_a_dense_model_on_the_cpu_by_hand() -> None:
    shape = dense(4, layers=32, kv=1024)
    plan = fit.plan(shape, cpu_only(16, bandwidth=40e9), Ask())
    weights = shape.weights_bytes - shape.embedding_bytes  # a token looks up one row of the embeddings
    cache = 1000 * 32 * 2 * 1024 * 2  # depth, layers, keys and values, elements, bytes of f16
    found = reached(plan, 1000, 5.0)
    assert found.share == pytest.approx(5.0 * (weights + cache) / 40e9)
    assert found.bandwidth == pytest.approx(40e9)


def test_only_the_experts_in_use_are_read() -> None:
    shape = experts(8)
    plan = fit.plan(shape, cpu_only(32, bandwidth=40e9), Ask())
    routed = sum(layer.expert_bytes for layer in shape.layers)
    read = shape.weights_bytes - shape.embedding_bytes - routed + routed * 8 // 128
    assert reached(plan, 0, 1.0).share == pytest.approx(read / 40e9, rel=1e-3)


def test_a_window_is_read_no_further_than_it_reaches() -> None:
    traffic = Traffic(device=HOST, fixed_bytes=100, caches=(Cached(token_bytes=3), Cached(token_bytes=10, window=512)))
    assert traffic.read_bytes(0) == 100
    assert traffic.read_bytes(512) == 100 + 512 * 13
    assert traffic.read_bytes(10_000) == 100 + 10_000 * 3 + 512 * 10


def test_the_layers_of_a_model_are_grouped_by_their_windows() -> None:
    shape = dense(1, layers=6, kv=64)
    layers = (*(Layer(keys=64, values=64, window=512),) * 5, Layer(keys=64, values=64))
    plan = fit.plan(msgspec.structs.replace(shape, layers=layers), cpu_only(16), Ask())
    (part,) = plan.traffic
    assert {(one.window, one.token_bytes) for one in part.caches} == {(512, 5 * 256), (0, 256)}


def test_devices_work_one_after_the_other() -> None:
    plan = fit.plan(dense(8), machine(32, cuda(6), bandwidth=40e9), Ask())
    assert plan.verdict == "partial"
    times = {part.device.id: part.read_bytes(2048) / (part.device.bandwidth or 0) for part in plan.traffic}
    assert set(times) == {"cpu", "CUDA0"}
    found = reached(plan, 2048, 2.0)
    assert found.share == pytest.approx(2.0 * sum(times.values()))
    assert 40e9 < found.bandwidth < 300e9


def test_what_is_not_known_has_no_share() -> None:
    assert roofline(fit.plan(dense(4), cpu_only(16, bandwidth=None), Ask()), 100, 5.0) is None
    unknown = fit.plan(msgspec.structs.replace(dense(4), layers=(), other_bytes=4 * GIB), cpu_only(16), Ask())
    assert unknown.verdict == "unknown"
    assert roofline(unknown, 100, 5.0) is None


@pytest.mark.parametrize(("source", "estimate"), [("table", True), ("", True), ("measured", False), ("driver", False)])
def test_a_published_bandwidth_is_an_estimate(source: str, estimate: bool) -> None:
    plan = fit.plan(dense(4), with_source(cpu_only(16), source), Ask())
    assert reached(plan, 100, 5.0).estimate is estimate


@given(st.integers(0, 100_000), st.integers(0, 100_000), st.floats(0.01, 1000))
def test_it_grows_with_depth_and_in_proportion_to_speed(one: int, other: int, tps: float) -> None:
    shallow, deep = sorted((one, other))
    assert reached(PLAN, shallow, tps).share <= reached(PLAN, deep, tps).share
    assert reached(PLAN, deep, 2 * tps).share == pytest.approx(2 * reached(PLAN, deep, tps).share)


PLAN = fit.plan(dense(4), cpu_only(16), Ask())


def test_the_speed_to_be_expected_is_below_the_roofline() -> None:
    assert PLAN.decode_tps is not None
    assert reached(PLAN, speed.DEPTH, PLAN.decode_tps.high).share < 1
