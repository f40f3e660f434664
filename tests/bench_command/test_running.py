"""Whole measurements: on a script whose costs are known, and on the real starter."""

from pathlib import Path

import msgspec
import pytest

from localinfer.bench.extent import Extent
from localinfer.bench.running import Bench, Order
from localinfer.bench.values import Report
from localinfer.bench.workloads import Prompt, Workload, built_in
from localinfer.errors import ContextOverflow, WorkerDied
from localinfer.types import LoadOptions, Message

PACE_S, PREFILL_S = 0.004, 0.0005
SHORT = Extent(
    name="quick",
    shapes=((64, 24), (200, 24)),
    rounds=3,
    part_s=60,
    longest_s=60,
    per_client=1,
    least_requests=3,
    answer_tokens=16,
    drafted_prompts=2,
    drafted_tokens=48,
)


def order(model: str, backend: str, **fields: object) -> Order:
    given = {"workload": "chat", "workloads": built_in("chat"), "concurrency": (1, 2), "extent": SHORT} | fields
    options = LoadOptions(backend=backend, model="", name="")
    return Order(models=(model,), options=options, seed=1, **given)  # type: ignore[arg-type]


def measured(order: Order) -> Report:
    bench = Bench(order)
    bench.run()
    return bench.report(complete=True)


def test_costs_that_are_known_are_measured() -> None:
    report = measured(order(f"pace_s={PACE_S}&prefill_s={PREFILL_S}&draft=3&acceptance=1", "scripted"))
    (result,) = report.results
    assert result.subject.slots == 2
    assert [(shape.isl, shape.osl) for shape in result.shapes] == [(64, 24), (200, 24)]
    for shape in result.shapes:
        assert shape.decode_tps is not None
        assert shape.prefill_tps is not None
        assert shape.itl_ms is not None
        # A pass is never faster than it costs; a busy machine may make it slower.
        assert 0.3 / PACE_S < shape.decode_tps.p50 <= 1 / PACE_S
        assert 0.3 / PREFILL_S < shape.prefill_tps.p50 <= 1 / PREFILL_S
        assert shape.itl_ms.p50 >= 1e3 * PACE_S
        assert len(shape.decode_tps.samples) == 3
        assert shape.bandwidth_share is None
    one, two = result.levels
    assert (one.requests, two.requests) == (9, 9)
    assert one.completion_tokens == 9 * 16
    assert one.ttft_s is not None
    assert len(one.ttft_s.samples) == 9
    assert one.ttft_s.p50 >= 60 * PREFILL_S  # bytes are tokens, and no cache helps
    assert one.total_tps is not None
    assert two.total_tps is not None
    cells = {cell.drafter: cell for cell in result.speculation}
    assert set(cells) == {"off", "lookup", "model"}
    assert cells["off"].gain is None
    model, lookup = cells["model"], cells["lookup"]
    assert (model.acceptance_rate, model.prompts, model.same_text) == (1, 2, 2)
    assert model.mean_accepted_length is not None
    assert model.mean_accepted_length > 3
    assert model.gain is not None
    assert model.gain.p50 > 2
    assert (lookup.drafted, lookup.gain) == (0, None), "where nothing was drafted nothing was gained"


def test_what_would_take_too_long_or_does_not_fit_is_left_out() -> None:
    extent = msgspec.structs.replace(SHORT, rounds=1, longest_s=0.05)
    (result,) = measured(order("pace_s=0.01&context=400", "scripted", extent=extent, draft="off")).results
    assert result.shapes == ()
    assert any("64 + 24 tokens were left out" in note for note in result.notes)
    assert result.speculation == ()
    assert result.levels


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_measured() -> None:
    prompts = (Prompt(messages=(Message(role="user", content="x" * 500),), origin="line 9 of mine.txt"),)
    workloads = (Workload(name="mine.txt", prompts=prompts),)
    with pytest.raises(ContextOverflow, match=r"line 9 of mine\.txt") as caught:
        measured(order("context=400", "scripted", workloads=workloads, own_file=True))
    assert caught.value.context == 400


def test_a_worker_that_dies_leaves_what_was_measured() -> None:
    bench = Bench(order("die_after=200", "scripted"))
    with pytest.raises(WorkerDied):
        bench.run()
    report = bench.report(complete=False)
    assert report.results[0].shapes
    assert not report.complete


def test_the_real_starter(starter_model: Path) -> None:
    extent = msgspec.structs.replace(SHORT, rounds=1, shapes=((64, 16),), answer_tokens=4)
    (result,) = measured(order(str(starter_model), "llama.cpp", extent=extent, draft="off", concurrency=(2,))).results
    subject = result.subject
    assert subject.quantization == "Q4_1"
    assert subject.parameters is not None
    assert subject.weights_bytes is not None
    assert subject.parameters == subject.active_parameters
    assert result.resident_bytes is not None
    assert result.planned_bytes is not None
    assert 0.5 < result.resident_bytes / result.planned_bytes < 1.5
    for shape in result.shapes:
        assert shape.bytes_per_token is not None
        assert shape.bandwidth is not None
        assert shape.decode_tps is not None
        assert shape.prefill_tps is not None
        assert 0.5 * subject.weights_bytes < shape.bytes_per_token < 2 * subject.weights_bytes
        share = shape.bytes_per_token * shape.decode_tps.p50 / shape.bandwidth
        assert shape.bandwidth_share == pytest.approx(share)
        assert shape.prefill_flops == pytest.approx(2 * subject.parameters * shape.prefill_tps.p50)
    assert result.levels[0].completion_tokens
