"""How text becomes words that can be found, and a person's query an expression of SQLite's FTS5.

Upper and lower case, accents and compatibility forms do not matter. Scripts without spaces between words (Chinese,
Japanese, Korean, Thai ...) are indexed as overlapping pairs of characters, so that any run of them is found, a single
character as the beginning of a pair. It runs no query itself.
"""

import re
import unicodedata

from localinfer.history.lines import storable
from localinfer.types import Value

_LONGEST_QUERY = 1_000  # characters
_MOST_PIECES = 32
_ACCENTS = re.compile("[\u0300-\u036f]+")
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa\u30fc-\u318f\u31a0-\u31bf"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{UNSPACED}]+")
_LAST_RUN = re.compile(f"[{UNSPACED}]+$")
_PIECE = re.compile(r'"([^"]*)"?|([^\s"]+)')
_QUOTES = str.maketrans(dict.fromkeys("“”„«»", '"'))


class Piece(Value, frozen=True):
    """A word or a phrase of a query, folded. ``open``: more letters may follow it in the text."""

    text: str
    open: bool


def fold(text: str) -> str:
    """``text`` as it is compared: without case, accents and compatibility forms."""
    text = text.replace("\0", " ")
    if text.isascii():
        return text.lower()
    # By way of the capitals, so that letters which share one, such as the dotless i, are the same.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).upper().casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", plain))


def indexed(text: str) -> str:
    """``text`` as the index has it."""
    return _in_pairs(fold(text))


def parse(query: str) -> tuple[Piece, ...]:
    """What a query asks for, all of which has to be found in one message. Text in quotes is a phrase. The last word is
    taken for the beginning of one, unless a space or a sign follows it. Nothing can be wrong with a query."""
    folded = fold(storable(query[:_LONGEST_QUERY])).translate(_QUOTES)
    pieces = []
    for match in _PIECE.finditer(folded):
        text = (match[1] or match[2] or "").strip()
        if any(map(str.isalnum, text)):
            last = match[2] is not None and match.end() == len(folded) and unicodedata.category(text[-1])[0] in "LNM"
            pieces.append(Piece(text=text, open=last))
    return tuple(dict.fromkeys(pieces))[:_MOST_PIECES]


def expression(pieces: tuple[Piece, ...]) -> str:
    """``pieces`` for MATCH."""
    return " AND ".join(map(_term, pieces))


def _term(piece: Piece) -> str:
    run = _LAST_RUN.search(piece.text)
    words = _in_pairs(piece.text[: run.start()] if run else piece.text)
    if run is None:
        return f'"{words}"' + "*" * piece.open
    if len(run[0]) == 1:
        return f'"{words} {run[0]}"*'
    return f'"{words} {_pairs(run[0])[:-2]}"'


def _in_pairs(folded: str) -> str:
    return folded if folded.isascii() else _RUN.sub(lambda match: f" {_pairs(match[0])} ", folded)


def _pairs(run: str) -> str:
    """Each character with the one after it, and the last alone."""
    return " ".join(run[index : index + 2] for index in range(len(run)))
