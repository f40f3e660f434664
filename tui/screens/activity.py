"""What the engine is doing and for whom, and what its worker writes into its log.

It looks at an engine twice a second while it is shown, and never otherwise.
"""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.text.clean import clean
from tui.widgets.bars import HeaderLine, KeyLine
from tui.widgets.board import EngineView, summary, table, title_style
from tui.widgets.tail import Tail

REFRESH_S = 0.5

KEYS = (("Esc", "Close"), ("Tab", "Other part"), ("↑↓", "Scroll"), ("F", "Follow the log"))


class ActivityScreen(Screen[None]):
    """``source`` tells what the engine is doing at the moment it is called; it is called on the event loop."""

    DEFAULT_CSS = """
    ActivityScreen #summary { height: 3; margin: 1 1 1 1; }
    ActivityScreen #board { height: 1fr; min-height: 5; margin-left: 1; overflow-y: scroll; }
    ActivityScreen #board { scrollbar-size-vertical: 1; }
    ActivityScreen #rows { width: auto; text-wrap: nowrap; }
    ActivityScreen #log-title { height: 1; margin: 1 1 0 1; }
    ActivityScreen Tail { height: 1fr; min-height: 4; margin-left: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", key_display="Esc"),
        Binding("f,end", "follow", "Follow the log"),
    ]

    def __init__(self, source: Callable[[], EngineView]) -> None:
        super().__init__()
        self._source = source
        self._view: EngineView | None = None
        self._shown: dict[str, Content] = {}

    def compose(self) -> ComposeResult:
        yield HeaderLine()
        yield Static(id="summary")
        with VerticalScroll(id="board"):
            yield Static(id="rows")
        yield Static(id="log-title")
        yield Tail(id="log")
        yield KeyLine(KEYS)

    def on_mount(self) -> None:
        self._timer = self.set_interval(REFRESH_S, self.look)
        self.query_one("#board").focus()

    def on_screen_suspend(self) -> None:
        self._timer.pause()

    def on_screen_resume(self) -> None:
        self._timer.resume()
        self.call_after_refresh(self.look)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def on_descendant_focus(self) -> None:
        self._draw()

    def look(self) -> None:
        """Ask the source and show what it says."""
        self._view = self._source()
        self.query_one(Tail).show(self._view.log)
        self._draw()

    def action_close(self) -> None:
        self.dismiss()

    def action_follow(self) -> None:
        self.query_one(Tail).follow()
        self._draw()

    def _draw(self) -> None:
        view = self._view
        if view is None:
            return
        model = view.status.model
        self.query_one(HeaderLine).show(("Activity", model.name if model else "no model is loaded"))
        self._put("summary", summary(view, self.size.width - 2))
        board = self.query_one("#board")
        width = board.scrollable_content_region.width - 1  # a gap before the scroll bar
        self._put("rows", table(view, width, focused=board.has_focus))
        self._put("log-title", self._log_title(view))

    def _log_title(self, view: EngineView) -> Content:
        if view.log is None:
            return Content.assemble(("Log", "bold"), ("  none yet", "$text-muted"))
        tail = self.query_one(Tail)
        mode = "following" if tail.following else "F follows it again"
        return Content.assemble(
            ("Log", title_style(tail.has_focus)), (f"  {clean(view.log.name)} · {mode}", "$text-muted")
        )

    def _put(self, id: str, content: Content) -> None:
        """Draw only what changed."""
        before = self._shown.get(id)
        if before is None or not before.is_same(content):
            self._shown[id] = content
            self.query_one(f"#{id}", Static).update(content)
