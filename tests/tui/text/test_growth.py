"""Markdown that grows: what is drawn depends on the source, never on how it came; and it is harmless whatever it is."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tui.text.soup import cut_soups, soups
from tui.text.markdown import Look, MarkdownText, text, units

LOOK = Look()
HARMFUL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
MARKS = (
    "\n",
    "\n\n",
    " ",
    "\n- ",
    "\n1. ",
    "\n> ",
    "\n# ",
    " **",
    "** ",
    " `",
    "` ",
    "\n    ",
    "\n```\n",
    " | ",
    "](",
    "[",
)


@pytest.fixture(params=["usual limits", "tiny limits"])
def limits(request: pytest.FixtureRequest) -> Iterator[None]:
    """Units so small that every text is longer than one, too."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "tiny limits":
            for module, name, value in (
                (units, "MOST_LINES", 4),
                (units, "MOST_CHARACTERS", 50),
                (units, "CODE_LINES", 2),
                (text, "PIECE", 30),
                (text, "SLACK", 8),
            ):
                patch.setattr(module, name, value)
        yield


for_both = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])


@for_both
@given(pieces=cut_soups(), width=st.integers(1, 60))
@pytest.mark.usefixtures("limits")
def test_pieces_draw_what_the_whole_draws(pieces: list[str], width: int) -> None:
    growing = MarkdownText(whole=False)
    for piece in pieces:
        growing.append(piece)
        assert all(strip.cell_length <= width for strip in growing.lines(width, LOOK))
    growing.finish()
    whole = MarkdownText("".join(pieces))
    assert list(growing.lines(width, LOOK)) == list(whole.lines(width, LOOK))
    assert growing.blocks() == whole.blocks()
    assert growing.source == whole.source


@for_both
@given(source=soups, width=st.integers(1, 60))
@pytest.mark.usefixtures("limits")
def test_no_line_is_too_wide_or_harmful(source: str, width: int) -> None:
    for strip in MarkdownText(source).lines(width, LOOK):
        assert strip.cell_length <= width
        assert not HARMFUL.search(strip.text)


@given(st.lists(st.tuples(st.sampled_from(MARKS), st.text("abcxyz019", min_size=1, max_size=12)), max_size=30))
def test_every_word_is_drawn(parts: list[tuple[str, str]]) -> None:
    source = "".join(mark + word for mark, word in parts)
    found = "".join(strip.text for strip in MarkdownText(source).lines(200, LOOK))
    assert all(word in found for _, word in parts)


def test_lines_that_did_not_change_stay_the_same_strips() -> None:
    growing = MarkdownText("# Title\n\nA paragraph.\n\nAnother", whole=False)
    before = list(growing.lines(40, LOOK))
    growing.append(" one\nand more")
    after = growing.lines(40, LOOK)
    assert len(after) == len(before) + 1
    changed = [index for index, strip in enumerate(before) if after[index] is not strip]
    assert changed == [len(before) - 1]


def test_nothing_new_is_the_same_answer() -> None:
    growing = MarkdownText("text", whole=False)
    assert growing.lines(40, LOOK) is growing.lines(40, LOOK)
    growing.append("")
    assert growing.lines(40, LOOK) is growing.lines(40, Look())


def test_a_new_width_and_a_new_look_draw_again() -> None:
    grown = MarkdownText("some **words** to wrap")
    assert len(grown.lines(40, LOOK)) == 1
    assert len(grown.lines(10, LOOK)) == 2
    plain = Look(text=LOOK.dim)
    assert list(grown.lines(10, plain)) != list(grown.lines(10, LOOK))


def test_after_the_end_nothing_is_added() -> None:
    whole = MarkdownText("the end")
    whole.append(" and more")
    assert whole.source == "the end"


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["A **bo"], ["A bo"]),
        (["A **bold** and **"], ["A bold and"]),
        (["Run `ls -"], ["Run ls -"]),
        (["text\n-"], ["text"]),
        (["text\n\n#"], ["text"]),
        (["- one\n- **"], ["• one"]),
        (["```\na ** `b"], [" a ** `b"]),
        (["- x\n  ```\n  a ** b"], ["• x", "", "   a ** b"]),
    ],
)
def test_a_mark_that_is_not_whole_does_not_flicker(pieces: list[str], shown: list[str]) -> None:
    growing = MarkdownText("".join(pieces), whole=False)
    assert [strip.text.rstrip() for strip in growing.lines(30, LOOK)] == shown
