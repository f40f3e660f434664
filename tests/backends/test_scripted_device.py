"""A script with a cost curve drafts as a real model does, and says the same."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import DraftingChanged, Sampled, SequenceJob, StepEvent
from backends.scripted import Script, ScriptedBackend
from backends.scripted.device import Device
from localinfer.types import LoadOptions, Sampling, Speculation
from tests.backends.drafting.simulation import VirtualClock

TEXT = "one two three four " * 30


def play(script: Script, *jobs: SequenceJob) -> tuple[list[StepEvent], VirtualClock]:
    clock = VirtualClock()
    options = LoadOptions(backend="scripted", model="", name="", slots=len(jobs))
    backend = ScriptedBackend(script, options, clock=clock)
    for job in jobs:
        backend.submit(job)
    events = []
    while step := backend.step():
        events += step
    return events, clock


def ask(number: int = 0, prompt: Sequence[int] = (1, 2), **speculation: object) -> SequenceJob:
    return SequenceJob(
        id=number,
        tokens=prompt,
        sampling=Sampling(temperature=0),
        speculation=Speculation(**speculation),  # type: ignore[arg-type]
    )


def said(events: Sequence[StepEvent], number: int = 0) -> bytes:
    tokens = [token for e in events if isinstance(e, Sampled) and e.id == number for token in e.tokens]
    return bytes(tokens[:-1])


@given(
    st.sampled_from(["cpu", "gpu", "flat", "1:1,2:2"]),
    st.none() | st.floats(0, 0.02),
    st.floats(0, 1),
    st.integers(1, 4),
    st.sampled_from(["auto", "lookup", "model", "off"]),
)
def test_what_is_said_never_depends_on_what_is_drafted(
    curve: str, draft_s: float | None, acceptance: float, sequences: int, drafter: str
) -> None:
    script = Script(text=TEXT, pace_s=0.02, curve=curve, draft_s=draft_s, acceptance=acceptance)
    events, _ = play(script, *(ask(number, drafter=drafter) for number in range(sequences)))
    for number in range(sequences):
        assert said(events, number) == TEXT.encode()
    for event in events:
        if isinstance(event, Sampled):
            assert len(event.tokens) == 1 + event.accepted
            assert event.accepted <= event.drafted
            assert (event.plain_s > 0) == (event.drafted > 0)


def test_a_pass_costs_what_the_curve_says() -> None:
    device = Device(0.02, "1:1,2:1.8,8:4.5", VirtualClock())
    takes = [device.seconds(rows) / 0.02 for rows in (1, 2, 5, 8, 14)]
    assert takes == pytest.approx([1, 1.8, 3.15, 4.5, 7.2])
    events, clock = play(Script(text="abcdefgh", pace_s=0.5, curve="cpu"), ask(drafter="off"))
    assert clock.now() == pytest.approx(0.5 * (len(said(events)) + 1 - 1)), "the first token is the prefill's"


def test_lookup_drafts_where_it_pays_only() -> None:
    fast, clock = play(Script(text=TEXT, pace_s=0.02, curve="flat"), ask())
    slow, plain = play(Script(text=TEXT, pace_s=0.02, curve="1:1,2:2"), ask())
    assert clock.now() < plain.now() / 4
    assert not any(event.drafted for event in slow if isinstance(event, Sampled))
    assert DraftingChanged(0, "prompt lookup") in fast


def test_a_draft_model_is_there_where_its_cost_is_given() -> None:
    options = LoadOptions(backend="scripted", model="", name="")
    assert ScriptedBackend(Script(curve="gpu"), options).info.draft == ""
    backend = ScriptedBackend(Script(curve="gpu", draft_s=0.001), options)
    assert backend.info.draft
    events, _ = play(Script(pace_s=0.02, curve="gpu", draft_s=0.001, acceptance=1), ask(drafter="model"))
    assert next(event for event in events if isinstance(event, DraftingChanged)).drafter == backend.info.draft
    assert sum(event.accepted for event in events if isinstance(event, Sampled)) > 100


def test_drafts_of_a_fixed_length_are_honest_about_what_was_asked() -> None:
    script = Script(text=TEXT, pace_s=0.02, draft=4, acceptance=0.8)
    for drafter, drafted in (("auto", True), ("model", True), ("lookup", False), ("off", False)):
        events, _ = play(script, ask(drafter=drafter))
        assert any(event.drafted for event in events if isinstance(event, Sampled)) == drafted
        (news,) = [event for event in events if isinstance(event, DraftingChanged)]
        assert (news.off == "") == drafted
