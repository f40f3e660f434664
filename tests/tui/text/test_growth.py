"""Markdown that grows: what is drawn depends on the source, never on how it came; and it is harmless whatever it is."""

import re

from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from tests.tui.text.soup import cut_soups, soups
from tui.text.markdown import Look, MarkdownText

LOOK = Look()
HARMFUL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def drawn(source: str, width: int) -> list[Strip]:
    return list(MarkdownText(source).lines(width, LOOK))


@given(pieces=cut_soups(), width=st.integers(1, 60))
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


@given(source=soups, width=st.integers(1, 60))
def test_no_line_is_too_wide_or_harmful(source: str, width: int) -> None:
    for strip in drawn(source, width):
        assert strip.cell_length <= width
        assert not HARMFUL.search(strip.text)


@given(words=st.lists(st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True), min_size=1, max_size=30), source=soups, data=st.data())
def test_every_word_is_drawn(words: list[str], source: str, data: st.DataObject) -> None:
    marks = st.sampled_from(["\n", "\n\n", " ", "\n- ", "\n1. ", "\n> ", "\n# ", " **", "** ", " `", "` ", "\n    ", "\n```\n", " | "])
    text = "".join(data.draw(marks) + word for word in words)
    found = "".join(strip.text for strip in drawn(text, 200))
    for word in words:
        assert word in found
