"""The best length is the best of all lengths, and what a token may cost is what it can bring."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.drafting import policy
from backends.drafting.drafts import Draft
from backends.drafting.policy import MARGIN, MARGIN_TOGETHER, best_length, best_lengths, prices

FOREVER = 1e9
survivals = st.lists(st.floats(0, 1), max_size=12).map(lambda chances: sorted(chances, reverse=True))
steps = st.lists(st.floats(0, 2), min_size=14, max_size=14)


def curve_of(rises: Sequence[float]) -> list[float]:
    curve = [0.0, 1.0]
    for rise in rises:
        curve.append(curve[-1] + rise)
    return curve


@given(survivals, steps, st.floats(0, 1), st.floats(0, 1), st.integers(0, 7), st.floats(0.5, 20))
def test_one_sequence_gets_the_length_that_yields_most(
    survival: list[float], rises: list[float], extra_s: float, fixed_s: float, others: int, limit_s: float
) -> None:
    curve = curve_of(rises)
    choice = best_length(survival, curve, limit_s, extra_s=extra_s, fixed_s=fixed_s, others=others)
    (length,) = choice.lengths
    takes = [curve[1 + k] + (extra_s * k + fixed_s if k else 0) for k in range(len(survival) + 1)]
    rates = [(1 + others + sum(survival[:k])) / takes[k] for k in range(len(survival) + 1)]
    allowed = [k for k in range(1, len(survival) + 1) if takes[k] <= limit_s]
    best = max((rates[k] for k in allowed), default=0.0)
    assert choice.rate == pytest.approx(rates[length])
    if length:
        assert rates[length] == pytest.approx(best)
        assert takes[length] <= limit_s
        assert rates[length] > rates[0] * (1 + MARGIN)
    else:
        assert best <= rates[0] * (1 + MARGIN) * (1 + 1e-9)


@given(st.lists(survivals, min_size=2, max_size=3), steps, st.floats(1, 20), st.integers(1, 12))
def test_several_sequences_keep_to_what_there_is_and_never_lose(
    many: list[list[float]], rises: list[float], limit_s: float, rows: int
) -> None:
    drafts = [Draft(list(range(len(survival))), survival) for survival in many]
    per_row = curve_of(rises * 3)

    def seconds(lengths: Sequence[int]) -> float:
        return per_row[sum(lengths) + len(lengths)]

    def rate(lengths: Sequence[int]) -> float:
        return sum(1 + sum(s[:n]) for s, n in zip(many, lengths, strict=True)) / seconds(lengths)

    choice = best_lengths(drafts, seconds, limit_s, rows=rows)
    assert choice.rate == pytest.approx(rate(choice.lengths))
    assert all(n <= len(survival) for n, survival in zip(choice.lengths, many, strict=True))
    assert sum(choice.lengths) <= rows
    if any(choice.lengths):
        assert seconds(choice.lengths) <= limit_s
        assert choice.rate > rate([0] * len(many))


@pytest.mark.parametrize("slope", [0.02, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("sure", [(0.9, 0.9), (0.9, 0.3), (0.6, 0.1), (0.99, 0.0), (0.2, 0.2)])
def test_two_sequences_get_nearly_the_best_pair_of_lengths(
    monkeypatch: pytest.MonkeyPatch, slope: float, sure: tuple[float, float]
) -> None:
    drafts = [Draft(list(range(9)), [chance ** (1 + k) for k in range(9)]) for chance in sure]

    def seconds(lengths: Sequence[int]) -> float:
        return 1 + slope * sum(lengths)

    def rate(lengths: Sequence[int]) -> float:
        return sum(1 + sum(d.survival[:n]) for d, n in zip(drafts, lengths, strict=True)) / seconds(lengths)

    best = max(rate(lengths) for lengths in product(range(10), repeat=2))
    careful = best_lengths(drafts, seconds, FOREVER, rows=63).rate
    assert careful == rate([0, 0]) or careful > (1 + MARGIN_TOGETHER) * rate([0, 0])
    monkeypatch.setattr(policy, "MARGIN_TOGETHER", MARGIN)
    assert best_lengths(drafts, seconds, FOREVER, rows=63).rate >= 0.93 * best


def test_free_rows_are_filled_up_to_the_step() -> None:
    curve = [0.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0]
    assert best_length([0.3, 0.1, 0.05, 0.04, 0.03], curve, FOREVER).lengths == (3,)


@given(steps, st.floats(0.01, 3), st.floats(0, 1), st.integers(1, 12))
def test_a_token_is_refused_only_where_no_run_from_it_on_can_pay(
    rises: list[float], rate: float, token_s: float, most: int
) -> None:
    curve = curve_of(rises)
    asked = prices(curve, rate, token_s, most)
    assert len(asked) == most
    for first, price in enumerate(asked):
        # As sure as the price says, the best run of tokens from here on brings just what it takes.
        worth = [
            price * count - rate * (curve[1 + first + count] - curve[1 + first] + count * token_s)
            for count in range(1, most - first + 1)
        ]
        assert max(worth) == pytest.approx(0, abs=1e-6)
