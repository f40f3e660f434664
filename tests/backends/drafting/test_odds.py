"""Chances are those of what was seen: the guess first, then everybody's, then the sequence's own."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.drafting import Experience, Odds


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.lists(st.tuples(st.integers(0, 4), st.booleans())))
def test_chances_stay_chances_and_follow_what_was_seen(guesses: list[float], seen: list[tuple[int, bool]]) -> None:
    odds = Odds(Experience(guesses))
    assert odds.chances == pytest.approx(guesses)
    for bucket, right in seen:
        bucket %= len(guesses)
        before = list(odds.chances)
        odds.learn(bucket, right)
        assert 0 <= odds.chances[bucket] <= 1 + 1e-9
        if right:
            assert odds.chances[bucket] >= before[bucket] * 0.94
        else:
            assert odds.chances[bucket] <= before[bucket] + 1e-9
        assert [c for i, c in enumerate(odds.chances) if i != bucket] == [
            c for i, c in enumerate(before) if i != bucket
        ]


@pytest.mark.parametrize("truth", [0.05, 0.5, 0.9])
def test_the_share_that_is_right_is_found(truth: float) -> None:
    chance = random.Random(3)
    odds = Odds(Experience([0.5]))
    seen = []
    for _ in range(400):
        odds.learn(0, chance.random() < truth)
        seen.append(odds.chances[0])
    assert sum(seen[100:]) / 300 == pytest.approx(truth, abs=0.05)


def test_a_change_of_text_is_believed_within_sixteen_tokens() -> None:
    odds = Odds(Experience([0.5]))
    for _ in range(200):
        odds.learn(0, True)
    for _ in range(16):
        odds.learn(0, False)
    assert odds.chances[0] < 0.5


def test_a_new_sequence_begins_with_what_others_taught() -> None:
    shared = Experience([0.9, 0.9])
    other = Odds(shared)
    for _ in range(100):
        other.learn(0, False)
    assert Odds(shared).chances[0] < 0.2
    assert Odds(shared).chances[1] == pytest.approx(0.9)
