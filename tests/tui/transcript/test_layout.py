"""Heights, places and views of a layout, against plain lists."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.transcript.layout import START, Layout, Place

ROWS = st.integers(1, 30)
PAIRS = st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=40)  # estimated, true


def _layout(pairs: Sequence[tuple[int, int]]) -> Layout:
    return Layout(lambda turn: pairs[turn][1], [estimate for estimate, _ in pairs])


def _measured(pairs: Sequence[tuple[int, int]]) -> Layout:
    layout = _layout(pairs)
    for turn in range(len(pairs)):
        layout.height(turn)
    return layout


def _text(pairs: Sequence[tuple[int, int]]) -> list[Place]:
    return [Place(turn, row) for turn, (_, rows) in enumerate(pairs) for row in range(rows)]


@given(PAIRS, st.lists(st.tuples(st.integers(0, 39), ROWS), max_size=20), st.lists(ROWS, max_size=10))
def test_sums_follow_every_change(
    pairs: list[tuple[int, int]], changes: list[tuple[int, int]], more: list[int]
) -> None:
    layout = _layout(pairs)
    heights = [estimate for estimate, _ in pairs]
    for rows in more:
        layout.append(rows)
        heights.append(rows)
    for turn, rows in changes:
        if turn < len(heights):
            layout.set(turn, rows)
            heights[turn] = rows
    assert layout.total == sum(heights)
    assert [layout.top_of(turn) for turn in range(len(heights))] == [
        sum(heights[:turn]) for turn in range(len(heights))
    ]


@given(PAIRS)
def test_a_row_and_its_place_are_the_same(pairs: list[tuple[int, int]]) -> None:
    layout = _measured(pairs)
    places = [layout.at(row) for row in range(layout.total)]
    assert places == _text(pairs)
    assert [layout.row_of(place) for place in places] == list(range(layout.total))
    assert layout.at(-5) == START
    assert layout.at(layout.total + 5) == places[-1]


@given(PAIRS, st.data())
def test_walking_moves_by_true_rows_however_wrong_the_estimates(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    text = _text(pairs)
    start = data.draw(st.integers(0, len(text) - 1))
    rows = data.draw(st.integers(-200, 200))
    layout = _layout(pairs)
    layout.height(text[start].turn)
    assert layout.walk(text[start], rows) == text[min(max(0, start + rows), len(text) - 1)]


@given(PAIRS, st.integers(1, 60), st.data())
def test_a_view_keeps_its_top_row_unless_the_text_ends_before_it(
    pairs: list[tuple[int, int]], rows: int, data: st.DataObject
) -> None:
    text = _text(pairs)
    start = data.draw(st.integers(0, len(text) - 1))
    layout = _layout(pairs)
    top = layout.fill(text[start], rows)
    assert top == text[min(start, max(0, len(text) - rows))]
    first = layout.row_of(top)
    seen = {layout.at(row).turn for row in range(first, min(first + rows, layout.total))}
    assert all(layout.known(turn) for turn in seen)
    assert [layout.at(first + row) for row in range(min(rows, layout.total - first))] == text[text.index(top) :][:rows]


@given(PAIRS, st.integers(1, 60))
def test_the_end_shows_the_last_row(pairs: list[tuple[int, int]], rows: int) -> None:
    text = _text(pairs)
    layout = _layout(pairs)
    assert layout.end(rows) == text[max(0, len(text) - rows)]


@given(PAIRS, st.integers(1, 20), st.lists(st.integers(-40, 40), max_size=12))
def test_scrolling_up_and_down_again_comes_back(pairs: list[tuple[int, int]], rows: int, steps: list[int]) -> None:
    layout, known = _layout(pairs), _measured(pairs)
    top = layout.end(rows)
    truth = known.end(rows)
    for step in steps:
        top = layout.fill(layout.walk(top, step), rows)
        truth = known.fill(known.walk(truth, step), rows)
        assert top == truth


def test_only_what_is_in_view_is_measured() -> None:
    asked: list[int] = []

    def measure(turn: int) -> int:
        asked.append(turn)
        return 10

    layout = Layout(measure, [3] * 10_000)
    top = layout.end(36)
    layout.fill(layout.walk(top, -36), 36)
    assert len(asked) == len(set(asked)) <= 9


def test_without_turns_there_is_nothing() -> None:
    layout = Layout(lambda turn: 1)
    assert layout.total == 0
    assert layout.at(3) == layout.walk(START, 5) == layout.fill(START, 10) == layout.end(10) == START
