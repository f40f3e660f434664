"""What the speculator tells and keeps account of, and how soon it notices."""

import random
import time

import pytest

from backends.base import DraftingChanged
from backends.drafting import CPU_GUESS, PassCosts, Speculator, Wish, one_part
from localinfer.types import Speculation
from tests.backends.drafting.simulation import CURVES, VirtualClock, simulate
from tests.backends.drafting.texts import alternating, noise

COPY = list(range(100, 140))


def speculator(*, plain_s: float | None = 0.02) -> Speculator:
    costs = PassCosts(64, CPU_GUESS)
    if plain_s is not None:
        costs.calibrate({rows: plain_s * (1 + 0.1 * (rows - 1)) for rows in range(1, 65)})
    return Speculator(costs, one_part, budget=63)


def begun(**speculation: object) -> Speculator:
    made = speculator()
    made.begin(7, [*COPY, 1, *COPY[:10]], Speculation(**speculation))  # type: ignore[arg-type]
    return made


def test_what_repeats_is_proposed_and_fits_the_room() -> None:
    made = begun()
    assert made.news() == [DraftingChanged(7, "prompt lookup")]
    assert made.news() == []
    proposal = made.propose([Wish(7, 3)], [0])
    assert proposal is not None
    assert list(proposal.drafts[0]) == COPY[10:13]
    assert list(proposal.rows) == [4]


@pytest.mark.parametrize(
    ("speculation", "reason"),
    [
        ({"drafter": "off"}, "switched off"),
        ({"most": 0}, "switched off"),
        ({"drafter": "model"}, "no draft model is loaded"),
    ],
)
def test_what_was_not_asked_for_is_not_drafted(speculation: dict[str, object], reason: str) -> None:
    made = begun(**speculation)
    assert made.news() == [DraftingChanged(7, "", reason)]
    assert not made.active
    assert made.propose([Wish(7, 50)], [0]) is None
    made.extend(7, [1], 0)
    made.end(7)


def test_most_bounds_the_draft_and_no_room_is_no_draft() -> None:
    made = begun(most=2)
    proposal = made.propose([Wish(7, 50)], [0])
    assert proposal is not None
    assert len(proposal.drafts[0]) == 2
    assert made.propose([Wish(7, 0)], [0]) is None


def test_nothing_is_drafted_before_a_pass_was_measured() -> None:
    made = speculator(plain_s=None)
    made.begin(7, [*COPY, 1, *COPY[:10]], Speculation())
    assert made.propose([Wish(7, 50)], [0]) is None
    made.passed([0], [1], 1, 0.02, 0.0)
    assert made.propose([Wish(7, 50)], [0]) is not None


def test_a_pass_is_compared_with_a_plain_one() -> None:
    made = begun()
    assert made.passed([0], [8], 8, 0.034, 0.0) == pytest.approx(0.02, rel=0.05)
    assert made.passed([0], [8], 8, 0.134, 0.0, beside_prefill=True) == pytest.approx(0.12, rel=0.05)


def test_what_is_lost_ends_drafting_and_what_is_won_allows_it_again() -> None:
    made = begun()
    for _ in range(3):
        made.passed([0], [8], 1, 0.034, 0.0)
    assert made.propose([Wish(7, 50)], [0]) is None
    for _ in range(3):
        made.passed([0], [8], 8, 0.034, 0.0)
    assert made.propose([Wish(7, 50)], [0]) is not None


def test_the_reason_is_told_once_and_taken_back_when_drafts_come_again() -> None:
    made = begun()
    made.news()
    for token in range(1000, 1100):
        made.propose([Wish(7, 50)], [0])
        made.extend(7, [token], 0)
    assert made.news() == [DraftingChanged(7, "prompt lookup", "nothing repeats at present")]
    made.extend(7, COPY[:4], 3)
    assert made.news() == [DraftingChanged(7, "prompt lookup")]


@pytest.mark.parametrize("curve", ["cpu", "gpu", "flat"])
@pytest.mark.parametrize("cost", [0.25, 0.6])
def test_a_draft_model_that_is_always_wrong_is_off_with_the_reason_soon(curve: str, cost: float) -> None:
    pair = noise(random.Random(2), 400)
    outcome = simulate([pair], curve, drafter="model", draft=cost, acceptance=0.0)
    first = next((said, why) for said, why in outcome.news if why)
    assert first[0] <= 64
    assert "tokens are right" in first[1] or "drafting and checking" in first[1]
    assert sum(drafted for said, drafted, _ in outcome.drafts if said > 128) <= 10


@pytest.mark.parametrize("curve", ["0.5B on two cores", "135M on two cores", "card", "flat"])
def test_a_change_of_text_is_noticed_within_32_tokens(curve: str) -> None:
    chance = random.Random(3)
    source = [chance.randrange(20_000) for _ in range(120)]
    pair = [*source, 1, 2], [*noise(chance, 300)[1], *source]
    outcome = simulate([pair], CURVES[curve], clock=VirtualClock(0.1))
    assert min(said for said, _, accepted in outcome.drafts if said >= 300 and accepted) <= 332


def test_a_choice_is_quick_in_a_long_context() -> None:
    """Ten times what it may take, for machines that are busy; tests.bench.drafting measures it."""
    chance = random.Random(4)
    prompt, _ = alternating(chance, 200)
    made = speculator()
    made.begin(1, [chance.choice(prompt) for _ in range(32_768)], Speculation())
    started = time.perf_counter()
    for _ in range(300):
        proposal = made.propose([Wish(1, 60)], [0])
        rows = [1] if proposal is None else list(proposal.rows)
        made.passed([0], rows, 1, 0.02, 0.0)
        made.extend(1, [chance.choice(prompt)], rows[0] - 1)
    assert (time.perf_counter() - started) / 300 < 500e-6
