"""The formulas, against the same sums written out in exact arithmetic, and their properties."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from localinfer.divergence import Floats, divergence, kl, log_probabilities, perplexity

logits = arrays.arrays(np.float32, 9, elements=st.floats(-30, 30, width=32))


def plain(values: Floats) -> list[float]:
    """Log-probabilities by the definition."""
    total = math.fsum(math.exp(value) for value in values.tolist())
    return [value - math.log(total) for value in values.tolist()]


@given(logits)
def test_log_probabilities_are_those_of_the_definition(values: Floats) -> None:
    found = log_probabilities(values)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(plain(values), abs=2e-5)
    assert np.exp(found.astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)


@given(logits, logits)
def test_kl_is_that_of_the_definition(one: Floats, other: Floats) -> None:
    a, b = plain(one), plain(other)
    expected = math.fsum(math.exp(p) * (p - q) for p, q in zip(a, b, strict=True))
    assert kl(log_probabilities(one), log_probabilities(other)) == pytest.approx(expected, abs=5e-5)


@given(logits)
def test_nothing_diverges_from_itself(values: Floats) -> None:
    found = log_probabilities(values)
    assert kl(found, found) == 0


def test_large_logits_do_not_overflow() -> None:
    found = log_probabilities(np.array([5000, 4999, -5000], np.float32))
    assert found.tolist() == pytest.approx([-0.31326, -1.31326, -10000.31326], rel=1e-5)


def test_a_token_without_a_chance_counts_nothing() -> None:
    """Also where the other model gives it none either."""
    reference = log_probabilities(np.array([0, 0, -np.inf], np.float32))
    other = log_probabilities(np.array([0, 1, -np.inf], np.float32))
    assert kl(reference, other) == pytest.approx(0.5 * (-math.log(2) * 2 + 1.31326 + 0.31326), abs=1e-5)


def test_a_chance_that_the_other_model_excludes_is_infinitely_far() -> None:
    reference = log_probabilities(np.array([0, 0], np.float32))
    other = log_probabilities(np.array([0, -np.inf], np.float32))
    assert kl(reference, other) == math.inf


@given(st.lists(st.floats(0.01, 12), min_size=2, max_size=50))
def test_perplexity_and_its_error(losses: list[float]) -> None:
    found = perplexity(losses)
    assert found.value == pytest.approx(math.exp(statistics.fmean(losses)))
    error = found.value * statistics.pstdev(losses) / math.sqrt(len(losses) - 1)
    assert found.error == pytest.approx(error, abs=1e-6 * found.value)


def test_the_perplexity_of_a_fair_die_is_its_faces() -> None:
    assert perplexity([math.log(6)] * 10).value == pytest.approx(6)


def test_divergence_of_many_positions() -> None:
    kls = [index / 100 for index in range(101)]
    found = divergence(kls[::-1], [True, True, True, False])
    assert (found.mean, found.p50, found.p90) == pytest.approx((0.5, 0.5, 0.9))
    assert (found.p99, found.largest, found.same_top) == pytest.approx((0.99, 1.0, 0.75))
