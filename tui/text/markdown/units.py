"""Markdown that arrives line by line, cut into units that nothing which follows can change.

A unit is what stands between blank lines, one heading, one item of a list on the left margin, or a part of a fenced
code block. No unit is longer than `MOST_LINES` and `MOST_CHARACTERS`, so that drawing the growing one again costs a
bounded time: what is longer goes on in a further unit, drawn as one with it. Where the units end depends on the text
alone, never on how it arrived.
"""

import re
from enum import Enum

import msgspec
from msgspec.structs import replace

MOST_LINES = 80
MOST_CHARACTERS = 6_000
CODE_LINES = 30  # from here on a part of a code block ends where a statement does: no string or comment goes on there

_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}#{1,6}([ \t]|$)")
_MARKER = re.compile(r"( {0,3})([-+*]|(\d{1,9})[.)])([ \t]+|$)")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(\1[ \t]*){2,}$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_QUOTE = re.compile(r" {0,3}>")
_DELIMITERS = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")


class Kind(Enum):
    TEXT = "text"
    HEADING = "heading"
    ITEM = "item"
    FENCE = "fence"


class Unit(msgspec.Struct):
    """Lines of source and how they stand: ``spaced`` after a blank line, ``continued`` one with the unit before.

    An item has its number (None: bullet) and ``indent``, the column of its text. A fence has its language; ``fence`` is
    what opened it, empty once it is closed. ``glued``: the first line goes on with the last one of the unit before.
    ``head`` is what stood further up and is needed to read these lines: the header of a table, the opening of a fence.
    """

    kind: Kind
    spaced: bool = False
    continued: bool = False
    glued: bool = False
    lines: list[str] = []
    characters: int = 0
    marker: str = ""
    number: int | None = None
    indent: int = 0
    fence: str = ""
    language: str = ""
    head: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return "\n".join([*self.head, *self.lines])

    @property
    def full(self) -> bool:
        return len(self.lines) >= MOST_LINES or self.characters >= MOST_CHARACTERS

    @property
    def code_fence(self) -> str:
        """The line or fence that opened the code which goes on here, empty outside code."""
        if self.kind is not Kind.ITEM:
            return self.fence
        lines = [*self.head, *self.lines] if self.continued else [_without(line, self.indent) for line in self.lines]
        return _open_fence(lines)

    def copy(self) -> "Unit":
        return replace(self, lines=self.lines.copy())

    def add(self, line: str) -> None:
        self.lines.append(line)
        self.characters += len(line)

    def lengthen(self, piece: str) -> None:
        """The last line goes on."""
        self.lines[-1] += piece
        self.characters += len(piece)

    def further(self) -> "Unit":
        """The unit that goes on where this one is full."""
        return replace(self, continued=True, spaced=False, glued=False, lines=[], characters=0, head=_head(self))


class Cutter:
    """Takes lines, gives units: ``closed`` is filled for the owner to empty, ``open`` is the one that grows."""

    def __init__(self) -> None:
        self.closed: list[Unit] = []
        self.open: Unit | None = None
        self._blank = 0  # blank lines just before
        self._item_before: Unit | None = None

    def copy(self) -> "Cutter":
        """A cutter that goes on from here, to look at a line that is not whole yet."""
        other = Cutter()
        other.open = self.open.copy() if self.open else None
        other._blank, other._item_before = self._blank, self._item_before
        return other

    def feed(self, line: str, *, glued: bool = False) -> None:
        """One more line, without its end. ``glued``: a piece of a long one that goes on with the piece before."""
        if glued:
            self._lengthen(line)
        elif self.open is not None and self.open.fence:
            self._code(self.open, line)
        elif not line.strip(" \t"):
            self._blank += 1
        else:
            self._text(line)
            self._blank = 0

    def close(self) -> None:
        """The open unit ends here."""
        if self.open is not None:
            self.closed.append(self.open)
            self._item_before = self.open if self.open.kind is Kind.ITEM else None
            self.open = None

    def _lengthen(self, piece: str) -> None:
        unit = self.open
        if unit is None:  # after a heading or a fence that is closed
            unit = self._begin(Kind.TEXT)
            unit.continued = True
        if unit.full:
            unit = self._further(unit)
        if unit.lines:
            unit.lengthen(piece)
        else:
            unit.add(piece)
            unit.glued = True

    def _begin(self, kind: Kind) -> Unit:
        self.close()
        self.open = Unit(kind, spaced=self._blank > 0)
        return self.open

    def _further(self, unit: Unit) -> Unit:
        self.close()
        self.open = unit.further()
        return self.open

    def _code(self, unit: Unit, line: str) -> None:
        if _closes(unit.fence, line):
            unit.fence = ""
            self.close()
            return
        statement = len(unit.lines) >= CODE_LINES and not unit.lines[-1].strip() and line[:1] not in {"", " ", "\t"}
        if unit.full or statement:
            unit = self._further(unit)
        unit.add(_without(line, unit.indent))

    def _text(self, line: str) -> None:
        unit = self.open
        if unit is not None and self._closes_inside(unit, line):
            line = " " * unit.indent + line.strip(" \t")
        elif unit is None or not self._inside(unit, line):
            if fence := _FENCE.match(line):
                unit = self._begin(Kind.FENCE)
                unit.fence, unit.language, unit.indent = fence[2], fence[3].strip(), len(fence[1])
                return
            rule = _RULE.match(line) and (unit is None or self._ends(unit, line))
            if rule or _HEADING.match(line):
                self._begin(Kind.HEADING if not rule else Kind.TEXT).add(line)
                self.close()
                return
            marker = _MARKER.match(line)
            if marker and not _RULE.match(line) and self._may_begin_item(marker):
                self._item(marker, line)
                return
            if unit is None or self._ends(unit, line):
                unit = self._begin(Kind.TEXT)
        if unit.full:
            unit = self._further(unit)
        if unit.lines:
            for _ in range(self._blank):
                unit.add("")
        elif self._blank:
            unit.spaced = True
        unit.add(_without(line, unit.indent) if unit.continued else line)
        if self._underlines(unit, line):
            self.close()

    def _inside(self, unit: Unit, line: str) -> bool:
        """Whether ``line`` belongs to an item by its indentation; one that is empty ends at a blank line."""
        return unit.kind is Kind.ITEM and _column(line) >= unit.indent and not (self._blank and _is_empty_item(unit))

    def _ends(self, unit: Unit, line: str) -> bool:
        """Whether ``line``, which opens nothing that is told by its beginning, stands after ``unit`` and not in it."""
        if self._blank:
            return not (_is_indented(unit.lines[0]) and _is_indented(line))
        quote = _QUOTE.match(unit.lines[0]) is not None
        if _QUOTE.match(line):
            return not quote
        return _is_empty_item(unit) or ((quote or unit.kind is Kind.ITEM) and _RULE.match(line) is not None)

    def _underlines(self, unit: Unit, line: str) -> bool:
        """Whether ``line``, the last of ``unit``, made a heading of it."""
        if unit.kind is not Kind.TEXT or self._blank or len(unit.lines) < 2 or not _UNDERLINE.match(line):
            return False
        return not _QUOTE.match(unit.lines[0]) and "|" not in unit.lines[-2]  # a quote or a table goes on

    def _closes_inside(self, unit: Unit, line: str) -> bool:
        """Whether ``line`` is the end of code in an item, set too far left: models do that, and mean no new code."""
        if unit.kind is not Kind.ITEM or not _FENCE.fullmatch(line):
            return False
        opening = unit.code_fence
        return bool(opening) and _closes(_opened_by(opening), line)

    def _may_begin_item(self, marker: re.Match[str]) -> bool:
        """In a paragraph only a bullet with text and the number 1 begin a list; elsewhere any does."""
        unit = self.open
        if unit is None or self._blank or unit.kind is Kind.ITEM or _QUOTE.match(unit.lines[0]):
            return True
        return marker.end() < len(marker.string) and marker[3] in {None, "1"}

    def _item(self, marker: re.Match[str], line: str) -> None:
        unit = self._begin(Kind.ITEM)
        before = self._item_before
        spaces = len(marker[4].expandtabs(4))
        unit.indent = marker.end(2) + (spaces if 0 < spaces < 5 else 1)
        unit.marker = marker[2][-1]
        unit.number = int(marker[3]) if marker[3] else None
        if before is not None and before.marker == unit.marker and before.number is not None:
            unit.number = before.number + 1
        unit.add(line)


def _is_empty_item(unit: Unit) -> bool:
    return unit.kind is Kind.ITEM and len(unit.lines) == 1 and _MARKER.fullmatch(unit.lines[0]) is not None


def _head(unit: Unit) -> tuple[str, ...]:
    """What a further unit needs of this one to be read as what it is."""
    if unit.kind is Kind.FENCE:
        return ()
    if unit.kind is Kind.ITEM:
        return (unit.code_fence,) if unit.code_fence else ()
    lines = [*unit.head, *unit.lines]
    for index in range(len(lines) - 1, 0, -1):
        if "|" not in lines[index]:
            break
        if _DELIMITERS.match(lines[index]):
            return (lines[index - 1], lines[index])
    return ()


def _open_fence(lines: list[str]) -> str:
    opening = ""
    for line in lines:
        if opening:
            opening = "" if _closes(_opened_by(opening), line) else opening
        elif _FENCE.match(line):
            opening = line
    return opening


def _opened_by(line: str) -> str:
    fence = _FENCE.match(line)
    return fence[2] if fence else ""


def _closes(fence: str, line: str) -> bool:
    text = line.strip(" \t")
    return len(text) >= len(fence) and not text.strip(fence[0]) and _column(line) < 4


def _column(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def _is_indented(line: str) -> bool:
    return _column(line) >= 4


def _without(line: str, indent: int) -> str:
    """``line`` moved left by up to ``indent`` columns."""
    column = _column(line)
    return line.expandtabs(4)[min(indent, column) :] if column and indent else line
