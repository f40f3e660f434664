"""Keeping text from outside from turning into control tokens.

Before a template sees a text, the spelling of every control token in it gets a cut: a private character after its first
one. After rendering, the result is split at the cuts and each piece is tokenised by itself: no piece holds a spelling
that the text brought along, and the model still reads every character. Text without such spellings is tokenised just
as it would be anyway.

It knows how control tokens are spelt, and nothing of templates or messages. A template that itself deletes or changes
letters in the middle of a text could undo a cut; those in use do neither to text from outside.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from localinfer.errors import BadRequest

# Unicode's noncharacters, which no honest text holds.
_PRIVATE = [
    *map(chr, range(0xFDD0, 0xFDF0)),
    *(chr(plane + end) for plane in range(0xFFFE, 0x110000, 0x10000) for end in (0, 1)),
]
_HEAD = 4


class Controls:
    """The spellings of one vocabulary's control tokens, made ready for searching."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._texts = frozenset(filter(None, spellings))
        self.longest = max(map(len, self._texts), default=0)
        self.single = frozenset(text for text in self._texts if len(text) == 1)
        # Vocabularies reserve thousands of control tokens that begin alike, so the pattern holds only their heads.
        head = min([_HEAD, *map(len, self._texts)])
        self._lengths: dict[str, set[int]] = {}
        for text in self._texts:
            self._lengths.setdefault(text[:head], set()).add(len(text))
        self._heads = re.compile("|".join(map(re.escape, self._lengths)) or r"(?!)")
        self._beginnings = _Beginnings(self._texts)
        self._endings = _Beginnings(text[::-1] for text in self._texts)
        self._all = "\0".join(self._texts)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of every spelling in ``text``, overlapping ones too."""
        match = self._heads.search(text)
        while match:
            start = match.start()
            for length in self._lengths[match[0]]:
                if text[start : start + length] in self._texts:
                    yield start, start + length
            match = self._heads.search(text, start + 1)

    def edges(self, text: str) -> tuple[bool, bool]:
        """Whether text around ``text`` could complete a spelling across its start, and across its end."""
        if not text:
            return False, False
        if len(text) < self.longest and text in self._all:
            return True, True
        reach = max(self.longest - 1, 1)
        return self._endings.at_end_of(text[:reach][::-1]), self._beginnings.at_end_of(text[-reach:])


class _Beginnings:
    def __init__(self, texts: Iterable[str]) -> None:
        self._sorted = sorted(texts)
        self._initials = frozenset(text[0] for text in self._sorted)

    def at_end_of(self, text: str) -> bool:
        """Whether some end of ``text`` is a proper beginning of one of the texts."""
        for start, character in enumerate(text):
            if character in self._initials:
                end = text[start:]
                after = bisect_left(self._sorted, end + "\0")
                if after < len(self._sorted) and self._sorted[after].startswith(end):
                    return True
        return False


class Cuts:
    """The cuts of one rendering. ``texts`` is all that goes into it: the private characters occur in none of them."""

    def __init__(self, controls: Controls, texts: Iterable[str]) -> None:
        texts = tuple(texts)
        free = tuple(islice((mark for mark in _PRIVATE if not any(mark in text for text in texts)), 2))
        if len(free) < 2:
            raise BadRequest("The text holds every Unicode noncharacter.", "Remove some of them.", param="messages")
        self._controls = controls
        self._cut, self._seam = free

    def protect(self, text: str, endings: tuple[str, ...] = ()) -> str:
        """``text`` with its cuts, and a seam at an edge where what the template puts there could complete a spelling.

        A text that ends with one of ``endings`` gets a seam after it, so that a rendering does not end with it.
        """
        marks: set[tuple[int, str]] = set()
        for start, end in self._controls.find(text):
            # A single character cannot be cut; it is set apart, and two cuts before it say that it is text.
            marks |= {(start, 2 * self._cut), (end, self._cut)} if end == start + 1 else {(start + 1, self._cut)}
        # A template may strip the text, so its edges without white space count as well.
        core = len(text) - len(text.lstrip()), len(text.rstrip())
        for start, end in {(0, len(text)), core}:
            before, after = self._controls.edges(text[start:end])
            marks |= {(start, self._seam)} if before else set()
            marks |= {(end, self._seam)} if after else set()
        if text.endswith(endings, *core):
            marks.add((core[1], self._seam))
        placed = sorted(marks)
        first, *parts = _split(text, [place for place, _ in placed])
        return first + "".join(mark + part for (_, mark), part in zip(placed, parts, strict=True))

    def pieces(self, rendered: str) -> list[tuple[str, bool]]:
        """The pieces to tokenise one by one, and whether control tokens are to be recognised in each."""
        text = rendered.replace(self._seam, "")
        reach = self._controls.longest - 1
        seam = 0
        cuts: list[int] = []
        for part in rendered.split(self._seam)[:-1]:
            seam += len(part)
            near = max(0, seam - reach)
            found = self._controls.find(text[near : seam + reach])
            if any(near + start < seam < near + end for start, end in found):
                cuts.append(seam)
        pieces: list[tuple[str, bool]] = []
        for part in _split(text, cuts):
            for before, piece in pairwise(["start", *part.split(self._cut)]):
                if piece:
                    pieces.append((piece, before != "" or piece not in self._controls.single))
        return pieces


def _split(text: str, places: list[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *places, len(text)])]
