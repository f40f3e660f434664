"""Nothing that a terminal obeys passes, however a stream is cut."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.text.clean import Cleaner, clean, joins_clusters

joining = Cleaner(joins=True)
adding = Cleaner(joins=False)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b]8;;http://x\x1b\\", "␛]8;;http://x␛\\"),
        ("\x9b2J\x90", "�2J�"),
        ("\x00\x7f", "␀␡"),
        ("user\u202egpj.exe\u2066", "user�gpj.exe�"),
        ("a\u2028b\u2029c\x85d", "a\nb\nc\nd"),
        ("\ud800\udfff\uffff", "���"),
        ("\ufeffa\u200bb\u2060c\u00add", "abcd"),
        ("hi\U000e0041\U000e0042", "hi"),
        ("⌚\ufe0e", "⌚"),
        ("بی\u200cتو \u200f!", "بی\u200cتو \u200f!"),
    ],
)
def test_what_stands_in_its_place(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.lists(st.text(st.characters() | st.characters(max_codepoint=0xFF) | st.characters(categories=["Cf", "Cs"]))))
def test_a_stream_may_be_cut_anywhere(pieces: list[str]) -> None:
    assert "".join(map(joining, pieces)) == joining("".join(pieces))


def test_no_character_that_acts_is_left() -> None:
    every = "".join(map(chr, range(0x110000)))
    left = {character for character in joining(every) if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}}
    assert left == {"\t", "\n"}
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not any(unicodedata.bidirectional(character) in turning for character in joining(every))


def test_joined_characters_come_apart_where_the_terminal_adds_them_up() -> None:
    text = "👩\u200d👩\u200d👧 ❤\ufe0f 👍🏽"
    assert joining(text) == text
    assert adding(text) == "👩👩👧 ❤ 👍"


@pytest.mark.parametrize(
    ("environment", "joins"),
    [
        ({}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "tmux"}, False),
        ({"TERM": "screen"}, False),
        ({"WT_SESSION": "1"}, True),
        ({"WT_SESSION": "1", "TMUX": "/tmp/x"}, False),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
    ],
)
def test_terminals_known_to_join(environment: dict[str, str], joins: bool) -> None:
    assert joins_clusters(environment) is joins
