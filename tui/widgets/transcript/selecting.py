"""Selected text of a book: what a selection holds, and the selection of a whole turn. Rows are `Line` keys.

Text comes as it is drawn, without gutter and padding; code as it was written: its margin and the marks where a long
line goes on are ours.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from tui.text.markdown import CodeBlock
from tui.text.markdown.code import GOES_ON, TAB
from tui.widgets.transcript.book import Book
from tui.widgets.transcript.paint import Line
from tui.widgets.transcript.sheet import Part


class _Code(NamedTuple):
    """A line of code: ``margin`` characters of it are not code; ``continued``: it goes on with the line above."""

    margin: int
    continued: bool


_TEXT = _Code(0, False)


def text(book: Book, selection: Selection) -> str:
    """The selected text."""
    end = len(book.turns) - 1
    first = Line.of(selection.start.y).turn if selection.start is not None else 0
    last = Line.of(selection.end.y).turn if selection.end is not None else end
    pieces: list[str] = []
    for turn in range(first, min(last, end) + 1):
        for piece, joined in _selected(book, turn, selection):
            if joined and pieces:
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return "\n".join(pieces)


def whole(book: Book, turn: int) -> Selection | None:
    """All that was said in a turn; None where nothing was."""
    lines = book.drawn(turn).parts[Part.BODY]
    if not lines:
        return None
    first, last = (Line(turn, Part.BODY, line).key for line in (0, len(lines) - 1))
    return Selection(Offset(0, first), Offset(len(lines[-1].text), last))


def _selected(book: Book, turn: int, selection: Selection) -> Iterator[tuple[str, bool]]:
    """The selected lines of a turn, and whether each goes on with the line before."""
    drawn = book.drawn(turn)
    codes: dict[int, _Code] = {}
    for block in book.sheet(turn).code():
        codes.update(_lines_of(block, drawn.parts[Part.BODY]))
    for part, strips in enumerate(drawn.parts):
        for line, strip in enumerate(strips):
            span = selection.get_span(Line(turn, Part(part), line).key)
            if span is None:
                continue
            code = codes.get(line, _TEXT) if part == Part.BODY else _TEXT
            full = part == Part.BODY and codes.get(line + 1, _TEXT).continued
            start, end = max(span[0], code.margin), span[1]
            drawn_text = strip.text[:-1] if full else strip.text  # a full line ends in one blank cell that is ours
            piece = drawn_text[start:] if end == -1 else drawn_text[start:end]
            yield piece if full else piece.rstrip(), code.continued


def _lines_of(block: CodeBlock, strips: Sequence[Strip]) -> Iterator[tuple[int, _Code]]:
    first = block.first_line + bool(block.language)
    if first > block.last_line or block.last_line >= len(strips):
        return
    begin = block.text.split("\n", 1)[0].expandtabs(TAB)
    margin = max(0, strips[first].text.find(begin[:8])) if begin.strip() else 1
    for line in range(first, block.last_line + 1):
        continued = any(segment.text == GOES_ON for segment in list(strips[line])[:4])
        yield line, _Code(margin + len(GOES_ON) * continued, continued)
