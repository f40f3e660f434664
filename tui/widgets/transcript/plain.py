"""Text without Markdown that grows: what is settled is drawn once. It knows nothing of turns."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text.plain import plain


class PlainText:
    """Cleaned text that is appended to; only its last source line is drawn again when more comes."""

    def __init__(self, source: str = "") -> None:
        self._pieces = [source]
        self._settled: list[Strip] = []
        self._settled_upto = 0
        self._tail: list[Strip] | None = None
        self._drawn_with: tuple[int, Style, int] | None = None

    @property
    def source(self) -> str:
        """All of the text."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def append(self, text: str) -> None:
        """More text at the end."""
        self._pieces.append(text)
        self._tail = None

    def lines(self, width: int, style: Style, indent: int = 0) -> list[Strip]:
        """The text wrapped to ``width`` cells, of which the first ``indent`` stay empty."""
        if self._drawn_with != (width, style, indent):
            self._drawn_with, self._settled, self._settled_upto, self._tail = (width, style, indent), [], 0, None
        if self._tail is None:
            source = self.source
            end = source.rfind("\n") + 1
            if end > self._settled_upto:
                self._settled += indented(source[self._settled_upto : end - 1], width, style, indent)
                self._settled_upto = end
            tail = source[self._settled_upto :]
            self._tail = indented(tail, width, style, indent) if tail else []
        return [*self._settled, *self._tail]


def indented(text: str, width: int, style: Style, indent: int) -> list[Strip]:
    """Text wrapped to ``width`` cells behind ``indent`` empty ones, where there is room for them."""
    if width < 8 or not indent:
        return plain(text, max(1, width), style)
    lines = plain(text, width - indent, style)
    return [Strip([Segment(" " * indent), *line], line.cell_length + indent) for line in lines]
