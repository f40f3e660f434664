"""A line of text that is typed: keys act in the order they were pressed in, and nothing in it acts on the terminal.

The value is what was written, its joiners and what shows nothing included; only what is drawn is made harmless.
"""

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.widgets import Input

from tui.text.clean import typed
from tui.widgets.prompt.graphemes import column_at, drawn

_PICTURED = str.maketrans("\n\t", "␤ ")


class Entry(Input):
    """An input for foreign text. What is typed and pasted into it loses what acts, what it is given stays as it is."""

    async def _on_key(self, event: events.Key) -> None:
        """Do at once what a key is bound to. A binding is found after the key has gone to the screen and back, and what
        is typed right behind it would come before it."""
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if not event.is_printable and await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._take(event.text)

    def action_paste(self) -> None:
        """Insert the clipboard's first line."""
        self._take(self.app.clipboard)

    def _take(self, text: str) -> None:
        first, *_ = typed(text).split("\n")
        self.replace(first.replace("\t", " "), *self.selection)

    # How it is drawn: each character in its place

    @property
    def _drawn(self) -> str:
        return drawn(self.value.translate(_PICTURED))

    @property
    def _value(self) -> Text:
        return Text(self._drawn, no_wrap=True, overflow="ignore", end="")

    def _position_to_cell(self, position: int) -> int:
        return cell_len(self._drawn[:position])

    def _cell_offset_to_index(self, offset: int) -> int:
        return column_at(self._drawn, offset + self.scroll_offset.x, 1)
