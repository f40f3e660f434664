"""One turn as lines: its head, attached files, reasoning, text and how it ended.

It knows how a turn looks at a width, not where it stands or which of its lines are in view.
"""

import time
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from itertools import accumulate, zip_longest
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text.clean import clean
from tui.text.markdown import CodeBlock, Lines, Look, MarkdownText
from tui.text.plain import plain
from tui.text.rough import Chain, Rough
from tui.widgets.transcript import words
from tui.widgets.transcript.plain import PlainText, indented
from tui.widgets.transcript.values import ShownTurn

INDENT = 2  # cells that reasoning and a summary stand in from the text
RULE = "┄┄ "
BLANK = Strip([], 0)
BUDGET_S = 0.03  # of the processor for drawing Markdown, then the screen has its turn
MOST_MARKDOWN = 200_000  # characters; of longer replies the lines alone would take tens of megabytes
MOST_PLAIN = 50_000  # characters that are wrapped at words
BEFORE, AFTER = "\u2039", "\u203a"  # round a branch's number


class Part(IntEnum):
    """The parts of a turn from top to bottom."""

    OMISSION = 0
    HEAD = 1
    FILES = 2
    THOUGHT = 3
    BODY = 4
    ENDING = 5
    GAP = 6


class Palette(NamedTuple):
    """The styles of everything round Markdown, and those of Markdown."""

    text: Style
    muted: Style
    you: Style
    reply: Style
    note: Style
    problem: Style
    selected: Style
    below: Style
    look: Look


class Drawn:
    """A turn's lines, part by part. Lines hold no gutter and may be shorter than the width they were drawn for."""

    def __init__(self, parts: Sequence[Sequence[Strip]]) -> None:
        self.parts = parts
        self._starts = list(accumulate((len(lines) for lines in parts), initial=0))

    @property
    def rows(self) -> int:
        """All lines together."""
        return self._starts[-1]

    def locate(self, row: int) -> tuple[Part, int]:
        """The part that a row belongs to, and which of its lines it is."""
        row = min(max(0, row), self.rows - 1)
        part = bisect_right(self._starts, row) - 1
        return Part(part), row - self._starts[part]

    def row(self, part: Part, line: int) -> int:
        """The row of a part's line, or of the nearest line that there is."""
        return min(self._starts[part] + min(max(0, line), max(0, len(self.parts[part]) - 1)), self.rows - 1)

    def strip(self, row: int) -> Strip:
        """The line in a row."""
        part, line = self.locate(row)
        return self.parts[part][line]

    def changed_from(self, other: "Drawn") -> int:
        """The first row that is not the very line that ``other`` has there."""
        row = 0
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            same = _same(mine, theirs)
            row += same
            if same < max(len(mine), len(theirs)):
                return row
        return row


def _same(mine: Sequence[Strip], theirs: Sequence[Strip]) -> int:
    """How many lines from the first on are the same; of rows that are made anew at every look, none."""
    if isinstance(mine, Lines) and isinstance(theirs, Lines):
        return mine.same_until(theirs)
    if isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
        count = min(len(mine), len(theirs))
        return next((place for place in range(count) if mine[place] is not theirs[place]), count)
    return len(mine) if mine is theirs else 0


class Sheet:
    """The texts of one turn, whole or growing, and its lines as last drawn."""

    def __init__(self, shown: ShownTurn, *, growing: bool = False) -> None:
        self.shown = shown
        self.growing = growing
        self.answering = not growing or bool(shown.turn.content)
        self.status = ""
        self.drawn: Drawn | None = None
        self.edition = 0
        self._drawn_with: tuple[object, ...] = ()
        self._thought = PlainText(clean(shown.turn.reasoning))
        self._thought_tokens = shown.turn.thought_tokens
        self._thought_from_s: float | None = None
        self._thought_s = shown.turn.thought_s
        self.unfinished = False
        """Whether drawing it again brings more of it: a part stands as it was written, for the moment."""
        self._huge: tuple[tuple[object, ...], Rough] | None = None
        self._body: MarkdownText | None = None
        if shown.turn.role == "assistant":
            self._body = MarkdownText(clean(shown.turn.content), whole=not growing)

    # What makes it grow; nothing is drawn here.

    def think(self, text: str, tokens: int) -> None:
        """More reasoning."""
        now_s = time.monotonic()
        if self._thought_from_s is None:
            self._thought_from_s = now_s
        if not self.answering:
            self._thought_s = now_s - self._thought_from_s
        self._thought_tokens += tokens
        self._thought.append(clean(text))
        self._drawn_with = ()

    def say(self, text: str) -> None:
        """More of the answer; the reasoning is over."""
        if self._body is not None:
            self._body.append(clean(text))
        self.answering = self.answering or bool(text.strip())
        self._drawn_with = ()

    def wait(self, status: str) -> None:
        """What the reply is waiting for, until text comes."""
        self.status = words.line(status)
        self._drawn_with = ()

    def end(self, shown: ShownTurn) -> None:
        """The turn as it is from now on; text that is already here is not read again."""
        content = clean(shown.turn.content)
        if self._body is None or self._body.source != content:
            self._body = MarkdownText(content)
        else:
            self._body.finish()
        self.growing, self.answering, self.status = False, True, ""
        self.replace(shown)

    def replace(self, shown: ShownTurn) -> None:
        """Another state of the same turn with the same content."""
        self.shown = shown
        self._thought_s, self._thought_tokens = shown.turn.thought_s, shown.turn.thought_tokens
        if self._thought.source != (reasoning := clean(shown.turn.reasoning)):
            self._thought = PlainText(reasoning)
        self._drawn_with = ()

    def redraw(self) -> None:
        """What is around the texts has changed."""
        self._drawn_with = ()

    # What is asked of it.

    @property
    def thinks(self) -> bool:
        """Whether there is reasoning to fold."""
        return bool(self._thought.source.strip())

    @property
    def source(self) -> str:
        """The text that was said so far, as it was written."""
        return self._body.source if self.growing and self._body is not None else self.shown.turn.content

    def code(self) -> tuple[CodeBlock, ...]:
        """The code blocks of a reply; one that is too long for Markdown has none."""
        return self._body.blocks() if self._body is not None and self._huge is None else ()

    def draw(self, width: int, palette: Palette, *, opened: bool) -> Drawn:
        """The lines for a text ``width`` cells wide; what did not change stays the very same strips."""
        key = (width, palette, opened)
        if self.drawn is None or self._drawn_with != key or self.unfinished:
            parts = (
                self._omission(width, palette),
                self._head(width, palette),
                self._files(width, palette),
                self._reasoning(width, palette, opened=opened),
                self._text(width, palette),
                self._ending(width, palette),
                (BLANK,),
            )
            self.drawn, self._drawn_with = Drawn(_kept(parts, self.drawn)), key
        return self.drawn

    def _omission(self, width: int, palette: Palette) -> Sequence[Strip]:
        if (mark := self.shown.omission) is None:
            return ()
        said = plain(words.omission(mark), max(1, width - len(RULE)), palette.note)
        before = (RULE, *[" " * len(RULE)] * (len(said) - 1))
        rule = [
            Strip([Segment(one, palette.note), *line]).crop(0, width) for one, line in zip(before, said, strict=True)
        ]
        last = rule[-1]
        if (room := width - last.cell_length) > 1:
            rule[-1] = Strip([*last, Segment(" " + "┄" * (room - 1), palette.note)], width)
        summary = indented(clean(mark.summary).strip(), width, palette.muted, INDENT) if mark.summary else []
        return (*rule, *summary, BLANK)

    def _head(self, width: int, palette: Palette) -> Sequence[Strip]:
        turn = self.shown.turn
        name = palette.you if turn.role == "user" else palette.reply
        segments = [
            Segment(words.speaker(turn), name),
            Segment(f" · {words.instant(turn.created_s, datetime.now())}", palette.muted),
        ]
        if self.shown.branches > 1:
            segments += [
                Segment("  "),
                Segment(f"{BEFORE} ", palette.muted + Style.from_meta({"branch": -1})),
                Segment(words.branch(self.shown), palette.text),
                Segment(f" {AFTER}", palette.muted + Style.from_meta({"branch": 1})),
            ]
        return (Strip(segments).crop(0, width),)

    def _files(self, width: int, palette: Palette) -> Sequence[Strip]:
        return [
            Strip([Segment(words.attachment(attached), palette.note)]).crop(0, width)
            for attached in self.shown.turn.attachments
        ]

    def _reasoning(self, width: int, palette: Palette, *, opened: bool) -> Sequence[Strip]:
        if not self.thinks:
            return ()
        label = words.thought(
            self._thought_s, self._thought_tokens, opened=opened, going_on=self.growing and not self.answering
        )
        fold = Strip([Segment(label, palette.muted + Style.from_meta({"fold": True}))]).crop(0, width)
        if not opened:
            return (fold,)
        gap = (BLANK,) if self.answering else ()
        if len(self._thought.source) > MOST_PLAIN:
            return Chain((fold,), Rough(self._thought.source, width, palette.muted, INDENT), gap)
        return (fold, *self._thought.lines(width, palette.muted, INDENT), *gap)

    def _text(self, width: int, palette: Palette) -> Sequence[Strip]:
        if self._body is None:
            content = clean(self.shown.turn.content)
            return (Rough if len(content) > MOST_PLAIN else plain)(content, width, palette.text)
        if self.growing and not self.answering:
            return plain(self.status, width, palette.muted) if self.status and not self.thinks else ()
        self.unfinished = False
        if len(source := self._body.source) > MOST_MARKDOWN:
            return Chain(plain(words.HUGE, width, palette.note), self._rough(source, width, palette.text))
        lines = self._body.lines(width, palette.look, BUDGET_S)
        self.unfinished = not self._body.complete
        return lines

    def _rough(self, source: str, width: int, style: Style) -> Rough:
        key = (len(source), width, style)
        if self._huge is None or self._huge[0] != key:
            self._huge = (key, Rough(source, width, style))
        return self._huge[1]

    def _ending(self, width: int, palette: Palette) -> Sequence[Strip]:
        if self.growing:
            return ()
        turn = self.shown.turn
        lines: list[Strip] = []
        if ending := words.ending(turn):
            lines += plain(ending, width, palette.problem if turn.state == "failed" else palette.note)
        if self.shown.figures:
            lines += plain(words.line(self.shown.figures), width, palette.muted)
        return lines


def _kept(parts: Sequence[Sequence[Strip]], before: Drawn | None) -> list[Sequence[Strip]]:
    """The parts, with the strips of before where they say the same. Texts look after their own."""
    if before is None:
        return list(parts)
    kept: list[Sequence[Strip]] = []
    for part, (lines, old) in enumerate(zip(parts, before.parts, strict=True)):
        if part == Part.BODY or isinstance(lines, Chain):
            kept.append(lines)
            continue
        ours = 1 if part == Part.THOUGHT else len(lines)
        same = [two if one == two else one for one, two in zip_longest(lines[:ours], old[: min(ours, len(lines))])]
        kept.append([*same, *lines[ours:]])
    return kept
