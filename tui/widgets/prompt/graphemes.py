"""What a person sees as one character in a line of text: its borders, its cells, and where the line may be broken.

Columns are indices into the line, borders are columns at which a character begins or the line ends. It knows how this
terminal draws characters made of several; it does not know widgets.
"""

import os
import re
from functools import lru_cache

from tui.text.cells import clusters
from tui.text.clean import INKLESS, in_place, joins_clusters

Span = tuple[int, int, int]  # first column, column after the last, cells

_JOINS = joins_clusters(os.environ)
_JOINERS = (0x200D, 0xFE0F, *range(0x1F3FB, 0x1F400))  # joiner, emoji presentation, skin tones
_APART = dict.fromkeys(_JOINERS, INKLESS)
# Rich gives what follows a joiner no cells; a terminal joins emoji only.
_STRAY = "(?<![\u203c-\u3299\ufe0f\U0001f000-\U0001faff])\u200d|\u200d(?![\u203c-\u3299\U0001f000-\U0001faff])"
_CLOSING = frozenset("，。、！？：；）」』】》〉〕”’…～ー々")  # noqa: RUF001
_OPENING = frozenset("（「『【《〈〔“‘")  # noqa: RUF001


def drawn(line: str) -> str:
    """``line`` as the terminal is to be sent it, with as many characters and nothing that acts: one that does not join
    ``👩‍👧`` draws its parts, and is not left to choose how wide they are."""
    line = in_place(line)
    if line.isascii():
        return line
    return re.sub(_STRAY, INKLESS, line) if _JOINS else line.translate(_APART)


@lru_cache(maxsize=64)
def spans(line: str) -> list[Span]:
    """The characters of ``line`` as a person sees them. A tab has no cells here: they depend on where it stands."""
    if line.isascii():
        return [(column, column + 1, character != "\t") for column, character in enumerate(line)]
    found: list[Span] = []
    for part in re.finditer("\t|[^\t]+", line):
        offset, text = part.start(), part[0]
        parts = [(0, 1, 0)] if text == "\t" else clusters(text)
        found += [(offset + start, offset + end, cells) for start, end, cells in parts]
    return found


def snap(line: str, column: int) -> int:
    """The last border at or before ``column``."""
    if line.isascii() or column >= len(line):
        return column
    return max(start for start, _, _ in spans(line) if start <= column)


def after(line: str, column: int) -> int:
    """The first border after ``column``, or the end."""
    return next((end for _, end, _ in spans(line) if end > column), len(line))


def word_left(line: str, column: int) -> int:
    """The column where the word before ``column`` begins."""
    characters = [span for span in spans(line) if span[1] <= column]
    while characters and _kind(line, characters[-1]) == "space":
        column = characters.pop()[0]
    kind = _kind(line, characters[-1]) if characters else ""
    while characters and _kind(line, characters[-1]) == kind:
        column = characters.pop()[0]
    return column


def word_right(line: str, column: int) -> int:
    """The column where the word after ``column`` ends."""
    characters = [span for span in reversed(spans(line)) if span[0] >= column]
    while characters and _kind(line, characters[-1]) == "space":
        column = characters.pop()[1]
    kind = _kind(line, characters[-1]) if characters else ""
    while characters and _kind(line, characters[-1]) == kind:
        column = characters.pop()[1]
    return column


def column_at(line: str, cell: int, tab: int) -> int:
    """The border of the character that covers ``cell`` of a drawn line; the end where none does."""
    total = 0
    for start, _, cells in spans(line):
        total += tab - total % tab if line[start] == "\t" else cells
        if total > cell:
            return start
    return len(line)


def lay_out(line: str, width: int, tab: int) -> tuple[list[int], list[int]]:
    """The borders at which ``line`` is broken to be ``width`` cells wide, and the cells of each tab in it.

    Words stay whole where they can, CJK breaks anywhere but before closing marks. One space may hang over the end.
    A width of 0 breaks nothing.
    """
    if line.isascii() and "\t" not in line and (not width or len(line) <= width):
        return [], []
    breaks: list[int] = []
    tabs: list[int] = []
    begin = chance = total = since = 0  # of the row; where it may be broken; cells of the row, and from the chance on
    before: Span | None = None
    for span in spans(line):
        start, _, cells = span
        character = line[start]
        if before and _breakable(line, before, span):
            chance, since = start, 0
        if character == "\t":
            cells = tab - total % tab
        room = width + character.isspace()
        while width and total + cells > room and start > begin:
            begin, total = (chance, since) if chance > begin else (start, 0)
            breaks.append(begin)
            if character == "\t":
                cells = tab - total % tab
        if character == "\t":
            tabs.append(cells)
        total += cells
        since += cells
        before = span
    return breaks, tabs


def _breakable(line: str, left: Span, right: Span) -> bool:
    one, other = line[left[0]], line[right[0]]
    if other.isspace():
        return other == "\t"
    if one.isspace():
        return True
    return (left[2] == 2 or right[2] == 2) and one not in _OPENING and other not in _CLOSING


def _kind(line: str, span: Span) -> str:
    character = line[span[0]]
    if character.isspace():
        return "space"
    return "word" if character.isalnum() or character == "_" else "mark"
