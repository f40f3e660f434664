"""The lines of the prompt: what Enter, bursts of keys and bulky pastes do to the text.

It knows nothing of messages, commands and attachments: keys that may mean something there are offered first.
"""

from collections.abc import Callable

from textual import events
from textual.actions import SkipAction
from textual.content import Content
from textual.geometry import Size
from textual.timer import Timer

from tui.text.clean import typed
from tui.widgets.prompt.area import Area

MOST_ROWS = 10
BULKY_LINES = 400
BULKY_BYTES = 20_000

# Keys that come closer together than a person types come from one paste, or from one read over a slow line.
BURST_S = 0.012
_LONG_BURST = 16

_KEYS_OFFERED = frozenset({"up", "down", "tab", "escape", "backspace"})


class Editor(Area):
    """A text area that grows with its text up to ``MOST_ROWS`` or two fifths of the screen.

    ``offer`` is asked about Enter and about keys that may not be the editor's; it says whether it took the key. An
    Enter within a burst of keys is part of a paste that the terminal did not mark, and becomes a newline.
    """

    def __init__(self, offer: Callable[[str], bool], keep: Callable[[str], None], placeholder: str = "") -> None:
        super().__init__(placeholder=Content(placeholder))
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
        elif key in _KEYS_OFFERED and self._offer(key):
            event.stop()
            event.prevent_default()

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

    def take(self, text: str) -> None:
        """Insert what was pasted, or give it away when it is bulky."""
        text = typed(text)
        if len(text.encode(errors="replace")) > BULKY_BYTES or text.count("\n") >= BULKY_LINES:
            self._keep(text)
        else:
            self.put(text)

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

    # Where the cursor is

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
