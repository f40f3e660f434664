"""A list of what may complete the text, over whatever is above the editor. It shows choices and which is meant."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.geometry import Offset
from textual.message import Message
from textual.widget import Widget

from localinfer.types import Value
from tui.text.clean import clean

_MOST_ROWS = 10
_LABEL_CELLS = 32
_MARK = "\u203a "


class Choice(Value, frozen=True):
    """Something that may complete the text. ``label``, ``extra`` and ``detail`` are shown; ``value`` is inserted.

    ``final``: nothing more is to be typed after it. ``path`` is the file or folder that it stands for.
    """

    label: str
    value: str
    extra: str = ""
    detail: str = ""
    final: bool = False
    path: str = ""


class Completion(Widget):
    """The list, closed while it has no choices. ``footer`` tells what is not in it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"completion--chosen", "completion--label", "completion--muted"}

    DEFAULT_CSS = """
    Completion {
        display: none; overlay: screen; constrain: inside inside;
        width: 1fr; height: auto; background: $panel; color: $foreground;
        & > .completion--chosen { background: $primary 30%; text-style: bold; }
        & > .completion--label { color: $text-primary; }
        & > .completion--muted { color: $text-muted; }
    }
    """

    class Clicked(Message):
        """A choice was clicked."""

        def __init__(self, choice: Choice) -> None:
            super().__init__()
            self.choice = choice

    def __init__(self) -> None:
        super().__init__()
        self._choices: Sequence[Choice] = ()
        self._footer = ""
        self._chosen: int | None = None
        self._top = 0
        self._rows = _MOST_ROWS

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return bool(self._choices)

    @property
    def chosen(self) -> Choice | None:
        """The choice that is meant."""
        return None if self._chosen is None else self._choices[self._chosen]

    @property
    def first(self) -> Choice:
        """The best choice of an open list."""
        return self._choices[0]

    def open(self, choices: Sequence[Choice], *, choose: bool, room: int, footer: str = "") -> None:
        """Show ``choices`` in at most ``room`` rows; with ``choose`` the first is meant. None closes the list."""
        if not choices:
            self.close()
            return
        if list(choices) != list(self._choices) or footer != self._footer:
            self._choices, self._footer, self._top = tuple(choices), footer, 0
            self._chosen = None
        if self._chosen is None and choose:
            self._chosen = 0
        self._rows = max(1, min(_MOST_ROWS, room - 1, len(self._choices)))
        self.styles.offset = Offset(0, -self._height)
        self.display = True
        self.refresh(layout=True)

    def close(self) -> None:
        """Show nothing."""
        if self._choices:
            self._choices, self._chosen = (), None
            self.display = False

    def move(self, by: int) -> None:
        """Mean the next choice, or the one before; after the last comes the first."""
        if self._chosen is None:
            self._chosen = 0 if by > 0 else len(self._choices) - 1
        else:
            self._chosen = (self._chosen + by) % len(self._choices)
        self._top = max(min(self._top, self._chosen), self._chosen - self._rows + 1)
        self.refresh()

    @property
    def _height(self) -> int:
        return self._rows + bool(self._status)

    @property
    def _status(self) -> str:
        hidden = len(self._choices) - self._rows
        shown = f"{len(self._choices)} choices · ↑ ↓ to see them" if hidden > 0 else ""
        return " · ".join(part for part in (shown, self._footer) if part)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self._height

    def render(self) -> Text:
        width = self.size.width
        styles = {name: self.get_component_rich_style(f"completion--{name}") for name in ("chosen", "label", "muted")}
        shown = self._choices[self._top : self._top + self._rows]
        labels = [Text(clean(choice.label), styles["label"]).append(choice.extra, styles["muted"]) for choice in shown]
        column = min(_LABEL_CELLS, width - 4, max((label.cell_len for label in labels), default=0))
        lines = []
        for number, (choice, label) in enumerate(zip(shown, labels, strict=True), self._top):
            chosen = number == self._chosen
            if label.cell_len > column and not choice.detail:
                label.truncate(max(1, width - 4), overflow="ellipsis")
            else:
                label.truncate(column, overflow="ellipsis", pad=True)
            line = Text(_MARK if chosen else "  ").append_text(label)
            line.append("  ").append(clean(choice.detail), styles["muted"])
            line.truncate(width, overflow="ellipsis", pad=True)
            if chosen:
                line.stylize(styles["chosen"])
            lines.append(line)
        if self._status:
            lines.append(Text(f"  {self._status}", styles["muted"]))
        return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()  # the editor keeps the focus
        event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        number = self._top + event.y
        if event.y < self._rows and number < len(self._choices):
            self.post_message(self.Clicked(self._choices[number]))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-1)
