"""The line in which a person types what to look for. What moves, chooses and deletes is left to the screen."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from tui.widgets.entry import Entry


class Filter(Entry):
    """Typing filters; every key that moves belongs to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.move(-1)", show=False),
        Binding("down", "screen.move(1)", show=False),
        Binding("pageup", "screen.page(-1)", show=False),
        Binding("pagedown", "screen.page(1)", show=False),
        Binding("home", "screen.move(-100000)", show=False),
        Binding("end", "screen.move(100000)", show=False),
        Binding("left", "screen.variant(-1)", show=False),
        Binding("right", "screen.variant(1)", show=False),
        Binding("delete,ctrl+d", "screen.remove", show=False),
        Binding("enter", "screen.pick", show=False),
    ]

    def on_key(self, event: events.Key) -> None:
        """A space before anything was typed looks at the details."""
        if event.key == "space" and not self.value:
            event.stop()
            event.prevent_default()
            self.screen.run_worker(self.screen.run_action("details"))
