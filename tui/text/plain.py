"""Text as it was typed: no Markdown, indentation kept, wrapped with its continuation under the indentation."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text.cells import steady
from tui.text.clean import clean
from tui.text.wrap import wrap

TAB = 4


def plain(text: str, width: int, style: Style) -> list[Strip]:
    """``text`` in lines of at most ``width`` cells, all in ``style``."""
    width = max(width, 1)
    strips: list[Strip] = []
    for line in steady(clean(text)).expandtabs(TAB).split("\n"):
        body = line.lstrip(" ")
        indent = min(len(line) - len(body), width // 2)
        for part in wrap([(body.rstrip(" "), style)], width - indent):
            strips.append(Strip([Segment(" " * indent, style), *part] if indent else part))
    return strips
