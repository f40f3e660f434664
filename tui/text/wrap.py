"""Styled text as lines of at most a given number of cells.

Breaks at spaces, anywhere between wide (CJK) characters except where typography forbids it, and, as the last resort,
inside a word that is longer than a line. Nothing is lost but the spaces at a break.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from unicodedata import category

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style

from tui.text.cells import LEFT_TO_RIGHT_MARK, Cluster, clusters, is_right_to_left

Run = tuple[str, Style]
Line = list[Segment]
Span = tuple[int, int]

_WORD = re.compile(r"[^ \n]+")
_FIRST_WIDE = "\u1100"  # no character before it has two cells
# Typography between wide characters, by Unicode category: closing and other punctuation, and marks that lengthen the
# character before (ー, 々), begin no line; opening punctuation ends none.
_NOT_FIRST = frozenset({"Pe", "Pf", "Po", "Lm"})
_NOT_LAST = frozenset({"Ps", "Pi"})


def wrap(runs: Sequence[Run], width: int) -> list[Line]:
    """``runs`` in lines of at most ``width`` (≥ 1) cells; ``\\n`` ends a line. There is at least one line."""
    if width < 2:
        runs = [(narrow(text), style) for text, style in runs]
    text = runs[0][0] if len(runs) == 1 else "".join(text for text, _ in runs)
    return slices(runs, spans(text, width))


def slices(runs: Sequence[Run], parts: Sequence[Span]) -> list[Line]:
    """The parts (ascending, not overlapping) of the joined runs, each as a line."""
    lines: list[Line] = []
    index, offset = 0, 0
    for start, end in parts:
        line: Line = []
        while index < len(runs):
            text, style = runs[index]
            if piece := text[max(start - offset, 0) : max(end - offset, 0)]:
                line.append(Segment(piece, style))
            if offset + len(text) > end:
                break
            offset += len(text)
            index += 1
        lines.append(_contained(line))
    return lines


def _contained(line: Line) -> Line:
    """A line with right-to-left text between two marks, so that a terminal that orders it keeps to its place."""
    if not any(is_right_to_left(segment.text) for segment in line):
        return line
    first, last = line[0], line[-1]
    line[0] = Segment(LEFT_TO_RIGHT_MARK + first.text, first.style)
    line[-1] = Segment(line[-1].text + LEFT_TO_RIGHT_MARK, last.style)
    return line


def spans(text: str, width: int) -> list[Span]:
    """Where the lines of ``text`` start and end."""
    found: list[Span] = []
    start = 0
    for paragraph in text.split("\n"):
        end = start + len(paragraph)
        if _cells(paragraph) <= width:
            found.append((start, end))
        else:
            found += _wrapped(text, start, end, width)
        start = end + 1
    return found


def folded(text: str, first: int, rest: int) -> list[Span]:
    """One line of code cut wherever it is full: at ``first`` cells, then at ``rest``."""
    if text.isascii():
        cuts = [0, *range(first, len(text), rest), len(text)] if len(text) > first else [0, len(text)]
        return list(pairwise(cuts))
    found: list[Span] = []
    start = end = used = 0
    room = first
    for begin, stop, cells in _fitting(text, min(first, rest)):
        if used + cells > room and end > start:
            found.append((start, end))
            start, used, room = begin, 0, rest
        end, used = stop, used + cells
    return [*found, (start, end)]


def _wrapped(text: str, start: int, end: int, width: int) -> Iterator[Span]:
    first = last = start  # of the line being filled
    used = 0
    for word in _WORD.finditer(text, start, end):
        gap = word.start() - last
        for begin, stop, cells in _pieces(word[0], word.start(), width):
            if used + gap + cells > width:
                if last > first:
                    yield first, last
                first, used, gap = begin, 0, 0
            last, used, gap = stop, used + gap + cells, 0
    yield first, last


def _pieces(word: str, offset: int, width: int) -> Iterator[tuple[int, int, int]]:
    """What of a word must stay together, as (start, end, cells), offset added; none is wider than ``width``."""
    cells = _cells(word)
    if cells <= width and not (max(word) >= _FIRST_WIDE and _has_wide(word)):
        yield offset, offset + len(word), cells
    elif word.isascii():
        for start in range(0, len(word), width):
            stop = min(start + width, len(word))
            yield offset + start, offset + stop, stop - start
    else:
        yield from _glued(word, offset, width)


def _has_wide(word: str) -> bool:
    return any(cells > 1 for _, _, cells in clusters(word))


def _glued(word: str, offset: int, width: int) -> Iterator[tuple[int, int, int]]:
    """The pieces of a word with wide characters, or of one longer than a line."""
    anywhere = not _has_wide(word)
    start = stop = used = 0
    before_wide = False
    for begin, end, cells in _fitting(word, width):
        wide = cells > 1
        may_break = anywhere or ((wide or before_wide) and _may_part(word[stop - 1], word[begin]))
        if stop > start and (may_break or used + cells > width):
            yield offset + start, offset + stop, used
            start, used = begin, 0
        stop, used, before_wide = end, used + cells, wide
    yield offset + start, offset + stop, used


def _may_part(before: str, after: str) -> bool:
    return category(after) not in _NOT_FIRST and category(before) not in _NOT_LAST


def _fitting(word: str, width: int) -> Iterator[Cluster]:
    """The clusters of a word; one wider than a line in the parts that Rich makes of it."""
    for start, end, cells in clusters(word):
        if cells <= width:
            yield start, end, cells
        else:
            yield from ((start + a, start + b, part) for a, b, part in split_graphemes(word[start:end])[0])


def _cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def narrow(text: str) -> str:
    """For lines of one cell: what needs two is an ellipsis."""
    if text.isascii():
        return text
    return "".join(text[start:end] if cells < 2 else "…" for start, end, cells in split_graphemes(text)[0])
