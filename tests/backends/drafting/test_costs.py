"""What passes take is learnt from what they took, on any device, and a hiccup is not believed."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.drafting import CPU_GUESS, GPU_GUESS, Part, PassCosts

ROWS = 64


def one(rows: int, sequences: int = 1) -> list[Part]:
    return [Part(sequences, rows)]


@given(st.dictionaries(st.integers(2, ROWS), st.floats(0.01, 10), max_size=8), st.floats(0.001, 1))
def test_what_was_measured_is_known_and_between_is_straight(points: dict[int, float], plain_s: float) -> None:
    measured = {1: plain_s, **points}
    costs = PassCosts(ROWS, CPU_GUESS)
    costs.calibrate(measured)
    known = sorted(measured.items())
    for rows, seconds in known:
        assert costs.seconds(one(rows)) == pytest.approx(seconds)
        assert costs.curve()[rows] == pytest.approx(seconds)
    for (x0, y0), (x1, y1) in pairwise(known):
        for rows in range(x0, x1):
            assert costs.seconds(one(rows)) == pytest.approx(y0 + (y1 - y0) * (rows - x0) / (x1 - x0))
    assert costs.curve()[0] == 0
    assert len(costs.curve()) == ROWS + 1


def test_nothing_is_known_before_the_first_pass() -> None:
    costs = PassCosts(ROWS, GPU_GUESS)
    assert costs.plain_s is None
    costs.observe(one(8), 1.15)
    assert costs.plain_s == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_wrong_guess_is_mended_where_passes_are_seen(noise: float) -> None:
    chance = random.Random(1)
    costs = PassCosts(ROWS, CPU_GUESS)
    for _ in range(300):
        rows = chance.choice((1, 1, 2, 4, 8))
        costs.observe(one(rows), 0.03 * (1 + 0.02 * rows) * (1 + noise * chance.uniform(-1, 1)))
    for rows in (1, 2, 4, 8):
        assert costs.seconds(one(rows)) == pytest.approx(0.03 * (1 + 0.02 * rows), rel=0.05 + noise / 2)


def test_a_device_that_slows_down_is_followed_within_a_few_passes() -> None:
    costs = PassCosts(ROWS, CPU_GUESS)
    costs.calibrate({1: 0.02, 8: 0.09})
    for _ in range(24):
        costs.observe(one(1), 0.04)
    assert costs.seconds(one(1)) == pytest.approx(0.04, rel=0.05)
    assert costs.seconds(one(8)) == pytest.approx(0.18, rel=0.05), "the shape stays"


def test_a_hiccup_is_believed_in_part_only() -> None:
    costs = PassCosts(ROWS, CPU_GUESS)
    costs.calibrate({1: 0.02, 2: 0.03})
    costs.observe(one(1), 20.0)
    assert costs.seconds(one(1)) <= 0.03 + 1e-12


def test_several_sequences_have_a_price_of_their_own() -> None:
    costs = PassCosts(ROWS, CPU_GUESS)
    costs.calibrate({1: 0.02, 4: 0.05})
    for _ in range(40):
        costs.observe(one(4, sequences=4), 0.08)
    assert costs.seconds(one(4, sequences=4)) == pytest.approx(0.08, rel=0.02)
    assert costs.seconds(one(4)) == pytest.approx(0.05)


def test_a_pass_of_several_parts_takes_what_they_take_and_teaches_only_what_is_lost_between_them() -> None:
    costs = PassCosts(ROWS, CPU_GUESS)
    costs.calibrate({1: 0.02, 4: 0.05})
    parts = [Part(1, 4), Part(1, 1)]
    assert costs.seconds(parts) == pytest.approx(0.07)
    for _ in range(50):
        costs.observe(parts, 0.091)
    assert costs.seconds(parts) == pytest.approx(0.091, rel=0.01)
    assert costs.seconds(one(4)) == pytest.approx(0.05)


def test_beyond_the_curve_rows_go_on_costing() -> None:
    costs = PassCosts(ROWS, CPU_GUESS)
    costs.calibrate({1: 0.02, ROWS: 0.2})
    assert costs.seconds(one(4 * ROWS)) == pytest.approx(0.8)


@given(st.lists(st.tuples(st.integers(1, ROWS), st.floats(0.001, 3)), max_size=60))
def test_no_pass_is_ever_thought_cheaper_than_a_plain_one(seen: list[tuple[int, float]]) -> None:
    costs = PassCosts(ROWS, GPU_GUESS)
    costs.calibrate({1: 0.02, ROWS: 0.05})
    for rows, seconds in seen:
        costs.observe(one(rows), seconds)
    curve = costs.curve()
    assert min(curve[1:]) >= curve[1] * (1 - 1e-9) > 0
