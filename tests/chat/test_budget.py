"""Everything is paid for by what it really takes, and what cannot be paid for is not done."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.chat.budget import Budget, WorkLimit

scalars = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | st.text(max_size=9)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4) | st.tuples(inner, inner)
    ),
    max_leaves=12,
)


def rich() -> Budget:
    return Budget(10**9)


@given(values)
def test_printing_is_paid_for(value: object) -> None:
    # A character may be printed as an escape of ten, a number takes up to 24.
    assert 24 * rich().weight(value) >= len(str(value))


@given(values)
def test_a_shared_value_weighs_as_often_as_it_is_printed(value: object) -> None:
    budget = rich()
    once = budget.weight([value])
    assert budget.weight([value, value, value]) == 3 * budget.weight([value]) - 2 * budget.weight([])
    assert budget.weight([value]) == once


def test_doubling_is_weighed_without_doing_it() -> None:
    budget = Budget(100_000)
    value: list[object] = []
    for _ in range(90):
        value = [value, value]
    assert budget.weight(value) > 2**90
    with pytest.raises(WorkLimit, match="too much"):
        budget.string(value)


def test_values_that_go_too_deep() -> None:
    budget = rich()
    value: list[object] = []
    for _ in range(99):
        value = [value]
        budget.weight(value)
    with pytest.raises(WorkLimit, match="deep"):
        budget.weight([value])


def test_a_budget_ends() -> None:
    budget = Budget(10)
    budget.spend(10)
    with pytest.raises(WorkLimit):
        budget.spend(1)


@given(st.text("ab"), st.text("ab", max_size=2), st.text("ab"), st.integers(-1, 3))
def test_strings_come_out_as_python_makes_them(text: str, old: str, new: str, count: int) -> None:
    assert rich().replaced(text, old, new, count) == text.replace(old, new, count)
    assert rich().joined(new, text) == new.join(text)


@given(values, st.none() | st.integers(0, 4), st.booleans())
def test_json_comes_out_as_python_makes_it(value: object, indent: int | None, ensure_ascii: bool) -> None:
    expected = json.dumps(value, indent=indent, ensure_ascii=ensure_ascii)
    assert rich().json(value, ensure_ascii=ensure_ascii, indent=indent) == expected


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [
        ("*", "ab", 10**9),
        ("*", 10**9, [1]),
        ("+", "a" * 600_000, "b" * 600_000),
        ("**", 9, 9**9),
        ("**", 9, -(9**9)),
        ("*", 2**5000, 2**5000),
        ("%", "%9d", 1),
    ],
)
def test_results_that_are_too_big_are_not_made(operator: str, left: object, right: object) -> None:
    with pytest.raises(WorkLimit):
        Budget(1_000_000).operate(operator, left, right)


@pytest.mark.parametrize(
    ("operator", "left", "right"),
    [("*", "ab", 3), ("*", "ab", -1), ("+", [1], [2]), ("**", 2, 10), ("*", 2.5, 3), ("%", 7, 3), ("**", 2.5, 2)],
)
def test_results_of_an_ordinary_size_are_cheap(operator: str, left: object, right: object) -> None:
    Budget(100).operate(operator, left, right)
