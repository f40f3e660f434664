"""Conversations as lines: headings by day, two lines each, drawn only where one looks.

It knows an ordered list of values and a cursor; not where the list comes from.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from localinfer.history.values import Conversation
from tui.text.clean import clean

LINES = 2  # of one conversation
NEAR = 60  # lines before the end at which more is asked for


class ConversationRows(ScrollView, can_focus=True):
    """A list with a cursor. ``put`` replaces what it shows; the cursor stays on its conversation, or at its place."""

    DEFAULT_CSS = """
    ConversationRows { height: 1fr; background: $surface; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--heading",
        "rows--dim",
        "rows--cursor",
        "rows--blurred",
        "rows--mark",
    }
    DEFAULT_CSS += """
    ConversationRows > .rows--heading { color: $primary; text-style: bold; }
    ConversationRows > .rows--dim { color: $text-muted; }
    ConversationRows > .rows--mark { color: $accent; text-style: bold; }
    ConversationRows > .rows--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold;
    }
    ConversationRows > .rows--blurred { background: $block-cursor-blurred-background; color: $text; }
    ConversationRows:nocolor > .rows--cursor { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1_000_000)", show=False),
        Binding("end", "move(1_000_000)", show=False),
    ]

    class NearEnd(Message):
        """What is shown comes close to the end of what there is."""

    def __init__(self, now: Callable[[], datetime] = datetime.now) -> None:
        super().__init__()
        self.conversations: list[Conversation] = []
        self.current: int | None = None
        self._now = now
        self._cursor = 0
        self._headings: list[tuple[int, int, str]] = []  # line, index of the conversation under it, text
        self._heading_lines: list[int] = []

    @property
    def highlighted(self) -> Conversation | None:
        return self.conversations[self._cursor] if self.conversations else None

    @property
    def cursor_line(self) -> int | None:
        """Where the title of the highlighted conversation stands in the widget."""
        return self._line(self._cursor) - self.scroll_offset.y if self.conversations else None

    def put(self, conversations: Iterable[Conversation]) -> None:
        """Show these, in this order."""
        here = self.highlighted
        self.conversations = list(conversations)
        self._headings = _headings(self.conversations, self._now())
        self._heading_lines = [line for line, _, _ in self._headings]
        height = len(self.conversations) * LINES + len(self._headings)
        self.virtual_size = Size(self.size.width, height)
        wanted = here.id if here is not None else self.current
        if wanted is None or not self.highlight(wanted):
            self._go(self._cursor)
        self.refresh()

    def highlight(self, id: int) -> bool:
        """Put the cursor on a conversation; False when it is not in the list."""
        for index, one in enumerate(self.conversations):
            if one.id == id:
                self._go(index)
                return True
        return False

    def point(self, y: int) -> bool:
        """Put the cursor on what stands at row ``y`` of the widget; False when nothing does."""
        found = self._at(y + self.scroll_offset.y)
        if found is None or isinstance(found, str):
            return False
        self._go(found[0])
        return True

    def action_move(self, by: int) -> None:
        self._go(self._cursor + by)

    def action_page(self, by: int) -> None:
        self._go(self._cursor + by * max(1, self.size.height // LINES - 1))

    def _go(self, index: int) -> None:
        self._cursor = max(0, min(index, len(self.conversations) - 1))
        top = self._line(self._cursor)
        self._reveal(top)
        self.refresh()
        if self.virtual_size.height - top < NEAR + self.size.height:
            self.post_message(self.NearEnd())

    def _reveal(self, top: int) -> None:
        above = 1 if top - 1 in self._heading_lines else 0
        self.scroll_to_region(Region(0, top - above, 1, LINES + above), animate=False, force=True)

    def on_resize(self) -> None:
        """The cursor stays in view. Where all of the list is, the bar does not learn that it is at the top again."""
        self.scroll_target_y = self.scroll_y
        self._reveal(self._line(self._cursor))
        self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.virtual_size.height - new_value < NEAR + self.size.height:
            self.post_message(self.NearEnd())

    def _line(self, index: int) -> int:
        """The line of the title of a conversation."""
        passed = bisect_right([first for _, first, _ in self._headings], index)
        return index * LINES + passed

    def _at(self, line: int) -> tuple[int, int] | str | None:
        """What a line shows: a conversation's index and which of its lines, a heading, or nothing."""
        passed = bisect_right(self._heading_lines, line)
        if passed and self._heading_lines[passed - 1] == line:
            return self._headings[passed - 1][2]
        index, part = divmod(line - passed, LINES)
        return (index, part) if 0 <= index < len(self.conversations) else None

    def render_line(self, y: int) -> Strip:
        width, base = self.size.width, self.rich_style
        if not self.conversations and y == 1:
            style = self.get_component_rich_style("rows--dim")
            return Strip([Segment(set_cell_size("  No conversations yet", width), style)])
        found = self._at(y + self.scroll_offset.y)
        if found is None:
            return Strip.blank(width, base)
        if isinstance(found, str):
            style = self.get_component_rich_style("rows--heading")
            return Strip([Segment(set_cell_size(f" {found}", width), style)])
        return self._conversation(*found, width)

    def _conversation(self, index: int, part: int, width: int) -> Strip:
        one = self.conversations[index]
        chosen = index == self._cursor
        kind = ("rows--cursor" if self.has_focus else "rows--blurred") if chosen else ""
        style = self.get_component_rich_style(kind) if kind else self.rich_style
        mark = "▎" if one.id == self.current else " "
        mark_style = style + Style(color=self.get_component_rich_style("rows--mark").color) if not chosen else style
        if part == 0:
            text = _cut(" ".join(clean(one.title).split()) or "Untitled", width - 2)
            style = style + Style(bold=True) if one.id == self.current else style
        else:
            at = when(one.changed_s, self._now())
            model = " ".join(clean(one.model).split())
            text = _cut(model, width - 3 - cell_len(at) - 3)
            text = f"{text} · {at}" if text else at
            if not (chosen and self.has_focus):
                style = style + Style(color=self.get_component_rich_style("rows--dim").color)
            style = style + Style(bold=False)
        return Strip([Segment(mark, mark_style), Segment(set_cell_size(text, width - 1), style)])


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 1 else ""


def _headings(conversations: Sequence[Conversation], now: datetime) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    days = _Days(now)
    for index, one in enumerate(conversations):
        name = "★ Pinned" if one.pinned else days.name(one.changed_s)
        if not found or found[-1][2] != name:
            found.append((index * LINES + len(found), index, name))
    return found


class _Days:
    """Names of days as seen from now. Works on instants, because making a date of each of 100,000 takes long."""

    def __init__(self, now: datetime) -> None:
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        monday = today - timedelta(days=today.weekday())
        self._bounds = [
            (today.timestamp(), "Today"),
            ((today - timedelta(days=1)).timestamp(), "Yesterday"),
            (monday.timestamp(), "This week"),
        ]
        self._year = now.year
        self._month: tuple[float, float, str] = (0.0, 0.0, "")

    def name(self, at_s: float) -> str:
        for since, name in self._bounds:
            if at_s >= since:
                return name
        first, last, name = self._month
        if not first <= at_s < last:
            start = _date(at_s).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            end = (start + timedelta(days=32)).replace(day=1)
            name = f"{start:%B}" if start.year == self._year else f"{start:%B %Y}"
            self._month = (start.timestamp(), end.timestamp(), name)
        return name


def _date(at_s: float) -> datetime:
    try:
        return datetime.fromtimestamp(at_s)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(86_400)


def when(at_s: float, now: datetime) -> str:
    """An instant as short as it can be: the time today and yesterday, the day of the week this week, else the date."""
    at = _date(at_s)
    if timedelta() <= now.date() - at.date() <= timedelta(days=1):
        return f"{at:%H:%M}"
    if timedelta() < now - at < timedelta(days=6):
        return f"{at:%A}"
    return f"{at.day} {at:%b}" if at.year == now.year else f"{at.day} {at:%b %Y}"
