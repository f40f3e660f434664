"""Markdown that grows, as lines. It knows which of them can still change and draws nothing else again."""

import math
import re
import time
from collections.abc import Sequence
from typing import overload

from msgspec.structs import replace
from rich.segment import Segment
from textual.strip import Strip

from localinfer.types import Value
from tui.text import highlight as highlighting
from tui.text.cells import clusters
from tui.text.clean import clean
from tui.text.markdown import code
from tui.text.markdown.draw import Drawn, draw, marker, stands_apart
from tui.text.markdown.heal import healed
from tui.text.markdown.look import Look
from tui.text.markdown.nodes import Code, Items, Paragraph, Placed, Table
from tui.text.markdown.parse import language, parse, parser
from tui.text.markdown.units import Cutter, Kind, Unit
from tui.text.rough import Chain, Rough
from tui.text.wrap import Line

PIECE = 2_000  # characters: a longer line is taken in pieces, so that one that never ends is not drawn from its start
SLACK = 64
SHORT = 8_000  # characters: so much is drawn at once whatever the budget, so that what is usual never changes its look
_MARKUP_ONLY = re.compile(r"[-=+*_#>`~|: \t]+")


def warm() -> None:
    """Imports the parser and the usual lexers, so that their first use costs no frame; for a thread, once the screen
    stands."""
    parser()
    highlighting.warm()


class CodeBlock(Value, frozen=True):
    """A code block: its exact text, and its lines among all lines as they were last drawn, ``last_line`` included."""

    language: str
    text: str
    first_line: int
    last_line: int


class Lines(Sequence[Strip]):
    """Drawn lines; a Strip is made when it is looked at, because most never are."""

    def __init__(self, lines: list[Line], strips: list[Strip | None]) -> None:
        self._lines = lines
        self._strips = strips

    def changed(self, lines: list[Line], stable: int) -> "Lines":
        """``lines``, of which the first ``stable`` are the ones here; others that are equal keep their Strip too."""
        strips = self._strips[:stable]
        for index in range(stable, len(lines)):
            same = index < len(self._lines) and self._lines[index] == lines[index]
            strips.append(self._strips[index] if same else None)
        return Lines(lines, strips)

    def same_until(self, other: "Lines") -> int:
        """How many lines from the first on say the same as those of ``other``."""
        count = min(len(self._lines), len(other._lines))
        if self._lines[:count] == other._lines[:count]:
            return count
        return next(place for place in range(count) if self._lines[place] != other._lines[place])

    def text(self, index: int) -> str:
        """What a line says; makes no Strip."""
        return "".join(segment.text for segment in self._lines[index])

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Strip: ...
    @overload
    def __getitem__(self, index: slice) -> list[Strip]: ...
    def __getitem__(self, index: int | slice) -> Strip | list[Strip]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        strip = self._strips[index]
        if strip is None:
            strip = self._strips[index] = Strip(self._lines[index])
        return strip


class MarkdownText:
    """Markdown source that may grow at its end.

    ``append`` costs what is appended, ``lines`` what has changed since it was last called. What is drawn depends on the
    source alone, never on the pieces it came in, once it is whole.
    """

    def __init__(self, source: str = "", *, whole: bool = True) -> None:
        """``whole`` False: more will come."""
        self._pieces: list[str] = []
        self._pending: list[str] = []  # not cut into units yet
        self._mid_line = False  # the beginning of the line that is pending has been taken
        self._cutter = Cutter()
        self._units: list[Unit] = []  # closed ones
        self._blocks: list[tuple[Placed, ...]] = []  # of as many of them as were drawn yet
        self._length = 0
        self._finished = False
        self._width = 0
        self._look = Look()
        self._drawn_units = 0
        self._settled = Drawn()  # the units drawn, which will not change
        self._open = Drawn()
        self._code_lines: list[tuple[str, list[Line]]] = []  # of the fence that is open
        self._lines = Lines([], [])
        self._changed = True
        self.complete = True
        """Whether all of it was drawn as Markdown by the last call of `lines`."""
        self.append(source)
        if whole:
            self.finish()

    @property
    def source(self) -> str:
        """All that was appended."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def append(self, text: str) -> None:
        """More source. Draws nothing."""
        if text and not self._finished:
            text = clean(text)
            self._pieces.append(text)
            self._pending.append(text)
            self._length += len(text)
            self._changed = True

    def finish(self) -> None:
        """No more will come: what was open is settled."""
        self._finished = True
        self._changed = True

    def lines(self, width: int, look: Look, budget_s: float = math.inf) -> Sequence[Strip]:
        """The lines at ``width`` cells, none of them wider. A line that did not change is the same Strip as before.

        After about ``budget_s`` seconds of the processor the rest of a long text is given as it was written, and
        ``complete`` is False: the next call goes on from there.
        """
        width = max(width, 1)
        if (width, look) != (self._width, self._look):
            self._width, self._look = width, look
            self._drawn_units = 0
            self._settled, self._open, self._code_lines, self._lines = Drawn(), Drawn(), [], Lines([], [])
            self._changed = True
        if self._changed:
            until_s = time.thread_time() + (budget_s if self._length > SHORT else math.inf)
            stable = len(self._settled.lines)
            self.complete = self._take(until_s) and self._settle(until_s)
            self._open = self._growing() if self.complete else Drawn()
            self._lines = self._lines.changed([*self._settled.lines, *self._open.lines], stable)
            self._changed = not self.complete
            if not self.complete:
                return Chain(self._lines, Rough(self._rest(), width, look.text))
        return self._lines

    def _rest(self) -> str:
        """What is not drawn yet, about as it was written."""
        lines: list[str] = []
        left = self._units[self._drawn_units :]
        for unit in [*left, *self._cutter.closed, *([self._cutter.open] if self._cutter.open else [])]:
            lines += ["", *unit.lines] if unit.spaced else unit.lines
        return "\n".join([*lines, *self._pending])

    def blocks(self) -> tuple[CodeBlock, ...]:
        """The code blocks, as of the last call of `lines`."""
        found: list[CodeBlock] = []
        offset = len(self._settled.lines)
        placed = [*self._settled.codes, *((block, a + offset, b + offset) for block, a, b in self._open.codes)]
        for block, first, end in placed:
            if block.continued and found:
                before = found[-1]
                text = before.text + ("" if block.glued else "\n") + block.text
                found[-1] = replace(before, text=text, last_line=end - 1)
            else:
                found.append(CodeBlock(language=block.language, text=block.text, first_line=first, last_line=end - 1))
        return tuple(found)

    def _take(self, until_s: float) -> bool:
        """Whole lines, and pieces of lines that are too long, go to the cutter. False: time was up before the end."""
        text = "".join(self._pending)
        start = 0
        while True:
            newline = text.find("\n", start)
            end = len(text) if newline < 0 else newline
            while end - start > PIECE + SLACK:
                cut = start + _cut(text[start : start + PIECE])
                self._feed(text[start:cut])
                self._mid_line, start = True, cut
            if newline < 0:
                break
            self._feed(text[start:newline])
            self._mid_line, start = False, newline + 1
            if time.thread_time() > until_s:
                break
        taken = newline < 0
        if self._finished and taken:
            if start < len(text):
                self._feed(text[start:])
            self._cutter.close()
            start = len(text)
        self._pending = [text[start:]]
        self._units += self._cutter.closed
        self._cutter.closed.clear()
        return taken

    def _feed(self, line: str) -> None:
        if line or not self._mid_line:
            self._cutter.feed(line, glued=self._mid_line)

    def _settle(self, until_s: float) -> bool:
        """Draw the units that are closed. False: time was up before the last."""
        for index in range(self._drawn_units, len(self._units)):
            unit = self._units[index]
            if index == len(self._blocks):
                self._blocks.append(parsed(unit))
            self._settled.add(self._drawn(self._blocks[index - 1] if index else (), unit, self._blocks[index]))
            self._drawn_units = index + 1
            if time.thread_time() > until_s:
                break
        return self._drawn_units == len(self._units)

    def _growing(self) -> Drawn:
        """What may still change: the open unit, and a line that is not whole."""
        drawn = Drawn()
        before = self._blocks[-1] if self._blocks else ()
        for unit in self._open_units():
            if unit.fence:
                drawn.add(self._open_fence(before, unit))
            else:
                blocks = parsed(unit)
                drawn.add(self._drawn(before, unit, blocks))
                before = blocks
        return drawn

    def _open_units(self) -> list[Unit]:
        cutter, line = self._cutter, self._pending[0]
        if line and (self._mid_line or not _MARKUP_ONLY.fullmatch(line)):
            cutter = cutter.copy()
            in_code = cutter.open is not None and cutter.open.code_fence
            cutter.feed(line if in_code else healed(line), glued=self._mid_line)
        return [*cutter.closed, cutter.open] if cutter.open else cutter.closed

    def _drawn(self, before: Sequence[Placed], unit: Unit, blocks: Sequence[Placed]) -> Drawn:
        drawn = self._gap(before, unit, blocks)
        if unit.kind is Kind.ITEM and unit.continued:
            margin = len(marker(unit.number, 0))
            inside = draw(blocks, max(self._width - margin, 1), self._look, self._look.text, depth=1)
            drawn.add(inside, [[Segment(" " * margin, self._look.text)]] if self._width > margin else [])
        else:
            drawn.add(draw(blocks, self._width, self._look, self._look.text))
        return drawn

    def _gap(self, before: Sequence[Placed], unit: Unit, blocks: Sequence[Placed]) -> Drawn:
        apart = (
            not unit.continued
            and len(before) > 0
            and len(blocks) > 0
            and stands_apart(before[-1].block, blocks[0].block, spaced=unit.spaced)
        )
        return Drawn([[]] if apart else [])

    def _open_fence(self, before: Sequence[Placed], unit: Unit) -> Drawn:
        """A fence that grows: each line is coloured by itself and kept; the whole of it when it is closed."""
        block = _code(unit)
        drawn = self._gap(before, unit, (Placed(block=block, spaced=unit.spaced),))
        first = len(drawn.lines)
        if not unit.continued:
            drawn.lines += code.label(block.language, self._width, self._look)
        kept = self._code_lines
        del kept[len(unit.lines) :]
        for index, line in enumerate(unit.lines or [""]):
            if index >= len(kept) or kept[index][0] != line:
                pieces = highlighting.highlight(code.drawable(line), block.language)[0]
                glued = unit.glued and not index
                kept[index:] = [(line, code.draw_line(pieces, self._width, self._look, glued=glued))]
            drawn.lines += kept[index][1]
        drawn.codes.append((block, first, len(drawn.lines)))
        return drawn


def _cut(piece: str) -> int:
    """Where a line that goes on may be cut: after a space, else between two characters as a reader sees them."""
    if (space := piece.rfind(" ", len(piece) // 2)) >= 0:
        return space + 1
    tail = clusters(piece[-SLACK:])
    return len(piece) - SLACK + tail[-1][0] if len(tail) > 1 else len(piece)


def _code(unit: Unit) -> Code:
    return Code(
        language=language(unit.language), text="\n".join(unit.lines), continued=unit.continued, glued=unit.glued
    )


def parsed(unit: Unit) -> tuple[Placed, ...]:
    if unit.kind is Kind.FENCE:
        return (Placed(block=_code(unit), spaced=unit.spaced),)
    blocks = parse(unit.source) or (Placed(block=Paragraph(runs=((unit.source, 0),)), spaced=False),)
    match blocks[0].block:
        case Items() as items if unit.number is not None and not unit.continued:
            numbered = tuple(replace(item, number=unit.number + index) for index, item in enumerate(items.items))
            first = replace(blocks[0], block=replace(items, items=numbered))
        case Table() as table if unit.head:
            first = replace(blocks[0], block=replace(table, continued=True))
        case _:
            return blocks
    return (first, *blocks[1:])
