"""A place that survives another width: the same words stay on top, however lines are broken anew.

Words are counted by their letters and digits, because nothing else is drawn alike at every width.
"""

from typing import NamedTuple

from tui.text.rough import text_of
from tui.widgets.transcript.book import Book
from tui.widgets.transcript.layout import Place
from tui.widgets.transcript.sheet import Part

MOST_LINES = 20_000  # in longer parts the share of the lines above is kept, because counting letters takes too long


class Anchor(NamedTuple):
    """A line of a part of a turn: ``letters`` come before it in the part, ``blank`` lines without any just before.
    Of a very long part, ``letters`` is the line and ``-blank`` the number of lines."""

    turn: int
    part: Part
    letters: int
    blank: int


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def take(book: Book, place: Place) -> Anchor:
    """The anchor of a place, by the turn's lines as they are now."""
    line = book.line(place)
    letters = blank = 0
    lines = book.drawn(place.turn).parts[line.part]
    if len(lines) > MOST_LINES:
        return Anchor(place.turn, line.part, line.line, -len(lines))
    for index in range(line.line):
        here = _letters(text_of(lines, index))
        letters += here
        blank = 0 if here else blank + 1
    return Anchor(place.turn, line.part, letters, blank)


def find(book: Book, anchor: Anchor) -> Place:
    """Where the anchor's words are in the turn's lines as they are now."""
    drawn = book.drawn(anchor.turn)
    lines = drawn.parts[anchor.part]
    if anchor.blank < 0:
        return Place(anchor.turn, drawn.row(anchor.part, anchor.letters * len(lines) // -anchor.blank))
    letters = blank = line = 0
    while line < len(lines) - 1:
        here = _letters(text_of(lines, line))
        if letters + here > anchor.letters or (letters == anchor.letters and blank == anchor.blank):
            break
        letters += here
        blank = 0 if here else blank + 1
        line += 1
    return Place(anchor.turn, drawn.row(anchor.part, line))
