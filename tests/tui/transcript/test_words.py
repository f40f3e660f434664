"""What is said around the texts of turns."""

from datetime import datetime

import pytest

from tests.tui.transcript.stage import shown
from tui.widgets.transcript import OmissionMark, words

NOW = datetime(2026, 3, 9, 15, 0)


@pytest.mark.parametrize(
    ("then", "text"),
    [
        (datetime(2026, 3, 9, 14, 32), "14:32"),
        (datetime(2026, 3, 8, 14, 32), "8 Mar 14:32"),
        (datetime(2025, 12, 31, 9, 5), "31 Dec 2025 09:05"),
    ],
)
def test_instants_are_as_short_as_they_can_be(then: datetime, text: str) -> None:
    assert words.instant(then.timestamp(), NOW) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (12_400, "12.4 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB")]
)
def test_sizes(count: int, text: str) -> None:
    assert words.size(count) == text


def test_thinking() -> None:
    assert words.thought(4.21, 310, opened=False, going_on=False) == "▸ thought for 4.2 s · 310 tokens"
    assert words.thought(2.1, 1, opened=True, going_on=True) == "▾ thinking 2.1 s · 1 token"
    assert words.thought(None, 0, opened=False, going_on=False) == "▸ thought"
    assert words.thought(None, 1200, opened=False, going_on=False) == "▸ thought · 1,200 tokens"


def test_omissions() -> None:
    assert words.omission(OmissionMark(turns=12)) == "12 turns before this are left out of what the model sees"
    assert words.omission(OmissionMark(turns=1)) == "1 turn before this is left out of what the model sees"
    assert words.omission(OmissionMark(turns=2, summary="s")).endswith("; the model sees this summary instead")


def test_foreign_names_are_one_harmless_line() -> None:
    turn = shown(1, "", reply=True, model="evil\x1b[2J\nmodel").turn
    assert words.speaker(turn) == "evil␛[2J model"
