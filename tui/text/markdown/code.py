"""A code block: a panel as wide as the text, its language above, a mark where a long line goes on."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui.text.cells import shortened, steady
from tui.text.clean import clean
from tui.text.highlight import Piece, highlight
from tui.text.markdown.look import Look
from tui.text.markdown.nodes import Code
from tui.text.wrap import Line, folded, narrow, slices

TAB = 4
GOES_ON = "↳ "
NARROWEST = 12  # under it there are no margins


def draw_code(code: Code, width: int, look: Look) -> list[Line]:
    """The whole block: label, lines."""
    lines = [] if code.continued else label(code.language, width, look)
    for index, pieces in enumerate(highlight(drawable(code.text), code.language)):
        lines += draw_line(pieces, width, look, glued=code.glued and not index)
    return lines


def drawable(text: str) -> str:
    """Code as it is drawn: tabs as spaces, nothing that acts on a terminal."""
    text = steady(clean(text))
    return "\n".join(line.expandtabs(TAB) for line in text.split("\n")) if "\t" in text else text


def label(language: str, width: int, look: Look) -> list[Line]:
    """The line above the code, where its language is known."""
    if not language:
        return []
    return [_filled([Segment(shortened(language, _inner(width)), look.block + look.dim)], width, look)]


def draw_line(pieces: Sequence[Piece], width: int, look: Look, *, glued: bool = False) -> list[Line]:
    """One line of code; ``glued`` if it goes on with a line above."""
    runs = [(narrow(text) if width < 2 else text, _style(look, kind)) for text, kind in pieces]
    text = "".join(text for text, _ in runs)
    inner = _inner(width)
    mark = GOES_ON if width >= NARROWEST else ""
    rest = inner - len(mark)
    parts = folded(text, rest if glued else inner, rest)
    sign = [Segment(mark, look.block + look.marks)] if mark else []
    return [
        _filled([*sign, *line] if index or glued else line, width, look)
        for index, line in enumerate(slices(runs, parts))
    ]


def _style(look: Look, kind: str) -> Style:
    style: Style = look.block if kind == "text" else look.block + getattr(look, kind)
    return style


def _inner(width: int) -> int:
    return width - 2 if width >= NARROWEST else width


def _filled(line: Line, width: int, look: Look) -> Line:
    """``line`` on the background of the block, which reaches over the whole width."""
    left = 1 if width >= NARROWEST else 0
    used = left + sum(cell_len(segment.text) for segment in line)
    margin = [Segment(look.edge, look.block + look.marks)] if left else []
    return [*margin, *line, Segment(" " * (width - used), look.block)] if used < width else [*margin, *line]
