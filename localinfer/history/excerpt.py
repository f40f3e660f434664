"""The part of a text that shows why it was found. It knows folded text and pieces of a query, nothing of a store."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from localinfer.history.words import UNSPACED, Piece, fold

WIDTH = 160  # characters
_BEFORE = 40
_AFTER = 64  # a match may end beyond the excerpt
_SEARCHED = 500_000  # characters of a text

Span = tuple[int, int]

_LETTER = r"[^\W_]"
_SPACED = rf"[^\W_{UNSPACED}]"  # a letter of a script that has spaces between words
_ACCENTS = "[\u0300-\u036f\u3099\u309a\uff9e\uff9f]"
_CLUSTER = re.compile(f"(?s:.){_ACCENTS}*")  # a letter and its accents
_PARTS = re.compile(rf"[\x00-\x7f]+(?!{_ACCENTS})|(?s:.)[^\x00-\x7f]{{0,63}}")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_fold_one = lru_cache(maxsize=20_000)(fold)


def excerpt(text: str, pieces: Sequence[Piece], width: int = WIDTH) -> tuple[str, tuple[Span, ...]]:
    """About ``width`` printable characters around the first match of the longest piece, on one line, and the
    (start, end) of all matches in them. Where nothing matches: the beginning."""
    text = text[:_SEARCHED]
    folded, places = _aligned(text)
    wanted = [_pattern(piece) for piece in sorted(pieces, key=lambda piece: -len(piece.text))]
    first = next((match.start() for match in (pattern.search(folded) for pattern in wanted) if match), 0)
    start = _word_start(text, max(0, places[first] - _BEFORE), places[first])
    end = min(len(text), start + width)
    low, high = bisect_left(places, start), bisect_left(places, end)
    spans: list[Span] = []
    if wanted:
        every = re.compile("|".join(pattern.pattern for pattern in wanted))
        spans = [(places[match.start()], places[match.end()]) for match in every.finditer(folded, low, high + _AFTER)]
    return _line(text, start, end, spans)


def _aligned(text: str) -> tuple[str, Sequence[int]]:
    """Folded text, and for each of its characters and its end the place in ``text``."""
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    folded: list[str] = []
    places: list[int] = []
    place = 0
    for run in _PARTS.findall(text):
        part = fold(run)
        if len(part) == len(run):
            folded.append(part)
            places += range(place, place + len(run))
            place += len(run)
            continue
        for letter in _CLUSTER.findall(run):
            part = _fold_one(letter)
            folded.append(part)
            places += [place] * len(part)
            place += len(letter)
    return "".join(folded), [*places, place]


@lru_cache(maxsize=64)
def _pattern(piece: Piece) -> re.Pattern[str]:
    tokens = re.findall(f"{_LETTER}+", piece.text)
    before = "" if _UNSPACED.match(tokens[0]) else f"(?<!{_SPACED})"
    after = "" if piece.open or _UNSPACED.match(tokens[-1][-1]) else f"(?!{_SPACED})"
    return re.compile(before + r"[\W_]+".join(map(re.escape, tokens)) + after)


def _word_start(text: str, start: int, begin: int) -> int:
    """The first beginning of a word from ``start`` on, at most ``begin``."""
    if start == 0:
        return 0
    space = re.compile(r"\s").search(text, start, begin)
    return space.end() if space else start


def _line(text: str, start: int, end: int, spans: Sequence[Span]) -> tuple[str, tuple[Span, ...]]:
    """``text[start:end]`` as one printable line, with ``spans`` moved along."""
    out: list[str] = ["…"] if start else []
    moved: list[int] = []
    for c in text[start:end]:
        moved.append(len(out))
        if c.isspace():
            if out and out[-1] != " ":
                out.append(" ")
        elif c.isprintable():
            out.append(c)
    moved.append(len(out))
    marks = [(moved[max(0, a - start)], moved[min(end, b) - start]) for a, b in spans if a < end]
    line = "".join(out).rstrip()
    kept = tuple((a, min(b, len(line))) for a, b in marks if a < min(b, len(line)))
    return (line + "…" if end < len(text) else line), kept
