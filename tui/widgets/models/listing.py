"""The list of models: headings, one line for each model in columns, the progress of downloads in the line itself.

It draws only the lines that are seen, and only those that changed. It knows no source and starts nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from localinfer.models.explain import DASH, download_size, speed, tokens
from tui.text.clean import clean
from tui.widgets.models import words
from tui.widgets.models.lines import TITLES, Line, Section, reference, sectioned

if TYPE_CHECKING:
    from localinfer.downloads import Download

_GAP = 2
_MARK = 2
_BAR = 12
_LEAST_NAME, _MOST_NAME = 18, 48


class Column(NamedTuple):
    """One column: its heading, its width in cells, and from which to which width of the list it is shown."""

    name: str
    width: int
    right: bool = False
    least: int = 0
    most: int = 10_000


VERDICT, SIZE, SPEED, CONTEXT, CAN = "RUNS", "SIZE", "TOK/S", "CONTEXT", "CAN"
COLUMNS = (
    Column(VERDICT, 12),
    Column(SIZE, 8, right=True),
    Column(SPEED, 7, right=True, least=56),
    Column(CONTEXT, 7, right=True, least=64),
    Column(CAN, 6, least=64, most=89),
    Column(CAN, 21, least=90),
)
_SHORT = {"tools": "t", "thinking": "th", "vision": "v"}  # where there is no room for the words


class ModelList(ScrollView, can_focus=False):
    """The screen moves the cursor, whatever has the focus. The highlighted line stays the same model as long as it is
    listed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"models--cursor", "models--heading", "models--column"}
    DEFAULT_CSS = """
    ModelList { background: $background; padding: 0 1; scrollbar-size-vertical: 1; overflow-x: hidden; }
    ModelList > .models--cursor { background: $block-cursor-blurred-background; text-style: bold; }
    ModelList > .models--heading { color: $text-primary; text-style: bold; }
    ModelList > .models--column { color: $text-muted; }
    """
    ALLOW_SELECT = False

    class Highlighted(Message):
        """Another line is highlighted; None where there is none."""

        def __init__(self, line: Line | None) -> None:
            super().__init__()
            self.line = line

    class Picked(Message):
        """A line was clicked twice, or Enter pressed on it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[Section | Line] = []
        self._cursor = 0
        self._variants: dict[str, int] = {}
        self._downloads: Mapping[str, Download] = {}
        self._current = ""
        self._nothing = ""

    @property
    def highlighted(self) -> Line | None:
        """The model under the cursor."""
        row = self._rows[self._cursor] if self._cursor < len(self._rows) else None
        return row if isinstance(row, Line) else None

    @property
    def current(self) -> str:
        """The key of the model in use, "" without one."""
        return self._current

    @property
    def lines(self) -> tuple[Line, ...]:
        """The models that are listed, in order."""
        return tuple(row for row in self._rows if isinstance(row, Line))

    def show(self, lines: tuple[Line, ...], *, current: str, nothing: str = "") -> None:
        """List ``lines``; ``current`` is the key of the one in use. Where there are none, ``nothing`` says so."""
        before = self.highlighted
        self._nothing = nothing
        self._current = current
        self._rows = []
        for section, inside in sectioned(lines).items():
            self._rows += [section, *inside]
        keys = [row.key if isinstance(row, Line) else "" for row in self._rows]
        first = next((index for index, row in enumerate(self._rows) if isinstance(row, Line)), 0)
        self._cursor = keys.index(before.key) if before is not None and before.key in keys else first
        self.virtual_size = Size(0, len(self._rows) + 1)
        self.refresh()
        self._follow()
        if before is None or self.highlighted != before:
            self.post_message(self.Highlighted(self.highlighted))

    def set_variant(self, key: str, variant: int) -> None:
        """Show the line ``key`` with another of its quantizations."""
        self._variants[key] = variant
        self._refresh_line(key)

    def variant(self, line: Line) -> int:
        """Which quantization of ``line`` is shown."""
        return min(self._variants.get(line.key, line.usual), max(0, len(line.variants) - 1))

    def set_downloads(self, downloads: Mapping[str, "Download"]) -> None:
        """Show how far they are; only lines whose download moved are drawn again."""
        before, self._downloads = self._downloads, downloads
        for row in self._rows:
            if isinstance(row, Line) and self._download(row, before) != self._download(row, downloads):
                self._refresh_line(row.key)

    def download_of(self, line: Line) -> "Download | None":
        """The download that the line shows."""
        return self._download(line, self._downloads)

    # Moving

    def move(self, by: int) -> None:
        """Move the cursor by so many models, as far as there are any."""
        places = [index for index, row in enumerate(self._rows) if isinstance(row, Line)]
        if not places:
            return
        now = places.index(self._cursor) if self._cursor in places else 0
        self._go(places[max(0, min(len(places) - 1, now + by))])

    def page(self, direction: int) -> None:
        """Move by a page."""
        self.move(direction * max(1, self.size.height - 2))

    def _go(self, row: int) -> None:
        if row == self._cursor:
            return
        before, self._cursor = self._cursor, row
        self._refresh_row(before)
        self._refresh_row(row)
        self._follow()
        self.post_message(self.Highlighted(self.highlighted))

    def _follow(self) -> None:
        """Keep the cursor in view, with the heading above it."""
        above = self._cursor - (1 if self._cursor and not isinstance(self._rows[self._cursor - 1], Line) else 0)
        self.scroll_to_region(Region(0, above, 1, self._cursor - above + 2), animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """A click highlights, a second one picks."""
        row = event.y + self.scroll_offset.y - 1
        if event.y and 0 <= row < len(self._rows) and isinstance(self._rows[row], Line):
            if row == self._cursor and event.chain > 1:
                self.post_message(self.Picked())
            self._go(row)

    # Drawing

    def render_line(self, y: int) -> Strip:
        """One line: the names of the columns on top, then the rows as they are scrolled."""
        width = self.scrollable_content_region.width
        if y == 0:
            return self._strip(self._head(width), width, "models--column")
        index = y - 1 + self.scroll_offset.y
        if index >= len(self._rows):
            told = Content(f"  {clean(self._nothing)}") if not self._rows and y == 1 else Content("")
            return self._strip(told, width, "models--column")
        row = self._rows[index]
        if not isinstance(row, Line):
            return self._strip(Content(TITLES[row]), width, "models--heading")
        return self._strip(self._line(row, width), width, "models--cursor" if index == self._cursor else "")

    def _strip(self, content: Content, width: int, component: str = "") -> Strip:
        style = self.get_visual_style(component) if component else self.visual_style
        if width < 1:  # of which nothing is made that could be shown
            return Strip.blank(0)
        (strip,) = Visual.to_strips(self, _one_line(content, width), width, 1, style, pad=True)[:1]
        return strip

    def _columns(self, width: int) -> list[tuple[Column, int]]:
        shown = [column for column in COLUMNS if column.least <= width <= column.most]
        return [(column, column.width) for column in shown]

    def _name_width(self, width: int) -> int:
        taken = sum(size + _GAP for _, size in self._columns(width))
        return max(_LEAST_NAME, min(_MOST_NAME, width - _MARK - taken))

    def _head(self, width: int) -> Content:
        cells = [_fitted(Content("MODEL"), self._name_width(width))]
        cells += [_fitted(Content(column.name), size, column.right) for column, size in self._columns(width)]
        return Content.assemble(" " * _MARK, Content(" " * _GAP).join(cells))

    def _line(self, line: Line, width: int) -> Content:
        name = self._titled(line, self._name_width(width))
        download = self.download_of(line)
        if download is not None and download.active:
            return Content.assemble(name, " " * _GAP, self._progress(download, width))
        cells = self._cells(line)
        columns = self._columns(width)
        if download is not None and download.state != "done":
            style = "$text-error" if download.state == "failed" else "$text-warning"
            cells[VERDICT] = Content.styled(words.download(download, short=True), style)
        cells[CAN] = _able(line.capabilities, next((size for column, size in columns if column.name == CAN), 0))
        shown = [_fitted(cells[column.name], size, column.right) for column, size in columns]
        return Content(" " * _GAP).join([name, *shown])

    def _titled(self, line: Line, width: int) -> Content:
        mark = ("✓ ", "$text-success") if line.key == self._current else ("★ ", "$text-accent")
        quantization = line.variants[self.variant(line)].entry.quantization if line.variants else ""
        title = clean(line.title).replace("\n", " ")
        several = sum(row.title == line.title for row in self.lines) > 1
        chosen = quantization and (several or self.variant(line) != line.usual) and quantization not in title
        text = Content.assemble(title, (f" {clean(quantization)}", "$text-muted") if chosen else "")
        marked = mark if line.key == self._current or line.recommended else "  "
        return Content.assemble(marked, _fitted(text, width))

    def _cells(self, line: Line) -> dict[str, Content]:
        if not line.variants:
            told = "looks on Enter" if not line.gated else "terms to accept"
            dash = Content.styled(DASH, "$text-muted")
            return {VERDICT: Content.styled(told, "$text-muted"), SIZE: dash, SPEED: dash, CONTEXT: dash}
        planned = line.variants[self.variant(line)]
        entry, plan = planned.entry, planned.plan
        return {
            VERDICT: words.verdict(plan, planned.error),
            SIZE: Content(download_size(entry.size_bytes, approximate=entry.approximate)),
            SPEED: Content(speed(plan.decode_tps) if plan else DASH),
            CONTEXT: Content(tokens(plan.context) if plan and plan.fits else DASH),
        }

    def _progress(self, download: "Download", width: int) -> Content:
        room = width - _MARK - self._name_width(width) - _GAP
        if download.state == "running" and download.fraction is not None:
            return Content.assemble(words.bar(download.fraction, _BAR), " ", words.download(download, short=True))
        return Content.styled(words.download(download, short=True), "$text-muted").truncate(room, ellipsis=True)

    def _download(self, line: Line, downloads: Mapping[str, "Download"]) -> "Download | None":
        if not downloads:
            return None
        if line.key in downloads:
            return downloads[line.key]
        if not line.variants:
            return None
        chosen = line.variants[self.variant(line)]
        asked = (chosen,) if line.section == "here" else line.variants
        known = [downloads[name] for one in asked if (name := reference(one.entry)) in downloads]
        return next((one for one in known if one.active), known[0] if known else None)

    def _refresh_line(self, key: str) -> None:
        for index, row in enumerate(self._rows):
            if isinstance(row, Line) and row.key == key:
                self._refresh_row(index)

    def _refresh_row(self, index: int) -> None:
        y = index + 1 - self.scroll_offset.y
        if 0 < y < self.size.height:
            self.refresh(Region(0, y, self.outer_size.width, 1))

    def notify_style_update(self) -> None:
        """The theme changed: everything is drawn again."""
        super().notify_style_update()
        self.refresh()


def _able(capabilities: Sequence[str], width: int) -> Content:
    """What a model can do, in words or, where those have no room, in letters."""
    if width > len("·".join(_SHORT.values())):
        return Content(" ".join(capabilities))
    return Content("·".join(_SHORT.get(one, one[:1]) for one in capabilities))


def _one_line(content: Content, width: int) -> Content:
    return content.truncate(width, ellipsis=True)


def _fitted(content: Content, width: int, right: bool = False) -> Content:
    cut = content.truncate(width, ellipsis=True)
    missing = max(0, width - cut.cell_length)
    return cut.pad_left(missing) if right else cut.pad_right(missing)
