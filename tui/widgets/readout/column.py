"""The readout as a slim column. It draws rows, and paints only those that changed; it has no timer."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.bars import Keyed, KeyHint
from tui.widgets.readout.layout import Line, lines
from tui.widgets.readout.values import Reading

STYLES = (
    "title", "big", "strong", "value", "label", "empty", "bar", "spark", "warning", "chosen", "rule",
    "load", "queue", "cached", "prefill", "first",
    "system", "history", "reply",
    "weights", "kv", "buffers", "apps",
)  # fmt: skip


class Readout(Keyed, Widget, can_focus=True):
    """Figures from top to bottom, the most important first; what there is no room for is reached with the keys.

    With focus, Up and Down choose a figure, and its definition stands at the bottom. Esc is told with ``Left``.
    """

    class Left(Message):
        """Somebody is done with the figures."""

    ALLOW_SELECT = False
    KEYS: ClassVar[tuple[KeyHint, ...]] = (("Esc", "Back"), ("↑ ↓", "Choose a figure"), ("Home End", "First and last"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", "Figure above", show=False),
        Binding("down,j", "choose(1)", "Figure below", show=False),
        Binding("home", "choose(-1000)", "First figure", show=False),
        Binding("end", "choose(1000)", "Last figure", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"readout--{name}" for name in STYLES}
    DEFAULT_CSS = """
    Readout {
        width: 34;
        height: 1fr;
        background: $surface;
        color: $text;
        & > .readout--title { color: $text-primary; text-style: bold; }
        & > .readout--big { text-style: bold; }
        & > .readout--strong { text-style: none; }
        & > .readout--label { color: $text-muted; }
        & > .readout--empty, & > .readout--rule { color: $text-disabled; }
        & > .readout--warning { color: $text-warning; text-style: bold; }
        & > .readout--chosen { color: $text-accent; text-style: bold; }
        & > .readout--bar, & > .readout--spark, & > .readout--prefill { color: $primary; }
        & > .readout--reply, & > .readout--weights { color: $primary; }
        & > .readout--first, & > .readout--history, & > .readout--kv { color: $accent; }
        & > .readout--cached, & > .readout--system, & > .readout--buffers { color: $secondary; }
        & > .readout--load, & > .readout--queue, & > .readout--apps { color: $text-muted; }
    }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._reading = Reading()
        self._lines: list[Line] = []
        self._chosen = 0
        self._styles_by_name: dict[str, Style] = {}

    def show(self, reading: Reading) -> None:
        """Show ``reading``. Rows that are the same as before are not painted again."""
        self._reading = reading
        self._draw()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.post_message(self.Left())
        else:
            await super()._on_key(event)

    def action_choose(self, by: int) -> None:
        """Choose the figure so many below."""
        self._chosen = max(0, self._chosen + by)
        self._draw()

    def _draw(self) -> None:
        width, height = self.size
        drawn, chosen = lines(self._reading, width, height, self._chosen if self.has_focus else None)
        if self.has_focus:
            self._chosen = chosen
        before, self._lines = self._lines, drawn
        if len(before) != len(drawn):
            self.refresh()
            return
        changed = [
            Region(0, y, width, 1) for y, pair in enumerate(zip(before, drawn, strict=True)) if pair[0] != pair[1]
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """One line of the column."""
        width = self.size.width
        if y >= len(self._lines):
            return Strip.blank(width, self._style("value"))
        segments = [Segment(span.text, self._style(span.style)) for span in self._lines[y]]
        return Strip(segments, width)

    def _style(self, name: str) -> Style:
        if name not in self._styles_by_name:
            self._styles_by_name[name] = self.get_component_rich_style(f"readout--{name}")
        return self._styles_by_name[name]

    def notify_style_update(self) -> None:
        """Another theme, or the focus came or went."""
        self._styles_by_name.clear()
        super().notify_style_update()

    def _on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _on_focus(self, event: events.Focus) -> None:
        super()._on_focus(event)
        self._draw()

    def _on_blur(self, event: events.Blur) -> None:
        super()._on_blur(event)
        self._draw()
