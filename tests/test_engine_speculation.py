"""Speculation as faces see it: figures, reasons, and replies that end inside an accepted run."""

from urllib.parse import quote

import pytest

from localinfer.types import Done, Drafting, Piece, Sampling, Speculation
from tests.engines import ask, scripted, until

PHRASE = "the sea is blue and the sky is blue. "
REPEATING = quote(PHRASE * 12)
DEVICE = f"text={REPEATING}&pace_s=0.003&curve=flat"


def test_a_text_that_repeats_itself_comes_faster_and_says_by_how_much() -> None:
    with scripted(DEVICE) as engine:
        plain = engine.submit(ask(speculation=Speculation(drafter="off")))
        text = plain.text()
        drafted = engine.submit(ask())
        assert drafted.text() == text
    one, two = plain.metrics, drafted.metrics
    assert (one.drafts, one.speculation_gain, one.speculation_off) == (0, None, "switched off")
    assert two.drafter == "prompt lookup"
    assert two.accepted > 100
    assert two.completion_tokens == one.completion_tokens
    assert one.tps is not None
    assert two.tps is not None
    assert two.speculation_gain is not None
    assert two.speculation_gain > 2
    assert two.tps / one.tps == pytest.approx(two.speculation_gain, rel=0.5)
    assert two.acceptance_rate == pytest.approx(two.accepted / two.drafted)
    assert two.mean_accepted_length == pytest.approx(1 + two.accepted / two.drafts)
    assert two.accepted_by_position[0] >= two.accepted_by_position[-1]
    assert all(0 <= share <= 1 for share in two.accepted_by_position)


@pytest.mark.parametrize("ending", ["sky is", "blue.", "e and"])
def test_a_stop_string_ends_the_reply_inside_an_accepted_run(ending: str) -> None:
    with scripted(DEVICE) as engine:
        texts = []
        for drafter in ("off", "lookup"):
            speculation = Speculation(drafter=drafter)
            request = ask(
                speculation=speculation, prediction=PHRASE * 2, stop=(ending,), sampling=Sampling(temperature=0)
            )
            generation = engine.submit(request)
            texts.append((generation.text(), generation.metrics.completion_tokens))
            assert generation.metrics.finish_reason == "stop"
            assert generation.metrics.accepted <= generation.metrics.completion_tokens
        assert texts[0] == texts[1]
        assert texts[0][0] == PHRASE[: PHRASE.find(ending)]


def test_a_prediction_is_drafted_from_the_first_token_on() -> None:
    words = "Nothing in this sentence was ever said before by anybody at all."
    with scripted(f"text={quote(words)}&pace_s=0.003&curve=flat") as engine:
        engine.submit(ask()).text()  # what a pass takes is known from here on
        alone, helped = engine.submit(ask()), engine.submit(ask(prediction=f"He said: {words} And more."))
        assert alone.text() == helped.text() == words
        assert helped.metrics.accepted > 40 > alone.metrics.accepted


def test_every_token_of_an_accepted_run_has_its_log_probability() -> None:
    with scripted(DEVICE) as engine:
        sampling = Sampling(temperature=0, top_logprobs=2)
        events = list(engine.submit(ask(sampling=sampling)))
    pieces = [event for event in events if isinstance(event, Piece)]
    assert any(piece.accepted > 2 for piece in pieces)
    assert all(len(piece.logprobs) == piece.tokens for piece in pieces)
    said = b"".join(logprob.token_bytes for piece in pieces for logprob in piece.logprobs)
    assert said.decode() == "".join(piece.text for piece in pieces)


def test_cancelling_inside_an_accepted_run_ends_at_once() -> None:
    with scripted(f"text={REPEATING}&pace_s=0.05&curve=flat") as engine:
        generation = engine.submit(ask(ignore_eos=True))
        until(generation, lambda event: isinstance(event, Piece) and event.accepted > 1)
        generation.cancel()
        assert generation.metrics.finish_reason == "cancelled"
        assert engine.submit(ask(max_tokens=3)).text() == PHRASE[:3]


def test_why_nothing_is_drafted_is_said_once_it_is_known() -> None:
    text = quote(" ".join(f"{number * 7919 % 10007}" for number in range(60)))
    with scripted(f"text={text}&pace_s=0.001&curve=cpu") as engine:
        generation = engine.submit(ask())
        events = list(generation)
    told = [event for event in events if isinstance(event, Drafting)]
    assert told[0] == Drafting(drafter="prompt lookup")
    assert told[-1].off
    assert generation.metrics.speculation_off
    assert len(told) < 20
    assert isinstance(events[-1], Done)


def test_a_draft_model_that_is_always_wrong_is_off_with_the_reason() -> None:
    text = quote(" ".join(f"{number * 7919 % 10007}" for number in range(120)))
    with scripted(f"text={text}&pace_s=0.001&curve=flat&draft_s=0.0002&acceptance=0") as engine:
        generation = engine.submit(ask(speculation=Speculation(drafter="model")))
        generation.text()
    assert "of its tokens are right" in generation.metrics.speculation_off
    assert generation.metrics.accepted == 0
    assert generation.metrics.drafted < 64
