"""Bars and sparklines: what is something is seen, and nothing is wider than its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.readout import bars, figures
from tui.widgets.readout.rows import Entry, Span, cell_len, fit, named, pair, row, words, wrap

PARTS = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e12)), max_size=6)


@given(PARTS, st.integers(0, 60))
def test_the_cells_of_a_bar_add_up_and_nothing_is_invisible(parts: list[float], width: int) -> None:
    shared = bars.cells(parts, width)
    some = [taken for part, taken in zip(parts, shared, strict=True) if part > 0]
    assert sum(shared) == (width if some else 0)
    assert all(taken == 0 for part, taken in zip(parts, shared, strict=True) if part == 0)
    assert sum(taken > 0 for taken in some) == min(len(some), width)


@given(PARTS, st.integers(7, 60))
def test_a_bar_is_in_proportion_but_for_what_the_smallest_need(parts: list[float], width: int) -> None:
    total = sum(parts)
    for part, taken in zip(parts, bars.cells(parts, width), strict=True):
        assert not total or abs(taken - part / total * width) <= len(parts)


@given(PARTS, st.integers(0, 60))
def test_a_stacked_bar_fills_its_width(parts: list[float], width: int) -> None:
    drawn = bars.stacked("", width, [(part, "abcdef"[index], "bar") for index, part in enumerate(parts)])
    assert cell_len(drawn.text) == width


def test_shares_have_a_bar_each_and_what_there_is_no_room_for_is_left_out() -> None:
    def shown(*shares: float) -> str:
        return "".join(span.text for span in bars.shares(shares, 4))

    assert shown(1.0, 0.5, 0.0) == "█▅▁·"
    assert shown(*[1.0] * 9) == "████"
    assert shown() == "····"


@pytest.mark.parametrize(
    ("share", "shown"), [(None, 0), (0.0, 0), (0.001, 1), (0.5, 5), (0.71, 7), (1.0, 10), (2.5, 10)]
)
def test_a_level(share: float | None, shown: int) -> None:
    full, empty = bars.level(share, 10)
    assert (len(full.text), len(empty.text)) == (shown, 10 - shown)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=60), st.integers(0, 70), st.integers(60, 10**9))
def test_a_sparkline_is_as_wide_as_its_place(values: list[float | None], width: int, last: int) -> None:
    assert len(bars.spark(values, width, last)) == width


def test_a_sparkline_starts_at_nothing_and_leaves_gaps() -> None:
    assert bars.spark([None, 0.0, 50.0, None, 100.0], 6, 4) == "  ▁▅ █"


@given(st.lists(st.floats(1, 100), min_size=60, max_size=60), st.integers(1000, 2000))
def test_a_bar_of_two_seconds_keeps_its_height_as_it_moves_on(values: list[float], last: int) -> None:
    last += last % 2 == 0  # an odd second ends a pair
    before = bars.spark(values, 30, last)
    after = bars.spark([*values[2:], 1.0, 1.0], 30, last + 2)
    if max(values[2:]) == max(values):  # else the scale changes
        pairs = [sum(values[i : i + 2]) / 2 for i in range(0, 60, 2)]
        if max(pairs[1:]) == max(pairs):
            assert after[:-1] == before[1:]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (figures.seconds(0.2134), "0.21 s"),
        (figures.seconds(9.996), "10.0 s"),
        (figures.seconds(12.44), "12.4 s"),
        (figures.seconds(99.96), "100 s"),
        (figures.seconds(None), "– s"),
        (figures.rate(118.4), "118 tok/s"),
        (figures.rate(9.84), "9.8 tok/s"),
        (figures.rate(9.96), "10 tok/s"),
        (figures.rate(0.432), "0.43 tok/s"),
        (figures.rate(0.996), "1.0 tok/s"),
        (figures.rate(12345.0), "12,345 tok/s"),
        (figures.milliseconds(8.44), "8.4"),
        (figures.milliseconds(21.3), "21"),
        (figures.percent(0.714), "71 %"),
        (figures.percent(0.001), "<1 %"),
        (figures.percent(0.999), "99 %"),
        (figures.percent(1.0), "100 %"),
        (figures.percent(0.0), "0 %"),
        (figures.size(312 * 2**20), "312 MiB"),
        (figures.size(1023 * 2**20 + 2**19), "1.0 GiB"),
        (figures.size(128 * 2**30), "128 GiB"),
        (figures.size(None), "–"),
        (figures.bandwidth(42e9), "42 GB/s"),
    ],
)
def test_figures_are_rounded_as_a_careful_person_would(shown: str, expected: str) -> None:
    assert shown == expected


FOREIGN = st.text(max_size=40).map(words)


@given(FOREIGN, FOREIGN, st.integers(0, 50))
def test_a_row_is_exactly_as_wide_as_it_should_be(left: str, right: str, width: int) -> None:
    assert cell_len(row("", width, [Span("x "), Span(left)], [Span(right)]).text) == width
    both = pair(width, Entry("", (Span(left),), right), named("", Span("·"), right, left))
    assert cell_len(both.text) == width
    assert cell_len(fit(left, width)) == width


@given(st.text(alphabet=st.sampled_from("ab 你好é👍"), max_size=80), st.integers(2, 20))
def test_wrapped_lines_fit_and_keep_every_word_that_does(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    kept = " ".join(lines).split()
    assert all(word in kept for word in text.split() if cell_len(word) <= width)
