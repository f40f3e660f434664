"""What has the focus on the chat screen: the key line says what its keys do, and Esc and letters go to the prompt."""

from collections.abc import Mapping

from textual import events
from textual.screen import Screen

from tui import keys
from tui.widgets.bars import Keyed, KeyLine
from tui.widgets.prompt import Prompt
from tui.widgets.transcript import Transcript


class Focus(Screen[None]):
    """A screen with a prompt, from which one may walk elsewhere and from everywhere back."""

    prompt: Prompt
    transcript: Transcript
    key_line: KeyLine

    def show_keys(self, chosen: Mapping[str, str | tuple[str, ...]]) -> None:
        """Name the keys as the person chose them."""
        named = {action.id: keys.shown(keys.keys_of(action, chosen)[0]) for action in keys.ACTIONS}
        self.transcript.end_key = named["scroll_end"]
        self._usual = [(named[action.id], action.label) for action in keys.ACTIONS if action.footer]
        self.key_line.show(self._usual)

    def on_descendant_focus(self) -> None:
        """The keys of what has the focus now."""
        around = self.focused.ancestors_with_self if self.focused is not None else ()
        self.key_line.show(next((one.KEYS for one in around if isinstance(one, Keyed)), self._usual))

    async def on_key(self, event: events.Key) -> None:
        """A key that nothing has taken yet; keys that are bound go on to what they do."""
        focused = self.focused
        in_prompt = focused is not None and self.prompt in focused.ancestors_with_self
        if event.key == "escape" and not in_prompt:
            event.stop()
            await self._back()
        elif event.is_printable and event.character and event.key not in self.active_bindings and self.prompt.region:
            event.stop()
            self.prompt.focus()
            self.prompt.insert(event.character)

    async def _back(self) -> None:
        if self.prompt.region:
            self.prompt.focus()
        else:
            await self.run_action("conversations")  # the list, which covers it, goes away
