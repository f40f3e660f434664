"""A few lines to read, over whatever is shown."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.text.clean import clean


class NoteScreen(ModalScreen[None]):
    """``rows`` are (name, value) pairs under a ``title``; a row without a name is a line of its own."""

    DEFAULT_CSS = """
    NoteScreen { align: center middle; }
    NoteScreen > Vertical {
        width: 80; max-width: 94%; height: auto; max-height: 90%;
        background: $surface; border: round $primary; padding: 1 2;
    }
    NoteScreen #title { text-style: bold; margin-bottom: 1; }
    NoteScreen VerticalScroll { height: auto; max-height: 20; }
    NoteScreen #keys { color: $text-muted; margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "leave", "Leave", show=False)]

    def __init__(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title = title
        self._rows = rows

    def compose(self) -> ComposeResult:
        width = max((len(name) for name, _ in self._rows), default=0) + 2
        lines = [Content.assemble((name.ljust(width), "$text-muted"), clean(value)) for name, value in self._rows]
        with Vertical():
            yield Static(Content(clean(self._title)), id="title")
            with VerticalScroll():
                yield Static(Content("\n").join(lines))
            yield Static("Esc closes", id="keys", markup=False)

    def action_leave(self) -> None:
        self.dismiss(None)
