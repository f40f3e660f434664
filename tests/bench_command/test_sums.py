"""The arithmetic of samples, as properties and against values worked out by hand or from the literature."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.bench.sums import least_p, mann_whitney, median, spread

FLOATS = st.floats(-1e6, 1e6)
SAMPLES = st.lists(FLOATS, min_size=1, max_size=40)


@given(SAMPLES)
def test_percentiles_are_in_order_and_within_the_samples(values: list[float]) -> None:
    found = spread(values)
    assert found is not None
    assert min(values) <= found.p50 <= found.p90 <= found.p99 <= max(values)
    assert found.samples == tuple(values)
    assert found.p50 == median(values)


def test_percentiles_interpolate() -> None:
    found = spread(range(101))
    assert found is not None
    assert (found.p50, found.p90, found.p99) == (50, 90, 99)


def test_what_was_not_measured_is_left_out() -> None:
    assert spread([]) is None
    assert spread([None, None]) is None
    found = spread([None, 2.0])
    assert found is not None
    assert found.samples == (2.0,)
    pooled = spread([1.0, 2.0], [5.0, 5.0, 5.0])
    assert pooled is not None
    assert (pooled.p50, pooled.samples) == (5.0, (1.0, 2.0))


@given(SAMPLES, SAMPLES)
def test_p_is_a_probability_and_has_no_side(first: list[float], second: list[float]) -> None:
    p = mann_whitney(first, second)
    assert 0 <= p <= 1
    assert p == pytest.approx(mann_whitney(second, first))
    assert p == pytest.approx(mann_whitney([-value for value in first], [-value for value in second]))


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 3), (4, 4), (5, 3)])
def test_p_is_what_counting_every_arrangement_gives(m: int, n: int) -> None:
    ranks = range(m + n)

    def u(first: tuple[int, ...]) -> int:
        return sum(a > b for a in first for b in ranks if b not in first)

    every = [u(first) for first in itertools.combinations(ranks, m)]
    for first in itertools.combinations(ranks, m):
        second = [rank for rank in ranks if rank not in first]
        away = abs(u(first) - m * n / 2)
        wanted = sum(abs(other - m * n / 2) >= away for other in every) / len(every)
        assert mann_whitney(first, second) == pytest.approx(wanted)


def test_known_values() -> None:
    assert mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert mann_whitney([1, 1, 1], [1, 1, 1]) == 1.0
    assert mann_whitney([], [1.0]) == 1.0


def test_the_least_p_is_that_of_samples_apart() -> None:
    for m, n in itertools.product(range(1, 8), repeat=2):
        apart = mann_whitney(range(m), range(100, 100 + n))
        assert apart == pytest.approx(least_p(m, n))


def test_samples_of_one_distribution_rarely_differ() -> None:
    draw = random.Random(1)
    found = sum(
        mann_whitney([draw.gauss(0, 1) for _ in range(6)], [draw.gauss(0, 1) for _ in range(6)]) < 0.05
        for _ in range(1000)
    )
    assert 10 < found < 70
