"""Several lines that a person types: what keys and pastes do in them, where the cursor may stand, how they are drawn.

The text is what was written, its joiners and what shows nothing included; nothing in it acts on the terminal.
"""

from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingsMap, BindingType
from textual.document._document import Location
from textual.document._document_navigator import DocumentNavigator
from textual.strip import Strip
from textual.widgets import TextArea

from tui.text.clean import typed
from tui.widgets.prompt.graphemes import after, drawn, snap, word_left, word_right
from tui.widgets.prompt.terminal import prepare
from tui.widgets.prompt.wrapping import Wrapped

_NEWLINES = "ctrl+j,shift+enter,alt+enter,ctrl+enter"
_XTERM_NEWLINES = ("shift+\r", "alt+\r", "ctrl+\r")  # what Textual makes of xterm's way to write them


class Area(TextArea):
    """A text area for prose. Every field of several lines is one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(_NEWLINES, "newline", "New line", show=False)]

    def __init__(self, text: str = "", **named: Any) -> None:
        prepare()
        super().__init__(text, highlight_cursor_line=False, **named)

    # What keys and pastes do

    async def on_key(self, event: events.Key) -> None:
        if await self._act(event.key):
            event.stop()
            event.prevent_default()

    async def _act(self, key: str) -> bool:
        """Do at once what a key is bound to. A binding is found after the key has gone to the screen and back, and
        what is typed right behind it would come before it."""
        action = _ACTIONS.get(key)
        return action is not None and await self.app.run_action(action, self)

    def action_newline(self) -> None:
        """Begin a new line at the cursor."""
        self._restart_blink()
        self._replace_via_keyboard("\n", *self.selection)

    def _on_paste(self, event: events.Paste) -> None:  # type: ignore[override]
        event.stop()
        event.prevent_default()
        self.take(event.text)

    def action_paste(self) -> None:
        """Insert the clipboard."""
        self.take(self.app.clipboard)

    def take(self, text: str) -> None:
        """Insert what was pasted."""
        self.put(typed(text))

    def put(self, text: str) -> None:
        """Insert ``text`` at the cursor, in place of what is selected."""
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    # Where the cursor may stand

    def clamp_visitable(self, location: Location) -> Location:
        row, column = super().clamp_visitable(location)
        return row, snap(self.document[row], column)

    def get_cursor_right_location(self) -> Location:
        row, column = self.cursor_location
        line = self.document[row]
        if column >= len(line):
            return super().get_cursor_right_location()
        return row, after(line, column)

    def get_cursor_left_location(self) -> Location:
        row, column = super().get_cursor_left_location()
        return row, snap(self.document[row], column)

    def get_cursor_word_left_location(self) -> Location:
        row, column = self.cursor_location
        if column == 0:
            return super().get_cursor_word_left_location()
        return row, word_left(self.document[row], column)

    def get_cursor_word_right_location(self) -> Location:
        row, column = self.cursor_location
        if column == len(self.document[row]):
            return super().get_cursor_word_right_location()
        return row, word_right(self.document[row], column)

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        return None  # prose, and a long text would be searched at every move

    # How it is drawn

    def render_line(self, y: int) -> Strip:
        # At a width of nothing, as for a moment when the terminal is made narrower, there is nothing to wrap to.
        return super().render_line(y) if self.content_size.width > 0 else Strip.blank(0)

    def get_line(self, line_index: int) -> Text:
        line = Text(drawn(self.document.get_line(line_index)), end="", no_wrap=True)
        row, column = self.cursor_location
        if row == line_index and column < len(line) and self._draw_cursor and self._theme.cursor_style:
            line.stylize(self._theme.cursor_style, column, after(self.document[row], column))
        return line

    def _render_line(self, y: int) -> Strip:
        # A style that begins within a character of several code points takes it apart: give it one piece.
        return super()._render_line(y).simplify()

    def _set_document(self, text: str, language: str | None) -> None:
        super()._set_document(text, language)
        self.wrapped_document = Wrapped(self.document)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._rewrap_and_refresh_virtual_size()


_ACTIONS = {
    key: bound[0].action for key, bound in BindingsMap(Area.BINDINGS + TextArea.BINDINGS).key_to_bindings.items()
}
_ACTIONS |= dict.fromkeys(_XTERM_NEWLINES, "newline")
