"""The first and the last line of a screen: what is in use, and the keys that do something here."""

from collections.abc import Sequence
from typing import ClassVar

from textual.content import Content
from textual.widget import Widget

from tui.text.clean import clean

SEPARATOR = " · "

KeyHint = tuple[str, str]


class Keyed:
    """A widget with keys of its own. ``KEYS`` are (key, what it does), the most important first; they are named in the
    last line while it has the focus."""

    KEYS: ClassVar[tuple[KeyHint, ...]]


class HeaderLine(Widget):
    """What is in use, most important first: where the line is short, the last parts are left out."""

    DEFAULT_CSS = """
    HeaderLine { height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    """
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self._parts: tuple[str, ...] = ()
        self._trouble = ""

    def show(self, parts: Sequence[str], trouble: str = "") -> None:
        """Show ``parts``; ``trouble`` is something that is not as it should be, in a few words."""
        cleaned = tuple(clean(part).replace("\n", " ") for part in parts if part)
        if (cleaned, trouble) != (self._parts, self._trouble):
            self._parts, self._trouble = cleaned, trouble
            self.refresh()

    def render(self) -> Content:
        room = self.size.width - 2
        trouble = Content.styled(f"  ! {clean(self._trouble)}", "$text-warning") if self._trouble else Content()
        line = Content.assemble(("localinfer", "bold $text-primary"))
        for part in self._parts:
            longer = Content.assemble(line, (SEPARATOR, "dim"), part)
            if longer.cell_length + trouble.cell_length > room:
                break
            line = longer
        return Content.assemble(line, trouble)


class KeyLine(Widget):
    """The keys of a screen and what they do, as many as there is room for."""

    DEFAULT_CSS = """
    KeyLine { height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    """
    ALLOW_SELECT = False

    def __init__(self, keys: Sequence[KeyHint] = ()) -> None:
        super().__init__()
        self._keys = tuple(keys)

    def show(self, keys: Sequence[KeyHint]) -> None:
        """Show (key, what it does) pairs, the most important first."""
        if tuple(keys) != self._keys:
            self._keys = tuple(keys)
            self.refresh()

    def render(self) -> Content:
        line = Content()
        for key, label in self._keys:
            longer = Content.assemble(line, "  " if len(line) else "", (key, "bold $text-accent"), f" {label}")
            if longer.cell_length > self.size.width - 2:
                break
            line = longer
        return line
