"""The turns of a branch with their texts, their heights and what is folded: all that a view of them draws from.

It knows nothing of scrolling, keys or the screen. Texts are drawn when somebody asks for them; of those not asked for
lately only the heights are kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from tui.widgets.transcript.estimate import Bulk, bulk
from tui.widgets.transcript.layout import Layout, Place
from tui.widgets.transcript.paint import Line
from tui.widgets.transcript.sheet import Drawn, Palette, Sheet
from tui.widgets.transcript.values import ShownTurn

ROWS_KEPT = 2000  # about 5 kB each
SHEETS_KEPT = 12  # however long they are: what is in view is not to be drawn again and again


class Book:
    """Turns by their position. ``width`` is of the text, in cells. Nothing may be drawn before `set_look`.

    ``behind`` is called where a long turn was not drawn to its end: who shows it calls `draw` again, once there is
    time.
    """

    def __init__(self, behind: Callable[[], object] = lambda: None) -> None:
        self._behind = behind
        self.turns: list[ShownTurn] = []
        self.layout = Layout(lambda turn: self.drawn(turn).rows)
        self.growing: Sheet | None = None
        self.width = 0
        self._palette: Palette | None = None
        self._edition = 0  # of the look that sheets were drawn in
        self._bulks: list[Bulk] = []
        self._positions: dict[int, int] = {}
        self._sheets: OrderedDict[int, Sheet] = OrderedDict()
        self._opened: dict[int, bool] = {}

    # What it holds.

    def reset(self, turns: Sequence[ShownTurn]) -> None:
        """Other turns. What was opened stays open where the turn is still there."""
        self.turns = list(turns)
        self._positions = {shown.turn.id: position for position, shown in enumerate(self.turns)}
        self._bulks = [bulk(shown) for shown in self.turns]
        self._opened = {id: opened for id, opened in self._opened.items() if id in self._positions}
        self.growing = None
        self._sheets.clear()
        self._estimate()

    def append(self, shown: ShownTurn, *, growing: bool = False) -> None:
        """One more turn at the end, at most one of them growing."""
        self._positions[shown.turn.id] = len(self.turns)
        self.turns.append(shown)
        self._bulks.append(bulk(shown))
        self.layout.append(self._bulks[-1].rows(self.width))
        if growing:
            self.growing = Sheet(shown, growing=True)

    def replace(self, shown: ShownTurn) -> int | None:
        """Another state of a turn; its position, None where it is not here. What grows takes its text only at the end,
        by `end`."""
        if (position := self.position(shown.turn.id)) is None:
            return None
        before, self.turns[position] = self.turns[position], shown
        self._bulks[position] = bulk(shown)
        if self.growing is not None and position == self.growing_at:
            self.growing.shown = shown
            self.growing.redraw()
        elif (sheet := self._sheets.get(position)) is not None and before.turn.content == shown.turn.content:
            sheet.replace(shown)
        else:
            self._sheets.pop(position, None)
        return position

    def end(self, shown: ShownTurn) -> int | None:
        """The growing reply is over and is ``shown`` from now on; another turn is replaced."""
        position, sheet = self.position(shown.turn.id), self.growing
        if position is None or sheet is None or position != self.growing_at:
            return self.replace(shown)
        self.growing = None
        sheet.end(shown)
        self.turns[position], self._bulks[position], self._sheets[position] = shown, bulk(shown), sheet
        return position

    @property
    def growing_at(self) -> int | None:
        """Where the growing reply stands."""
        return self.position(self.growing.shown.turn.id) if self.growing is not None else None

    def position(self, turn_id: int) -> int | None:
        """Where a turn stands."""
        return self._positions.get(turn_id)

    # How it looks.

    def set_look(self, width: int, palette: Palette) -> None:
        """Another width or other styles. Every height is an estimate again."""
        if self._palette != palette:
            self._sheets.clear()
        self.width, self._palette = width, palette
        self._edition += 1
        self._estimate()

    def sheet(self, turn: int) -> Sheet:
        """A turn's texts."""
        if self.growing is not None and turn == self.growing_at:
            return self.growing
        sheet = self._sheets.get(turn)
        return sheet if sheet is not None else Sheet(self.turns[turn])

    def drawn(self, turn: int) -> Drawn:
        """A turn's lines as they were last drawn: what has grown since then waits for `draw`, so that heights and
        lines always go together."""
        sheet = self.sheet(turn)
        if sheet.drawn is None or sheet.edition != self._edition:
            return self.draw(turn)
        if sheet is not self.growing:
            self._sheets.move_to_end(turn)
        return sheet.drawn

    def draw(self, turn: int) -> Drawn:
        """A turn's lines as they are now."""
        assert self._palette is not None
        sheet = self.sheet(turn)
        drawn = sheet.draw(self.width, self._palette, opened=self.opened(turn))
        sheet.edition = self._edition
        if sheet is not self.growing:
            self._sheets[turn] = sheet
            self._sheets.move_to_end(turn)
            self._prune()
        if sheet.unfinished:
            self.layout.set(turn, drawn.rows)
            self._behind()
        return drawn

    def unfinished(self) -> int | None:
        """A turn that is to be drawn further."""
        if (growing := self.growing) is not None and growing.unfinished and growing.edition == self._edition:
            return self.growing_at
        sheets = reversed(self._sheets.items())
        return next((turn for turn, sheet in sheets if sheet.unfinished and sheet.edition == self._edition), None)

    def opened(self, turn: int) -> bool:
        """Whether the reasoning of a turn is in view: as the person wants it, else while there is no answer yet."""
        going_on = self.growing is not None and turn == self.growing_at and not self.growing.answering
        return self._opened.get(self.turns[turn].turn.id, going_on)

    def fold(self, turn: int, *, opened: bool) -> None:
        """Show the reasoning of a turn, or only that there is some."""
        self._opened[self.turns[turn].turn.id] = opened

    # Places that outlast a change.

    def line(self, place: Place) -> Line:
        """The line at a place."""
        part, line = self.drawn(place.turn).locate(place.row)
        return Line(place.turn, part, line)

    def place(self, line: Line) -> Place:
        """Where a line is now, or the nearest that is left of its part."""
        turn = min(line.turn, len(self.turns) - 1)
        return Place(turn, self.drawn(turn).row(line.part, line.line))

    def _prune(self) -> None:
        rows = sum(sheet.drawn.rows for sheet in self._sheets.values() if sheet.drawn is not None)
        while rows > ROWS_KEPT and len(self._sheets) > SHEETS_KEPT:
            _, oldest = self._sheets.popitem(last=False)
            rows -= oldest.drawn.rows if oldest.drawn is not None else 0

    def _estimate(self) -> None:
        self.layout.reset([each.rows(self.width) for each in self._bulks])
