"""Characters as a person sees them: where the cursor stands, what one Backspace takes, where a row ends."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.document._document import Document
from textual.pilot import Pilot

from tests.tui.prompt.host import Host, running
from tui.widgets.prompt import graphemes
from tui.widgets.prompt.graphemes import drawn, lay_out, snap, spans, word_left, word_right
from tui.widgets.prompt.wrapping import Wrapped

CHARACTERS = ["你", "👩‍👩‍👧", "🇩🇪", "👍🏽", "e\u0301", "❤️", "각", "1️⃣", "🏳️‍🌈", "\u1112\u1161\u11ab", "ñ", "x"]
soup = st.lists(st.sampled_from([*CHARACTERS, "🇫🇷", " ", "\t", "word", "，", "「", "\u200d", "\u0301"])).map("".join)


@pytest.fixture(autouse=True)
def _terminal_that_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphemes, "_JOINS", True)


async def test_a_key_passes_or_takes_away_one_character(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        text = "".join(CHARACTERS)
        host.prompt.insert(text + "🇫🇷🇯🇵")
        await pilot.press("backspace")
        assert host.prompt.text == text + "🇫🇷"  # flags side by side are two
        await pilot.press("backspace")
        for character in reversed(CHARACTERS):
            await pilot.press("left")
            assert text[host.editor.cursor_location[1] :].startswith(character)
            assert character in host.screen_text  # the cursor does not take it apart
        await pilot.press("right", "backspace", "delete")
        assert host.prompt.text == "".join(CHARACTERS[2:])


async def test_the_mouse_and_vertical_moves_end_on_borders(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("👩‍👩‍👧👩‍👩‍👧x\nabcdefgh")
        await pilot.pause()
        await click(host, pilot, 4)
        assert host.editor.cursor_location == (0, 10)
        await click(host, pilot, 3)  # the second cell of the second family
        assert host.editor.cursor_location == (0, 5)
        await pilot.press("down", "right")
        assert host.editor.cursor_location == (1, 3)
        await pilot.press("up")
        assert host.editor.cursor_location == (0, 5)


async def click(host: Host, pilot: Pilot[None], cell: int) -> None:
    await pilot.click(host.editor, offset=(host.editor.gutter.left + cell, 0))


async def test_a_terminal_that_does_not_join_is_sent_the_parts_and_the_text_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphemes, "_JOINS", False)
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("👩‍👧❤️x")
        await pilot.pause()
        assert host.editor.cursor_screen_offset.x == host.editor.gutter.left + 6
        assert "👩\u200c👧❤\u200cx" in host.screen_text
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert host.sent[0].text == "👩‍👧❤️x"


@given(soup, st.integers(min_value=2, max_value=30))
def test_rows_are_no_wider_than_they_may_be_and_break_at_borders(line: str, width: int) -> None:
    line = drawn(line)
    breaks, tabs = lay_out(line, width, 4)
    borders = {start for start, _, _ in spans(line)}
    assert breaks == sorted(set(breaks))
    assert set(breaks) <= borders - {0}
    assert len(tabs) == line.count("\t")
    for start, end in zip([0, *breaks], [*breaks, len(line)], strict=True):
        row = "".join(" " * tabs.pop(0) if character == "\t" else character for character in line[start:end])
        assert cell_len(row.rstrip()) <= width or end - start == 1
        assert cell_len(row) <= width + 4


@given(soup)
def test_spans_cover_the_line_and_every_column_snaps_to_one_of_them(line: str) -> None:
    found = spans(line)
    assert "".join(line[start:end] for start, end, _ in found) == line
    for column in range(len(line)):
        assert snap(line, column) in {start for start, _, _ in found}
    assert snap(line, len(line)) == len(line)


@given(soup, st.integers(min_value=3, max_value=12))
def test_a_cell_and_its_column_belong_together(line: str, width: int) -> None:
    document = Wrapped(Document(line or "x"), width)
    for column in [start for start, _, cells in spans(drawn(line)) if cells]:
        offset = document.location_to_offset((0, column))
        assert document.offset_to_location(offset) == (0, column)


@given(soup, soup, st.integers(min_value=2, max_value=12))
def test_an_edit_wraps_as_the_whole_text_would_be(before: str, after: str, width: int) -> None:
    text = before.replace(" ", "\n")
    document = Document(text)
    wrapped = Wrapped(document, width)
    start, end = (0, 0), document.end
    result = document.replace_range(start, (end[0] // 2, 0), after.replace(" ", "\n"))
    wrapped.wrap_range(start, (end[0] // 2, 0), result.end_location)
    fresh = Wrapped(document, width)
    assert wrapped.lines == fresh.lines
    assert wrapped._offset_to_line_info == fresh._offset_to_line_info
    assert wrapped._line_index_to_offsets == fresh._line_index_to_offsets


def test_words_stay_whole_and_chinese_breaks_anywhere_but_before_closing_marks() -> None:
    assert lay_out("one two three", 8, 4)[0] == [8]
    assert lay_out("one two,three", 8, 4)[0] == [4, 12]
    assert lay_out("see 你好吗", 9, 4)[0] == [6]
    assert lay_out("see 你好吗？", 11, 4)[0] == [6]
    assert lay_out("abcdefghij", 4, 4)[0] == [4, 8]


def test_words_for_ctrl_left_and_ctrl_w() -> None:
    line = "cafe\u0301 au, lait"
    assert word_left(line, len(line)) == 10
    assert word_left(line, 10) == 8
    assert word_left(line, 5) == 0
    assert word_right(line, 0) == 5
    assert word_right(line, 5) == 8
    assert word_right(line, len(line)) == len(line)
