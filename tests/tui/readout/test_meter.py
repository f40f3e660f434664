"""Readings of a reply whose events come at known instants."""

from typing import Any

import msgspec
import pytest

from localinfer.generation import Generation
from localinfer.metrics import now_ns
from localinfer.types import (
    Done,
    EngineStatus,
    Failed,
    Fault,
    GenerationRequest,
    Loading,
    Metrics,
    Queued,
    Speculation,
    Text,
)
from tests.tui.readout.replies import (
    INFO,
    LOADING,
    MS,
    NEVER,
    NO_DRAFTS,
    READY,
    START,
    Reply,
    S,
    cpu_plan,
    phases,
    whole_reply,
)
from tui.widgets.readout import Budget, Meter, Parts


def test_nothing_is_known_before_anything_happened() -> None:
    reading = Meter().read(START)
    assert (reading.phase, reading.metrics, reading.elapsed_s, reading.live_tps) == ("none", None, None, None)
    assert (reading.roofline, reading.budget, reading.memory, reading.parts) == (None, None, (), Parts())
    assert set(reading.history) == {None}


@pytest.mark.parametrize("phase", ["idle", "loading", "queued", "prefill", "decode", "done"])
def test_every_phase_of_a_reply(phase: str) -> None:
    assert phases()[phase].phase == phase


def test_loading_is_told_by_the_engine_or_by_the_generation() -> None:
    meter = Meter()
    assert meter.read(START, LOADING).phase == "loading"
    reply = Reply(meter)
    assert meter.read(START + S, READY).phase == "queued"
    reply.see(Loading(progress=0.43), S)
    reading = meter.read(START + S, READY)
    assert (reading.phase, reading.load_progress) == ("loading", 0.43)
    assert reading.parts == Parts(load_s=1.0)


def test_the_part_that_is_being_spent_grows_and_the_parts_add_up() -> None:
    found = phases()
    assert found["queued"].parts.queue_s == pytest.approx(0.4)
    assert found["queued"].ahead == 2
    prefill = found["prefill"]
    assert prefill.parts.prefill_s == pytest.approx(1.6)
    assert msgspec.structs.replace(prefill.parts, prefill_s=None) == Parts(load_s=1.0, queue_s=0.5, cached_s=0.1)
    assert (prefill.prefilled, prefill.prompt_tokens) == (1600, 2310)
    for reading in found.values():
        parts = reading.parts
        spent = [parts.load_s, parts.queue_s, parts.cached_s, parts.prefill_s, parts.first_s]
        assert sum(part or 0.0 for part in spent) == pytest.approx(reading.elapsed_s or 0.0)


def test_after_the_last_prompt_token_the_first_token_is_waited_for() -> None:
    meter = Meter()
    reply = Reply(meter)
    reply.queued(S)
    reply.prefilled(S, 2310, admitted_ns=START + S, started_ns=START + S)
    parts = meter.read(START + 25 * S // 10, READY).parts
    assert parts.prefill_s == pytest.approx(1.0)
    assert parts.first_s == pytest.approx(0.5)


def test_the_live_speed_is_that_of_the_last_two_seconds() -> None:
    meter = Meter()
    reply = whole_reply(meter, tokens=1000, gap_ns=10 * MS)
    for _ in range(100):
        reply.token(50 * MS)
    reading = meter.read(reply.now_ns, READY)
    assert reading.live_tps == pytest.approx(20)
    assert reading.metrics is not None
    assert reading.metrics.tps == pytest.approx(1099 / (9.99 + 5))


def test_a_reply_that_stalls_slows_down_and_a_slow_one_does_not_flicker() -> None:
    meter = Meter()
    reply = whole_reply(meter, tokens=500, gap_ns=10 * MS)
    assert meter.read(reply.now_ns + 400 * MS, READY).live_tps == pytest.approx(100)
    stalled = meter.read(reply.now_ns + 1500 * MS, READY).live_tps
    assert stalled is not None
    assert stalled < 60

    slow = Meter()
    reply = whole_reply(slow, tokens=10, gap_ns=3 * S)
    for waited in (0, S, 2 * S, 29 * S // 10):
        assert slow.read(reply.now_ns + waited, READY).live_tps == pytest.approx(1 / 3)


def test_the_history_tells_the_speed_of_each_second_and_nothing_where_nothing_ran() -> None:
    meter = Meter()
    reply = whole_reply(meter, tokens=301, gap_ns=10 * MS)
    reply.end()
    began = START // S + 1  # the first token came 1.51 s after the start
    reading = meter.read(reply.now_ns + 4 * S, READY)
    by_second = dict(enumerate(reading.history, start=reading.history_second - len(reading.history) + 1))
    assert len(reading.history) == 60
    assert {second for second, tps in by_second.items() if tps is not None} == {began + n for n in range(4)}
    assert [by_second[began + n] for n in range(4)] == pytest.approx([100] * 4)
    later = meter.read(reply.now_ns + 70 * S, READY)
    assert set(later.history) == {None}


def test_while_a_reply_runs_its_history_ends_with_its_last_token() -> None:
    meter = Meter()
    reply = whole_reply(meter, tokens=50, gap_ns=10 * MS)
    reading = meter.read(reply.now_ns + 400 * MS, READY)
    assert reading.history_second == reply.now_ns // S - 1  # it ended with that second
    assert reading.history[-1] == pytest.approx(100)
    assert meter.read(reply.now_ns + 20 * S, READY).history[-1] is None


def test_a_gap_longer_than_a_second_is_spread_over_it() -> None:
    meter = Meter()
    reply = whole_reply(meter, tokens=3, gap_ns=4 * S)
    history = meter.read(reply.now_ns, READY).history
    assert [tps for tps in history if tps is not None] == pytest.approx([0.25] * 9)


def test_two_replies_share_one_history_but_not_the_pause_between_them() -> None:
    meter = Meter()
    reply = whole_reply(meter, tokens=100)
    reply.end()
    meter.read(reply.now_ns, READY)
    again = Reply(meter, reply.now_ns + 10 * S)
    assert meter.read(again.now_ns, READY).live_tps is None
    again.token(S)
    again.token(10 * MS)
    history = meter.read(again.now_ns, READY).history
    assert [tps for tps in history if tps is not None] == pytest.approx([100] * 3)
    assert history[-5] is None


def test_the_context_fills_with_the_reply_and_keeps_it() -> None:
    found = phases()
    assert found["idle"].budget == Budget(context=8192, system=120, history=900)
    assert found["decode"].budget == Budget(context=8192, system=120, history=2190, reply=200, cached=1024)
    assert found["done"].budget == found["decode"].budget


def test_a_context_that_was_handed_in_stands_until_the_next_reply() -> None:
    meter = Meter()
    reply = whole_reply(meter)
    reply.end()
    meter.read(reply.now_ns, READY)
    other = Budget(context=8192, system=5, history=7)
    meter.hold(other)
    assert meter.read(reply.now_ns + S, READY).budget == other


def test_a_reply_that_failed_before_its_first_text_has_no_ttft() -> None:
    meter = Meter()
    reply = Reply(meter)
    reply.queued(S)
    reply.watch.observe(Failed(error=Fault(kind="WorkerDied", message="")), reply.now_ns)
    reply.over = True
    reading = meter.read(reply.now_ns + S, READY)
    assert (reading.phase, reading.elapsed_s) == ("done", None)


def test_the_roofline_counts_passes_and_not_accepted_drafts() -> None:
    def share(tokens: int, gap_ns: int) -> float:
        meter = Meter()
        meter.choose(cpu_plan(), "CPU")
        reply = whole_reply(meter, tokens=0)
        for _ in range(600 // tokens):
            reply.token(gap_ns, tokens=tokens, drafted=tokens - 1)
        roofline = meter.read(reply.now_ns, READY).roofline
        assert roofline is not None
        return roofline.share

    assert share(3, 30 * MS) == pytest.approx(share(1, 30 * MS), rel=0.02)
    assert share(3, 30 * MS) == pytest.approx(share(3, 60 * MS) * 2, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "draft", "drafter"),
    [
        ("auto", "", "prompt lookup"),
        ("auto", "small", "prompt lookup + small"),
        ("lookup", "small", "prompt lookup"),
        ("model", "small", "small"),
        ("model", "", ""),
        ("off", "small", ""),
    ],
)
def test_what_will_draft_is_told_before_anything_does(asked: Any, draft: str, drafter: str) -> None:
    status = msgspec.structs.replace(READY, model=msgspec.structs.replace(INFO, draft=draft))
    reading = Meter().read(START, status, speculation=Speculation(drafter=asked))
    assert (reading.drafter, bool(reading.off)) == (drafter, not drafter)
    assert Meter().read(START, status, speculation=Speculation(drafter=asked, most=0)).drafter == ""
    never = Meter().read(START, NEVER, speculation=Speculation(drafter=asked))
    assert (never.drafter, never.off) == ("", NO_DRAFTS)
    assert (Meter().read(START).drafter, Meter().read(START).off) == ("", "")


def test_why_a_draft_model_that_was_asked_for_is_not_there_is_told() -> None:
    model = msgspec.structs.replace(INFO, no_draft="it could not be loaded")
    status = msgspec.structs.replace(READY, model=model)
    assert Meter().read(START, status, speculation=Speculation(drafter="model")).off == "it could not be loaded"
    assert Meter().read(START, status).off == ""


def test_a_running_reply_says_what_drafts_and_what_is_asked_next_holds_afterwards() -> None:
    meter = Meter()
    reply = whole_reply(meter)
    off = Speculation(drafter="off")
    reply.drafting("prompt lookup", "does not pay here")
    for asked in (off, Speculation()):
        reading = meter.read(reply.now_ns, READY, speculation=asked)
        assert (reading.drafter, reading.off) == ("prompt lookup", "does not pay here")
    reply.end()
    assert meter.read(reply.now_ns, READY).off == "does not pay here"
    assert meter.read(reply.now_ns, READY, speculation=off).drafter == ""
    other = msgspec.structs.replace(READY, model=msgspec.structs.replace(INFO, draft="small"))
    reading = meter.read(reply.now_ns, other)
    assert (reading.drafter, reading.off) == ("prompt lookup + small", ""), "that was another drafter"
    assert meter.read(reply.now_ns).drafter == "prompt lookup", "no model is loaded: as the reply said"


def test_without_a_plan_there_is_no_roofline() -> None:
    meter = Meter()
    assert meter.read(whole_reply(meter).now_ns, READY).roofline is None


def test_another_model_leaves_the_figures_of_the_last_reply() -> None:
    meter = Meter()
    meter.choose(cpu_plan(), "CPU")
    reply = whole_reply(meter)
    reply.end()
    before = meter.read(reply.now_ns, READY)
    for getting, phase in (("checking", "checking"), ("loading", "loading"), (None, "done")):
        meter.choose(None)
        reading = meter.read(reply.now_ns, READY, getting=getting, progress=0.5)  # type: ignore[arg-type]
        assert reading.phase == phase
        assert reading.load_progress == (0.5 if phase == "loading" else None)
        for same in ("metrics", "parts", "elapsed_s", "history", "roofline", "prefilled"):
            assert getattr(reading, same) == getattr(before, same), same


def test_another_reply_is_looked_at() -> None:
    meter = Meter()
    meter.choose(cpu_plan(), "CPU")
    reply = whole_reply(meter)
    reply.end()
    before = meter.read(reply.now_ns, READY)
    kept = Metrics(ttft_s=0.5, queue_s=0.1, tps=7.0, completion_tokens=3, prompt_tokens=9, cached_tokens=0)
    meter.recall(kept)
    reading = meter.read(reply.now_ns, READY)
    assert (reading.phase, reading.metrics, reading.elapsed_s) == ("done", kept, 0.5)
    assert (reading.parts.queue_s, reading.parts.prefill_s, reading.roofline) == (0.1, None, None)
    assert reading.history == before.history
    meter.recall(None)
    reading = meter.read(reply.now_ns, READY)
    assert (reading.phase, reading.metrics, reading.elapsed_s, reading.parts) == ("idle", None, None, Parts())


@pytest.mark.parametrize(
    ("status", "getting", "phase"),
    [
        (None, None, "none"),
        (EngineStatus(state="failed"), None, "none"),
        (EngineStatus(state="closed"), "checking", "checking"),
        (None, "loading", "loading"),
        (READY, "loading", "loading"),
        (LOADING, None, "loading"),
        (READY, None, "idle"),
    ],
)
def test_what_is_done_before_the_first_reply(status: EngineStatus | None, getting: Any, phase: str) -> None:
    assert Meter().read(START, status, getting=getting).phase == phase


def test_the_first_pass_over_a_prompt_is_prefill_from_its_start() -> None:
    meter = Meter()
    reply = Reply(meter)
    reply.queued(S // 10)
    admitted, started = START + 2 * S // 10, START + 3 * S // 10
    reply.prefilled(2 * S // 10, 1024, admitted_ns=admitted, started_ns=started)
    reading = meter.read(START + 6 * S, READY)
    assert reading.phase == "prefill"
    assert (reading.metrics and reading.metrics.cached_tokens, reading.prefilled) == (1024, 1024)
    assert reading.parts.prefill_s == pytest.approx(5.7)
    assert msgspec.structs.replace(reading.parts, prefill_s=None) == Parts(load_s=0.0, queue_s=0.2, cached_s=0.1)


def test_the_last_figures_are_asked_for_once() -> None:
    meter = Meter()
    reply = whole_reply(meter)
    reply.end()
    first = meter.read(reply.now_ns, READY).metrics
    assert meter.read(reply.now_ns + S, READY).metrics is first


async def test_a_real_generation_is_followed_from_its_events_alone() -> None:
    generation = Generation(1, GenerationRequest(prompt="x"), lambda _: None)
    meter = Meter()
    meter.begin(generation, now_ns())
    at_ns = now_ns()
    generation.push(Queued(prompt_tokens=5, ahead=0, at_ns=at_ns))
    generation.push(*(Text(text="x", tokens=1, at_ns=at_ns + number * MS) for number in range(4)))
    seen = []
    async for event in generation:
        meter.observe(event)
        if isinstance(event, Queued):
            seen.append(meter.read(now_ns(), READY).phase)
        elif isinstance(event, Text) and event.at_ns == at_ns + 3 * MS:
            reading = meter.read(event.at_ns, READY)
            seen.append(reading.phase)
            assert reading.live_tps == pytest.approx(1000)
            generation.push(Done(finish_reason="stop", at_ns=event.at_ns))
    assert [*seen, meter.read(now_ns(), READY).phase] == ["queued", "decode", "done"]
