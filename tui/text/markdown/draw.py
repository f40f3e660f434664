"""Blocks to lines of a width. Nothing is cut: what does not fit is wrapped, and indentation gives way before text."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui.text.markdown.code import draw_code
from tui.text.markdown.look import Look
from tui.text.markdown.nodes import Block, Code, Heading, Inline, Item, Items, Paragraph, Placed, Quote, Rule, Table
from tui.text.markdown.table import draw_table
from tui.text.wrap import Line, wrap

NARROWEST = 8  # cells that text is given before its indentation gives way
BULLETS = "•◦▪"
_RULED = "━─"  # under headings of the first and second level


class Drawn(msgspec.Struct):
    """Lines, and where among them code blocks stand: (block, first line, line after the last)."""

    lines: list[Line] = []
    codes: list[tuple[Code, int, int]] = []

    def add(self, other: "Drawn", prefixes: Iterable[Line] = ()) -> None:
        offset = len(self.lines)
        self.codes += [(code, first + offset, last + offset) for code, first, last in other.codes]
        prefixes = list(prefixes)
        if prefixes:
            first, rest = prefixes[0], prefixes[-1]
            self.lines += [[*(rest if index else first), *line] for index, line in enumerate(other.lines)]
        else:
            self.lines += other.lines


def draw(blocks: Sequence[Placed], width: int, look: Look, base: Style, depth: int = 0) -> Drawn:
    """``blocks`` one below the other, at most ``width`` cells wide, text in the style ``base``; ``depth``: of lists."""
    drawn = Drawn()
    before: Block | None = None
    for placed in blocks:
        block = placed.block
        if before is not None and stands_apart(before, block, spaced=placed.spaced):
            drawn.lines.append([])
        drawn.add(_block(block, width, look, base, depth))
        before = block
    return drawn


def stands_apart(before: Block, block: Block, *, spaced: bool) -> bool:
    """Whether a blank line is drawn between two blocks; ``spaced``: one stands between them in the source."""
    if isinstance(before, Heading):
        return False
    return spaced or isinstance(block, Heading | Code | Table | Rule) or _ends_in_panel(before)


def _ends_in_panel(block: Block) -> bool:
    if isinstance(block, Items):
        blocks = block.items[-1].blocks
        return bool(blocks) and _ends_in_panel(blocks[-1].block)
    return isinstance(block, Code | Table | Rule)


def _block(block: Block, width: int, look: Look, base: Style, depth: int) -> Drawn:
    match block:
        case Paragraph():
            return Drawn(wrap(styled(block.runs, look, base), width))
        case Heading():
            return Drawn(_heading(block, width, look, base))
        case Code():
            lines = draw_code(block, width, look)
            return Drawn(lines, [(block, 0, len(lines))])
        case Rule():
            return Drawn([[Segment("─" * width, look.marks)]])
        case Quote():
            return _quote(block, width, look, base, depth)
        case Items():
            return _items(block, width, look, base, depth)
        case Table():
            return Drawn(draw_table(block, width, look, base))


def styled(runs: Inline, look: Look, base: Style) -> list[tuple[str, Style]]:
    """Marked runs with their styles; never empty."""
    return [(text, look.style(base, marks)) for text, marks in runs] or [("", base)]


def _heading(block: Heading, width: int, look: Look, base: Style) -> list[Line]:
    style = look.headings[block.level - 1]
    lines = wrap(styled(block.runs, look, base + style), width)
    longest = max(sum(cell_len(segment.text) for segment in line) for line in lines)
    if longest and block.level <= len(_RULED):
        lines.append([Segment(_RULED[block.level - 1] * longest, look.marks)])
    return lines


def _quote(block: Quote, width: int, look: Look, base: Style, depth: int) -> Drawn:
    drawn = Drawn()
    if width < NARROWEST:
        drawn.add(draw(block.blocks, width, look, base + look.quote, depth))
    else:
        bar = Segment("▎ ", look.marks)
        drawn.add(draw(block.blocks, width - 2, look, base + look.quote, depth), [[bar]])
    if not drawn.lines:
        drawn.lines.append([Segment("▎", look.marks)])
    return drawn


def _items(block: Items, width: int, look: Look, base: Style, depth: int) -> Drawn:
    drawn = Drawn()
    for index, (item, spaced) in enumerate(zip(block.items, block.spaced, strict=True)):
        before = block.items[index - 1].blocks if index else ()
        if spaced or (before and _ends_in_panel(before[-1].block)):
            drawn.lines.append([])
        drawn.add(_item(item, width, look, base, depth))
    return drawn


def marker(number: int | None, depth: int) -> str:
    """What stands before an item."""
    return f"{BULLETS[depth % len(BULLETS)]} " if number is None else f"{number}. "


def _item(item: Item, width: int, look: Look, base: Style, depth: int) -> Drawn:
    sign = marker(item.number, depth)
    drawn = Drawn()
    if width - len(sign) < NARROWEST:
        drawn.lines += wrap([(sign.rstrip(), look.marks)], width)
        drawn.add(draw(item.blocks, width, look, base, depth + 1))
    else:
        inside = draw(item.blocks, width - len(sign), look, base, depth + 1)
        if not inside.lines:
            inside.lines.append([])
        drawn.add(inside, [[Segment(sign, look.marks)], [Segment(" " * len(sign), base)]])
    return drawn
