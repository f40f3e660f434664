"""A book of turns as one scroll view: what is in view is drawn, of the rest there are heights.

Where the view stands is the place of its top row; Textual's ``scroll_y`` follows from it and is corrected whenever an
estimated height above turns out wrong. It knows scrolling, painting and the selection of text, not what is shown or
what keys do.
"""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tui.text.clean import clean
from tui.text.markdown import Look
from tui.text.plain import plain
from tui.widgets.transcript import anchor, paint, selecting, words
from tui.widgets.transcript.book import Book
from tui.widgets.transcript.layout import START, Place
from tui.widgets.transcript.paint import GUTTER, Line
from tui.widgets.transcript.sheet import Drawn, Palette, Part

MEASURE = 120  # cells of text; longer lines tire the eye
PAUSE_S = 0.02  # for keys and the screen while a long turn is drawn
MARGIN = 1  # cells that stay free on the right


class BookView(ScrollView, can_focus=True, inherit_bindings=False):
    """Turns below each other, the last of which may grow. The view follows its end while it stands there."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "transcript--text",
        "transcript--muted",
        "transcript--you",
        "transcript--reply",
        "transcript--note",
        "transcript--problem",
        "transcript--selected",
        "transcript--below",
    }
    DEFAULT_CSS = """
    BookView {
        width: 1fr;
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        background: $background;
        color: $foreground;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        &:focus { scrollbar-color: $primary; }

        & > .transcript--text { color: $foreground; }
        & > .transcript--muted { color: $text-muted; }
        & > .transcript--you { color: $text-accent; text-style: bold; }
        & > .transcript--reply { color: $text-primary; text-style: bold; }
        & > .transcript--note { color: $text-secondary; }
        & > .transcript--problem { color: $text-error; }
        & > .transcript--selected { color: $foreground; text-style: bold; }
        & > .transcript--below { color: $foreground; background: $panel; }
    }
    """

    # No layout: the scroll bar is always there and the size of the widget does not follow from its content.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0), repaint=False)

    def __init__(self, placeholder: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.placeholder = placeholder
        self.end_key = "End"  # what goes to the end while the focus is elsewhere
        self.following = True
        self.selected: int | None = None
        self._book = Book(self._later)
        self._going_on: Timer | None = None
        self._top = START
        self._anchor: anchor.Anchor | None = None
        self._below: int | None = 0
        self._palette: Palette | None = None
        self._laid_out: tuple[Size, Palette] | None = None
        self._thumb: tuple[bool, int, int] | None = None
        self._base = Style.null()
        self._painting = False

    # Where it stands.

    def follow(self) -> None:
        """Go to the end and stay there while text comes."""
        self.following = True
        self._moved(self._top)

    def scroll_start(self) -> None:
        """Go to the very first line."""
        self._moved_to(START)

    def scroll_rows(self, rows: int) -> None:
        """Move by rows of text, down where positive."""
        if self._settle():
            self._moved_to(self._book.layout.walk(self._top, rows))

    def scroll_page(self, pages: int) -> None:
        """Move by screens that overlap by one row, down where positive."""
        self.scroll_rows(pages * max(1, self.scrollable_size.height - 1))

    def reveal(self, turn: int) -> None:
        """Bring a turn into view: whole if it fits, else its head at the top."""
        if not self._settle():
            return
        layout, rows = self._book.layout, self.scrollable_size.height
        height = layout.height(turn)
        row = layout.top_of(turn) - layout.row_of(self._top)
        if row < 0 or height > rows:
            self._moved_to(Place(turn, 0))
        elif row + height > rows:
            self._moved_to(layout.walk(Place(turn, height - 1), 1 - rows))

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: object) -> None:
        """Textual's own scrolling, always at once: heights may change on the way."""
        del options
        super().scroll_to(x, y, animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Something of Textual has scrolled: the wheel, the scroll bar, a selection at the edge."""
        if self._laid_out is None or self._laid_out[0] != self.scrollable_size:
            return
        layout = self._book.layout
        row = round(new_value)
        rows = row - layout.row_of(self._top)
        near = abs(rows) <= 3 * self.scrollable_size.height
        if rows:
            self.following = not near and row >= self.max_scroll_y
            self._moved_to(layout.walk(self._top, rows) if near else layout.at(row), following=self.following)
            part = new_value - row
            self.set_reactive(Widget.scroll_y, self.scroll_y + part)

    def _moved_to(self, top: Place, *, following: bool = False) -> None:
        self.following = following
        self._moved(top)

    def _moved(self, top: Place) -> None:
        if not self._settle():
            return
        before = self._top
        self._stand(top)
        self._anchor = None
        layout = self._book.layout
        if layout.row_of(self._top) + self.scrollable_size.height >= layout.total:
            self.following, self._below = True, 0
        if self._top != before or self.following:
            self.refresh()

    def _stand(self, top: Place) -> None:
        """Put the view where it follows to, or to ``top``, and let Textual know."""
        layout, rows = self._book.layout, self.scrollable_size.height
        self._top = layout.end(rows) if self.following else layout.fill(top, rows)
        row, total = layout.row_of(self._top), layout.total
        self.virtual_size = Size(self.scrollable_size.width, total)
        self.set_reactive(Widget.scroll_y, float(row))
        self.set_reactive(Widget.scroll_target_y, float(row))
        thumb = (total > rows, 8 * rows * row // max(1, total), 8 * rows * rows // max(1, total))
        if thumb != self._thumb:  # a bar draws eighths of a cell: what cannot be seen is not painted
            self._thumb = thumb
            bar = self.vertical_scrollbar
            bar.window_virtual_size, bar.window_size, bar.position = total, rows, row

    def _settle(self) -> bool:
        """Lay out for the size and the styles there are now; False while there are none."""
        size = self.scrollable_size
        if not size or not self.is_mounted:
            return False
        if self._palette is None:
            self._palette = self._read_palette()
        now = (size, self._palette)
        if now == self._laid_out:
            return True
        width = max(1, min(MEASURE, size.width - GUTTER - MARGIN))
        if self._laid_out is None or self._laid_out[1] != self._palette or width != self._book.width:
            if self._laid_out is not None and self._book.turns and not self.following and self._anchor is None:
                self._anchor = anchor.take(self._book, self._top)
            if width != self._book.width:
                self.call_later(self._unselect_text)
                self._below = self._below and None
            self._book.set_look(width, self._palette)
        self._laid_out, self._thumb = now, None
        self._stand(anchor.find(self._book, self._anchor) if self._anchor is not None else self._top)
        return True

    def on_resize(self) -> None:
        """Another size: the same words stay on top."""
        if self._settle():
            self.refresh()

    def notify_style_update(self) -> None:
        """Styles may have changed."""
        super().notify_style_update()
        self._palette = None

    # How it changes.

    def _changed(self, turn: int, before: Drawn | None, *, new: bool = False) -> None:
        """A turn's lines are other ones: correct the heights, keep the view and paint what differs. ``new``: what it is
        longer by was not there before."""
        if not self._settle():
            self._laid_out = None
            return
        book, top = self._book, self._top
        layout = book.layout
        drawn = book.draw(turn)
        layout.set(turn, drawn.rows)
        kept = Place(turn, drawn.row(*before.locate(top.row))) if top.turn == turn and before is not None else top
        if not self.following and self._below is not None and new:
            self._below += max(0, drawn.rows - (before.rows if before is not None else 0))
        self._stand(kept)
        if self._top != top:
            self.refresh()
            return
        row, height = layout.top_of(turn) - layout.row_of(top), self.scrollable_size.height
        end = height if before is None or before.rows != drawn.rows else min(height, row + drawn.rows)
        start = max(0, row + (drawn.changed_from(before) if before is not None else 0))
        if start < end and row + drawn.rows > 0:
            self.refresh(Region(0, start, self.scrollable_size.width, end - start))
        if not self.following:
            self.refresh(Region(0, height - 1, self.scrollable_size.width, 1))

    def _later(self) -> None:
        """A turn was not drawn to its end."""
        if self._going_on is None:
            self._going_on = self.set_timer(PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        """Draw a bit more of a long turn; the words on top stay there."""
        self._going_on = None
        book = self._book
        if not self._settle() or (turn := book.unfinished()) is None:
            return
        if not self.following and self._anchor is None and self._top.turn == turn:
            self._anchor = anchor.take(book, self._top)
        self._changed(turn, book.sheet(turn).drawn)
        if not self.following and self._anchor is not None and self._anchor.turn == turn:
            self._stand(anchor.find(book, self._anchor))
            self.refresh()

    # How it looks.

    def render_lines(self, crop: Region) -> list[Strip]:
        """What is painted of the view. Which character is where only a mouse asks, and it asks `render_line`."""
        self._base = self.rich_style
        self._painting = self._settle()
        try:
            return super().render_lines(crop)
        finally:
            self._painting = False

    def render_line(self, y: int) -> Strip:
        """The row ``y`` of the view."""
        if not (self._painting or self._settle()) or self._laid_out is None:
            return Strip.blank(self.scrollable_size.width, self._base)
        width, height = self._laid_out[0]
        layout = self._book.layout
        position = layout.row_of(self._top) + y
        if position >= layout.total:
            return self._vacant(y, width)
        place = layout.at(position)
        drawn = self._book.drawn(place.turn)
        part, line = drawn.locate(place.row)
        key = Line(place.turn, part, line).key
        strip = drawn.parts[part][line]
        if (selection := self.text_selection) is not None:
            strip = paint.highlighted(strip, selection, key, self.screen.get_component_rich_style("screen--selection"))
        row = paint.row(strip, bar=self._bar(place.turn, part), base=self._base, width=width)
        if not self._painting:
            row = paint.located(row, key)
        if y == height - 1 and not self.following and self._below != 0:
            return self._with_mark(row, width)
        return row

    def _vacant(self, y: int, width: int) -> Strip:
        lines = plain(clean(self.placeholder), max(1, width - 2), self._styles().muted) if self.placeholder else []
        line = y - (self.scrollable_size.height - len(lines)) // 2
        if self._book.turns or not 0 <= line < len(lines):
            return Strip.blank(width, self._base)
        left = (width - lines[line].cell_length) // 2
        return Strip([Segment(" " * left), *lines[line]]).adjust_cell_length(width).apply_style(self._base)

    def _with_mark(self, row: Strip, width: int) -> Strip:
        style = self._base + self._styles().below + Style.from_meta({"follow": True})
        key = "End" if self.has_focus else self.end_key
        mark = Strip([Segment(f" {words.below(self._below, key)} ", style)]).crop(0, width)
        return Strip.join([row.crop(0, width - mark.cell_length), mark])

    def _bar(self, turn: int, part: Part) -> Segment:
        styles = self._styles()
        if part in (Part.OMISSION, Part.GAP):
            return Segment(" ")
        if turn == self.selected:
            return Segment("▌", styles.selected)
        return Segment("▎", styles.you if self._book.turns[turn].turn.role == "user" else styles.reply)

    def _styles(self) -> Palette:
        if self._palette is None:
            self._palette = self._read_palette()
        return self._palette

    def _read_palette(self) -> Palette:
        text, muted, you, reply, note, problem, selected, below = (
            self.get_component_rich_style(f"transcript--{name}", partial=True)
            for name in ("text", "muted", "you", "reply", "note", "problem", "selected", "below")
        )
        return Palette(text, muted, you, reply, note, problem, selected, below, Look.of(self.app.theme_variables))

    # Selected text.

    def selection_updated(self, selection: Selection | None) -> None:
        """Other text is selected."""
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it is drawn, without gutter and padding."""
        return (selecting.text(self._book, selection), "\n") if self._settle() else None

    def text_select_all(self) -> None:
        """A double click: all text of the turn it was on."""
        if self.selected is not None and self._settle():
            selection = selecting.whole(self._book, self.selected)
            self.screen.selections = {} if selection is None else {self: selection}

    def _unselect_text(self) -> None:
        if self.is_mounted and self in self.screen.selections:
            self.screen.clear_selection()

    def line_at(self, y: int) -> Line | None:
        """The line in row ``y`` of the view."""
        layout = self._book.layout
        if not self._settle() or layout.row_of(self._top) + y >= layout.total:
            return None
        return self._book.line(layout.at(layout.row_of(self._top) + y))
