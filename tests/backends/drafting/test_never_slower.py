"""Speculation on simulated devices: never slower than plain decoding, whatever the text, and faster where it is due."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.scripted.device import Device
from tests.backends.drafting.simulation import CURVES, VirtualClock, simulate
from tests.backends.drafting.texts import TEXTS, Pair, edit, noise, right_drafts

OVERALL, LATER = 0.95, 0.98
TOKENS = 320
DRIFTS: dict[str, Callable[[float], float]] = {
    "steady": lambda _: 1.0,
    "half as fast midway": lambda seconds: 2.0 if seconds > TOKENS * 0.01 else 1.0,
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("drift", DRIFTS)
def test_prompt_lookup_is_never_slower(text: str, curve: str, drift: str) -> None:
    pair = TEXTS[text](random.Random(11), TOKENS)
    outcome = simulate([pair], CURVES[curve], clock=VirtualClock(0.2, DRIFTS[drift], seed=11))
    assert outcome.gain >= OVERALL
    assert outcome.later >= LATER


@pytest.mark.parametrize("cost", [0.05, 0.25, 0.6])
@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("text", ["noise", "chat", "edit", "wrong"])
def test_a_draft_model_is_never_slower_alone_or_behind_lookup(cost: float, acceptance: float, text: str) -> None:
    pair = TEXTS[text](random.Random(12), 2 * TOKENS)
    for curve in ("0.5B on two cores", "card", "flat"):
        outcome = simulate(
            [pair],
            CURVES[curve],
            drafter="model" if text == "noise" else "auto",
            draft=cost,
            acceptance=acceptance,
            clock=VirtualClock(0.1, seed=12),
        )
        assert outcome.gain >= OVERALL
        assert outcome.later >= LATER


@pytest.mark.parametrize("text", ["chat", "edit", "wrong"])
@pytest.mark.parametrize("sequences", [4, 8])
def test_several_sequences_together_are_never_slower(text: str, sequences: int) -> None:
    chance = random.Random(13)
    pairs = [TEXTS[text](chance, 256) for _ in range(sequences)]
    for curve in ("0.5B on two cores", "card", "stepped"):
        outcome = simulate(pairs, CURVES[curve], clock=VirtualClock(0.1, seed=13))
        assert outcome.gain >= OVERALL
        assert outcome.later >= LATER


rises = st.lists(st.floats(0, 1.5), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(rises, st.sampled_from(sorted(TEXTS)), st.integers(0, 2**32))
def test_nothing_is_lost_on_any_device(steps: list[float], text: str, seed: int) -> None:
    relative, points = 1.0, ["1:1"]
    for doubling, step in enumerate(steps, 1):
        relative += step * 2 ** (doubling - 1)
        points.append(f"{2**doubling}:{relative:.3f}")
    pair = TEXTS[text](random.Random(seed), 256)
    assert simulate([pair], ",".join(points)).gain >= OVERALL


# Copies end where nobody can know it, and the dearer a row the more that costs: the shares are what is reached.
@pytest.mark.parametrize(
    ("curve", "share"),
    [
        ("0.5B on two cores", 0.5),
        ("1.5B on two cores", 0.5),
        ("135M on two cores", 0.65),
        ("card", 0.78),
        ("stepped", 0.78),
        ("flat", 0.95),
    ],
)
def test_an_edit_gains_a_good_part_of_what_hindsight_would(curve: str, share: float) -> None:
    gains, bounds = 0.0, 0.0
    for seed in range(3):
        pair = edit(random.Random(seed), 500)
        gains += simulate([pair], CURVES[curve], clock=VirtualClock(0.1, seed=seed)).gain
        bounds += hindsight(pair, CURVES[curve])
    assert gains >= share * bounds


def hindsight(pair: Pair, curve: str) -> float:
    """The gain of one who knows how much of each draft is right: V(t) = min over k of C(1 + k) + V(t + 1 + k)."""
    device = Device(1.0, curve, VirtualClock())
    right = right_drafts(*pair, 63)
    count = len(right)
    takes = [device.seconds(rows) for rows in range(65)]
    left = [0.0] * (count + 1)
    for place in range(count - 1, -1, -1):
        left[place] = min(takes[1 + k] + left[min(count, place + 1 + k)] for k in range(right[place] + 1))
    return count * takes[1] / left[0]


def test_a_good_draft_model_gains() -> None:
    """A target's pass of four draft passes or more, and seven tokens of ten right."""
    pair = noise(random.Random(14), 500)
    for acceptance, gain in ((0.7, 1.3), (0.95, 2.0)):
        outcome = simulate([pair], "gpu", drafter="model", draft=0.25, acceptance=acceptance)
        assert outcome.gain >= gain
