"""Rows are exactly as wide as the view and hold nothing that a terminal obeys, whatever a turn says."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from localinfer.history.values import Attachment
from tests.tui.transcript.stage import shown
from tui.text.markdown import Look
from tui.widgets.transcript import OmissionMark, ShownTurn, paint
from tui.widgets.transcript.paint import GUTTER, Line
from tui.widgets.transcript.sheet import Palette, Part, Sheet

STYLE = Style()
PALETTE = Palette(STYLE, STYLE, STYLE, STYLE, STYLE, STYLE, STYLE, STYLE, Look())
PIECES = st.sampled_from(
    ["word ", "中文字", "👩‍👩‍👧", "🇩🇪", "é", "\x1b]52;c;aGk=\x07", "\x1b[2J", "\x9b1m", "\u202e", "[b]x[/b]", "\n",
     "\t", "```py\n", "| a | b |\n|---|---|\n", "- ", "> ", "x" * 90, "שלום ", "\r", "\x00"]
)  # fmt: skip
TEXT = st.lists(PIECES, max_size=20).map("".join)


def _turn(text: str, *, reply: bool) -> ShownTurn:
    return shown(
        1,
        text,
        reply=reply,
        state="failed" if reply else "whole",
        note=text,
        model=text,
        reasoning=text,
        figures=text,
        omission=OmissionMark(turns=3, summary=text),
        attachments=(Attachment(name=text or "a", text=text),),
        branch=2,
        branches=3,
    )


@given(TEXT, st.integers(1, 130), st.booleans(), st.booleans())
def test_no_line_is_wider_than_asked_and_every_row_is_as_wide_as_the_view(
    text: str, width: int, reply: bool, opened: bool
) -> None:
    drawn = Sheet(_turn(text, reply=reply)).draw(width, PALETTE, opened=opened)
    for number in range(drawn.rows):
        strip = drawn.strip(number)
        assert strip.cell_length <= width
        row = paint.row(strip, bar=Segment("▎"), base=STYLE, width=width + GUTTER)
        assert row.cell_length == width + GUTTER
        assert not [character for character in row.text if unicodedata.category(character) in ("Cc", "Cs")]
        assert not set(row.text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
        assert paint.located(row, 1).text == row.text


@given(TEXT, st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(20, 90))
def test_a_reply_in_pieces_looks_like_the_whole(text: str, sizes: list[int], width: int) -> None:
    growing = Sheet(shown(1, "", reply=True, state="growing"), growing=True)
    at = 0
    for size in sizes:
        growing.say(text[at : at + size])
        growing.draw(width, PALETTE, opened=False)
        at += size
    growing.say(text[at:])
    whole = shown(1, text, reply=True)
    growing.end(whole)
    pieces = growing.draw(width, PALETTE, opened=False)
    once = Sheet(whole).draw(width, PALETTE, opened=False)
    assert [pieces.strip(row).text for row in range(pieces.rows)] == [once.strip(row).text for row in range(once.rows)]


@given(st.integers(0, 10_000), st.sampled_from(Part), st.integers(0, 1 << 20))
def test_keys_are_ordered_as_lines_are_and_say_which_they_are(turn: int, part: Part, line: int) -> None:
    key = Line(turn, part, line)
    assert Line.of(key.key) == key
    assert key.key < Line(turn, part, line + 1).key < Line(turn + 1, Part.OMISSION, 0).key


@given(TEXT, st.integers(5, 90))
def test_lines_are_found_where_they_stand(text: str, width: int) -> None:
    drawn = Sheet(_turn(text, reply=True)).draw(width, PALETTE, opened=True)
    for row in range(drawn.rows):
        assert drawn.row(*drawn.locate(row)) == row
    assert drawn.row(Part.BODY, 10**6) <= drawn.rows - 1


def test_what_did_not_change_stays_the_very_same_line() -> None:
    sheet = Sheet(shown(1, "", reply=True, state="growing"), growing=True)
    sheet.think("because\n" * 20, 5)
    sheet.say("First paragraph.\n\nSecond")
    before = sheet.draw(60, PALETTE, opened=True)
    sheet.say(" goes on")
    after = sheet.draw(60, PALETTE, opened=True)
    assert after.changed_from(before) == after.row(Part.BODY, 2)
    assert after.changed_from(after) == after.rows


def test_thinking_is_measured_up_to_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 10.0
    monkeypatch.setattr("tui.widgets.transcript.sheet.time.monotonic", lambda: now_s)
    sheet = Sheet(shown(1, "", reply=True, state="growing"), growing=True)
    sheet.think("hm", 3)
    now_s = 12.5
    sheet.think("hm", 4)
    assert "▸ thinking 2.5 s · 7 tokens" in _text(sheet)
    sheet.say("yes")
    now_s = 99.0
    sheet.think("hm", 5)
    assert "▸ thought for 2.5 s · 12 tokens" in _text(sheet)


def _text(sheet: Sheet) -> list[str]:
    drawn = sheet.draw(60, PALETTE, opened=False)
    return [drawn.strip(row).text for row in range(drawn.rows)]


@pytest.mark.parametrize("summary", ["", "What went before."])
@pytest.mark.parametrize("width", [20, 40, 60, 100])
def test_what_was_left_out_hangs_under_its_rule(width: int, summary: str) -> None:
    drawn = Sheet(shown(3, "q", omission=OmissionMark(turns=12, summary=summary))).draw(width, PALETTE, opened=False)
    first, *rest = [strip.text.rstrip("┄ ") for strip in drawn.parts[Part.OMISSION]]
    assert first.startswith("┄┄ 12 turns")
    said = [line for line in rest if line and line.strip() != summary]
    assert all(line.startswith("   ") and line[3] != " " for line in said)
    assert not said or width < 70  # where there is room it is one line
