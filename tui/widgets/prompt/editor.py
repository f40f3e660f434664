"""The lines people type into: what keys, pastes and the mouse do to the text.

It knows nothing of messages, commands and attachments: keys that may mean something there are offered first.
"""

from collections.abc import Callable
from functools import cache
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingsMap, BindingType
from textual.content import Content
from textual.document._document import Location
from textual.document._document_navigator import DocumentNavigator
from textual.geometry import Size
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import TextArea

from tui.text.clean import Cleaner
from tui.widgets.prompt.graphemes import after, drawn, snap, word_left, word_right
from tui.widgets.prompt.terminal import prepare
from tui.widgets.prompt.wrapping import Wrapped

MOST_ROWS = 10
BULKY_LINES = 400
BULKY_BYTES = 20_000

# Keys that come closer together than a person types come from one paste, or from one read over a slow line.
BURST_S = 0.012
_LONG_BURST = 16

_KEYS_OFFERED = frozenset({"up", "down", "tab", "escape", "backspace"})
_NEWLINES = "ctrl+j,shift+enter,alt+enter,ctrl+enter"
_XTERM_NEWLINES = ("shift+\r", "alt+\r", "ctrl+\r")  # what Textual makes of xterm's way to write them


def typed(text: str) -> str:
    """``text`` from a clipboard or a file as if it had been typed: its lines end in ``\\n``, nothing in it acts."""
    return _harmless()(text.replace("\r\n", "\n").replace("\r", "\n"))


@cache
def _harmless() -> Cleaner:
    return Cleaner(joins=True)  # what is sent keeps its joiners, whatever this terminal makes of them


class Editor(TextArea):
    """A text area that grows with its text up to ``MOST_ROWS`` or two fifths of the screen.

    ``offer`` is asked about Enter and about keys that may not be the editor's; it says whether it took the key. An
    Enter within a burst of keys is part of a paste that the terminal did not mark, and becomes a newline.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding(_NEWLINES, "newline", "New line", show=False)]

    def __init__(self, offer: Callable[[str], bool], keep: Callable[[str], None], placeholder: str = "") -> None:
        prepare()
        super().__init__(placeholder=Content(placeholder), highlight_cursor_line=False)
        self._offer, self._keep = offer, keep
        self._last_key_s = 0.0
        self._burst = 0
        self._burst_has_lines = False
        self._held: Timer | None = None  # an Enter that waits for what comes right behind it

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        rows = super().get_content_height(container, viewport, width)
        return max(1, min(rows, MOST_ROWS, viewport.height * 2 // 5))

    # What keys do

    async def on_key(self, event: events.Key) -> None:
        key = event.key
        quick = event.time - self._last_key_s < BURST_S
        self._last_key_s = event.time
        self._burst = self._burst + 1 if quick else 1
        self._burst_has_lines = quick and self._burst_has_lines
        if self._held:
            self._release(newline=quick)
        if key == "enter":
            event.stop()
            event.prevent_default()
            if not quick:
                self._offer("enter")
            elif self._burst_has_lines or self._burst > _LONG_BURST:
                self._part_of_paste()
            else:
                self._held = self.set_timer(BURST_S, lambda: self._release(newline=False))
        elif (key in _KEYS_OFFERED and self._offer(key)) or await self._act(key):
            event.stop()
            event.prevent_default()

    async def _act(self, key: str) -> bool:
        """Do at once what a key is bound to. A binding is found after the key has gone to the screen and back, and
        what is typed right behind it would come before it."""
        action = _ACTIONS.get(key)
        return action is not None and await self.app.run_action(action, self)

    def _release(self, *, newline: bool) -> None:
        if self._held:
            self._held.stop()
            self._held = None
            if newline:
                self._part_of_paste()
            else:
                self._offer("enter")

    def _part_of_paste(self) -> None:
        self._burst_has_lines = True
        self.action_newline()

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
        """Insert what was pasted, or give it away when it is bulky."""
        text = typed(text)
        if len(text.encode(errors="replace")) > BULKY_BYTES or text.count("\n") >= BULKY_LINES:
            self._keep(text)
        else:
            self.put(text)

    def put(self, text: str) -> None:
        """Insert ``text`` at the cursor, in place of what is selected."""
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    def take_back(self, text: str) -> None:
        """Delete ``text`` if the cursor is right behind it."""
        row, column = self.cursor_location
        if self.selection.is_empty and self.document[row][:column].endswith(text):
            self.delete((row, column - len(text)), (row, column), maintain_selection_offset=False)

    def replace_all(self, text: str, *, cursor_at_end: bool = True) -> None:
        """Make ``text`` the whole text, in a way that can be undone. The cursor comes to the end of its last row, or
        of its first."""
        self.replace(text, (0, 0), self.document.end, maintain_selection_offset=False)
        end = self.document.end
        if not cursor_at_end:
            end = self.navigator.get_location_end((0, 0))
        self.move_cursor(end)

    def action_cursor_page_up(self) -> None:
        raise SkipAction  # the conversation is what pages

    def action_cursor_page_down(self) -> None:
        raise SkipAction

    # Where the cursor may stand

    @property
    def before_cursor(self) -> str:
        """The cursor's line up to the cursor."""
        row, column = self.cursor_location
        return self.document[row][:column]

    @property
    def on_first_row(self) -> bool:
        """Whether the cursor can go no higher."""
        return self.selection.is_empty and self.navigator.is_first_wrapped_line(self.cursor_location)

    @property
    def on_last_row(self) -> bool:
        """Whether the cursor can go no lower."""
        return self.selection.is_empty and self.navigator.is_last_wrapped_line(self.cursor_location)

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
    key: bound[0].action for key, bound in BindingsMap(Editor.BINDINGS + TextArea.BINDINGS).key_to_bindings.items()
}
_ACTIONS |= dict.fromkeys(_XTERM_NEWLINES, "newline")
