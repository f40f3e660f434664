"""A line of text that is typed, in which what keys do comes in the order in which they were pressed."""

from textual import events
from textual.widgets import Input


class Entry(Input):
    """An input that does at once what a key is bound to. A binding is found after the key has gone to the screen and
    back, and what is typed right behind it would come before it."""

    async def _on_key(self, event: events.Key) -> None:
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if not event.is_printable and await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return
