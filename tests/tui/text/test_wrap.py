"""Cells and line breaks: no line too wide, no character split, nothing lost but spaces."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from tests.tui.text.soup import soups
from tui.text.cells import LEFT_TO_RIGHT_MARK, clusters, shortened, steady
from tui.text.clean import Cleaner
from tui.text.plain import plain
from tui.text.wrap import Line, folded, wrap

STYLE, OTHER = Style(bold=True), Style(italic=True)
clean = Cleaner(joins=True)
texts = st.one_of(soups, st.text()).map(lambda text: steady(clean(text)).replace("\t", " "))


def shown(lines: list[Line]) -> list[str]:
    return ["".join(segment.text for segment in line) for line in lines]


@pytest.mark.parametrize(
    ("text", "cells", "characters"),
    [
        ("日本語", 6, 3),
        ("한국어", 6, 3),
        ("\u1112\u1161\u11ab", 2, 1),
        ("e\u0301", 1, 1),
        ("👨\u200d👩\u200d👧", 2, 1),
        ("🏳\ufe0f\u200d🌈", 2, 1),
        ("⛹🏽", 2, 1),
        ("👍🏽", 2, 1),
        ("🇩🇪🇫🇷", 4, 2),
        ("❤\ufe0f", 2, 1),
        ("1\ufe0f\u20e3", 2, 1),
        ("a\u200db", 2, 2),
        ("क्ष", 2, 1),
        ("กำ", 2, 1),
        ("…–×·", 4, 4),
    ],
)
def test_cells_and_characters(text: str, cells: int, characters: int) -> None:
    text = steady(text)
    assert cell_len(text) == cells
    assert len(clusters(text)) == characters


@given(texts)
def test_clusters_cover_the_text_and_its_cells(text: str) -> None:
    found = clusters(text)
    assert "".join(text[start:end] for start, end, _ in found) == text
    assert sum(cells for _, _, cells in found) == cell_len(text)


def test_the_shortcut_for_plain_wide_text_counts_as_rich_does() -> None:
    every = [chr(point) for point in range(0x20, 0x10000) if not 0xD800 <= point < 0xE000]
    for character in every:
        if unicodedata.category(character) not in {"Cc", "Cf"}:
            assert sum(cells for _, _, cells in clusters(character)) == cell_len(character), ascii(character)


@given(text=texts, cut=st.integers(0, 80), width=st.integers(2, 30))
def test_wrapping_keeps_width_characters_and_text(text: str, cut: int, width: int) -> None:
    lines = wrap([(text[:cut], STYLE), (text[cut:], OTHER)], width)
    assert all(cell_len(line) <= width for line in shown(lines))
    unmarked = "".join(shown(lines)).replace(LEFT_TO_RIGHT_MARK, "")
    assert unmarked.replace(" ", "") == text.replace("\n", "").replace(" ", "").replace(LEFT_TO_RIGHT_MARK, "")
    starts = {len(text), *(start for start, _, _ in clusters(text))}
    starts |= {index + 1 for index, letter in enumerate(text) if letter == "\n"}  # a line begins whatever follows
    if not any(cells > width for _, _, cells in clusters(text)) and LEFT_TO_RIGHT_MARK not in "".join(shown(lines)):
        position = 0
        for line in shown(lines):
            position = text.index(line, position)
            assert position in starts or not line
            position += len(line)


@given(text=texts, width=st.integers(1, 30))
def test_folded_code_loses_nothing(text: str, width: int) -> None:
    line = text.replace("\n", "")
    parts = folded(line, width + 2, width)
    assert "".join(line[start:end] for start, end in parts) == line
    assert all(
        cell_len(line[start:end]) <= max(width + (2 if not index else 0), 2) for index, (start, end) in enumerate(parts)
    )


@given(text=texts, width=st.integers(0, 30))
def test_shortened_fits(text: str, width: int) -> None:
    assert cell_len(shortened(text, width)) <= width
    assert shortened(text, 10_000) == text


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("the quick brown fox", 10, ["the quick", "brown fox"]),
        ("a  b", 1, ["a", "b"]),
        ("  kept", 8, ["  kept"]),
        ("one\n\ntwo", 8, ["one", "", "two"]),
        ("https://example.com/x", 8, ["https://", "example.", "com/x"]),
        ("see 日本語です", 8, ["see 日本", "語です"]),
        ("日本語、です", 6, ["日本", "語、で", "す"]),
        ("これは「引用」", 8, ["これは", "「引用」"]),
        ("🇩🇪🇫🇷🇮🇹", 5, ["🇩🇪🇫🇷", "🇮🇹"]),
        ("日本", 1, ["…", "…"]),
        ("", 5, [""]),
    ],
)
def test_where_lines_break(text: str, width: int, lines: list[str]) -> None:
    assert shown(wrap([(text, STYLE)], width)) == lines


def test_styles_stay_with_their_text() -> None:
    lines = wrap([("one two ", STYLE), ("three four", OTHER)], 10)
    assert [[(segment.text, segment.style) for segment in line] for line in lines] == [
        [("one two", STYLE)],
        [("three four", OTHER)],
    ]


def test_right_to_left_text_is_kept_in_its_line() -> None:
    (line,) = wrap([("بيت ", STYLE), ("12", OTHER)], 20)
    assert "".join(segment.text for segment in line) == "\u200eبيت 12\u200e"


@given(text=texts, width=st.integers(1, 40))
def test_typed_text_is_never_too_wide(text: str, width: int) -> None:
    assert all(strip.cell_length <= width for strip in plain(text, width, STYLE))


def test_typed_text_keeps_its_indentation_and_marks() -> None:
    text = "def f():\n\treturn **x**  # and a comment\n\n\x1b[0m"
    assert [strip.text for strip in plain(text, 20, STYLE)] == [
        "def f():",
        "    return **x**  #",
        "    and a comment",
        "",
        "␛[0m",
    ]
