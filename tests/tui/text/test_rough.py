"""Rows that are made when they are looked at: all of the text, never too wide, megabytes in no time."""

import time

from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from tests.tui.text.soup import soups
from tui.text.clean import clean
from tui.text.rough import Chain, Rough

STYLE = Style(bold=True)


@given(soups, st.integers(1, 40))
def test_no_row_is_too_wide(text: str, width: int) -> None:
    rows = Rough(clean(text), width, STYLE)
    assert len(rows) >= 1
    assert all(row.cell_length <= width for row in rows)


@given(st.text("ab é字\n", max_size=80), st.integers(2, 20))
def test_nothing_is_left_out(text: str, width: int) -> None:
    rows = Rough(text, width, STYLE)
    assert "".join(row.text for row in rows) == text.replace("\n", "")
    assert "".join(map(rows.text, range(len(rows)))) == text.replace("\n", "")


def test_rows_are_cut_where_they_are_full_and_stand_in() -> None:
    rows = Rough("abcdefgh\n\n字字字字", 6, STYLE, indent=2)
    assert [row.text for row in rows] == ["  abcd", "  efgh", "  ", "  字字", "  字字"]
    assert rows[-1].text == "  字字"
    assert [row.text for row in rows[1:3]] == ["  efgh", "  "]


def test_a_chain_is_its_parts() -> None:
    parts = Rough("a\nb", 5, STYLE), (), Rough("c", 5, STYLE)
    chain = Chain(*parts)
    assert [row.text for row in chain] == ["a", "b", "c"]
    assert [chain.text(place) for place in range(3)] == ["a", "b", "c"]


def test_megabytes_take_no_time() -> None:
    text = "Some words that are not very long at all.\n" * 150_000
    start_s = time.thread_time()
    rows = Rough(text, 30, STYLE)
    assert rows[len(rows) - 2].text == "very long at all."[-11:]
    assert time.thread_time() - start_s < 0.6
