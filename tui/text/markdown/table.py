"""Tables in boxes that are never wider than the text: columns give way and their cells wrap.

Where there is no room for columns at all, each row is a list of "header: value".
"""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui.text.markdown.look import Look
from tui.text.markdown.nodes import Align, Inline, Table
from tui.text.wrap import Line, wrap

NARROWEST = 6  # cells of a column that had to give way; with less, words would stand one letter below the other
_BOXES = {"top": ("╭", "┬", "╮"), "middle": ("├", "┼", "┤"), "bottom": ("╰", "┴", "╯")}


def draw_table(table: Table, width: int, look: Look, base: Style) -> list[Line]:
    """The lines of ``table``."""
    rows = [_padded(row, len(table.align)) for row in table.rows]
    header = _padded(table.header, len(table.align))
    widths = column_widths([header, *rows], width)
    if widths is None:
        return _listed(header, rows, width, look, base)
    bold = base + Style(bold=True)
    lines: list[Line] = [] if table.continued else [_rule("top", widths, look)]
    if not table.continued:
        lines += _row(header, widths, table.align, look, bold)
        lines.append(_rule("middle", widths, look))
    drawn = [_row(row, widths, table.align, look, base) for row in rows]
    apart = any(len(row) > 1 for row in drawn)
    for index, row in enumerate(drawn):
        if apart and index:
            lines.append(_rule("middle", widths, look))
        lines += row
    lines.append(_rule("bottom", widths, look))
    return lines


def column_widths(rows: Sequence[Sequence[Inline]], width: int) -> list[int] | None:
    """Cells for the text of each column, so that a box of them fits ``width``; None if that makes no table.

    Columns keep what they need as long as they can: the widest give way first.
    """
    natural = [max(1, *(_cells(row[column]) for row in rows)) for column in range(len(rows[0]))]
    room = width - 3 * len(natural) - 1
    if sum(natural) <= room:
        return natural
    widths = [0] * len(natural)
    order = sorted(range(len(natural)), key=lambda column: natural[column])
    for place, column in enumerate(order):
        share = room // (len(order) - place)
        if share < min(natural[column], NARROWEST):
            return None
        widths[column] = min(natural[column], share)
        room -= widths[column]
    return widths


def _cells(runs: Inline) -> int:
    """Cells of the longest line of a table cell."""
    return max(cell_len(line) for line in "".join(text for text, _ in runs).split("\n"))


def _padded(row: Sequence[Inline], columns: int) -> list[Inline]:
    return [*row[:columns], *[()] * (columns - len(row))]


def _rule(place: str, widths: Sequence[int], look: Look) -> Line:
    left, between, right = _BOXES[place]
    return [Segment(left + between.join("─" * (width + 2) for width in widths) + right, look.marks)]


def _row(row: Sequence[Inline], widths: Sequence[int], align: Sequence[Align], look: Look, base: Style) -> list[Line]:
    cells = [
        [_aligned(line, width, side, base) for line in wrap(_styled(runs, look, base), width)]
        for runs, width, side in zip(row, widths, align, strict=True)
    ]
    lines: list[Line] = []
    for index in range(max(map(len, cells))):
        line = [Segment("│ ", look.marks)]
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            if place:
                line.append(Segment(" │ ", look.marks))
            line += cell[index] if index < len(cell) else [Segment(" " * width, base)]
        line.append(Segment(" │", look.marks))
        lines.append(line)
    return lines


def _aligned(line: Line, width: int, align: Align, base: Style) -> Line:
    free = width - sum(cell_len(segment.text) for segment in line)
    left = {"left": 0, "center": free // 2, "right": free}[align]
    before = [Segment(" " * left, base)] if left else []
    after = [Segment(" " * (free - left), base)] if free > left else []
    return [*before, *line, *after]


def _listed(
    header: Sequence[Inline], rows: Sequence[Sequence[Inline]], width: int, look: Look, base: Style
) -> list[Line]:
    bold = base + Style(bold=True)
    lines: list[Line] = []
    for row in rows or [[()] * len(header)]:
        if lines:
            lines.append([Segment("─" * min(width, 8), look.marks)])
        for name, value in zip(header, row, strict=True):
            lines += wrap([*_styled(name, look, bold), (": ", look.marks), *_styled(value, look, base)], width)
    return lines


def _styled(runs: Inline, look: Look, base: Style) -> list[tuple[str, Style]]:
    return [(text, look.style(base, marks)) for text, marks in runs] or [("", base)]
