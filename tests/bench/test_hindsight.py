"""The best with hindsight is the best there is, and what is replayed is what prompt lookup drafts."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.bench.hindsight import agreeing, best

FREE = [0.0, *([1.0] * 64)]  # whatever it checks, a pass takes a second
LINEAR = [float(rows) for rows in range(65)]  # a row takes a second


def seconds(curve_s: list[float], agree: list[int], lengths: tuple[int, ...]) -> float:
    """What these draft lengths, by place, come to."""
    place, spent_s = 0, 0.0
    while place < len(agree):
        spent_s += curve_s[1 + lengths[place]]
        place += 1 + min(lengths[place], agree[place])
    return spent_s


@given(
    st.lists(st.floats(0.1, 3.0), min_size=3, max_size=3),
    st.lists(st.integers(0, 3), min_size=1, max_size=7),
)
def test_no_choice_of_lengths_is_cheaper(costs: list[float], agree: list[int]) -> None:
    curve_s = [0.0, *costs]
    found = best(curve_s, agree)
    every = product(range(3), repeat=len(agree))
    assert abs(found.seconds - min(seconds(curve_s, agree, lengths) for lengths in every)) < 1e-9


def test_free_rows_are_all_used_and_dear_ones_never() -> None:
    agree = [5, 4, 3, 2, 1, 0, 0]
    assert best(FREE, agree).seconds == 2
    assert best(LINEAR, agree).seconds == len(agree)
    assert best([0.0, 1.0, 2.5, 3.5], agree).lengths == (0,) * len(agree)


def test_a_step_of_the_costs_is_climbed_where_more_rows_are_cheaper() -> None:
    assert best([0.0, 1.0, 9.0, 1.5], [1, 0]).lengths == (2,)


def test_lookup_agrees_with_a_text_that_repeats_the_prompt() -> None:
    prompt = list(range(100, 140))
    agree = agreeing(prompt, [*prompt[:20], 7, 8, 9], most=10)
    assert len(agree) == 22
    assert agree[3:10] == [10] * 7  # as many as may be drafted
    assert agree[11:18] == [8, 7, 6, 5, 4, 3, 2]  # up to where the text leaves the prompt
    assert agree[-2:] == [0, 0]


def test_nothing_agrees_with_a_text_that_repeats_nothing() -> None:
    assert agreeing(range(50), range(100, 110), most=10) == [0] * 9
