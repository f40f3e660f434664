"""How high a turn will probably be, from the length of its text alone."""

from typing import NamedTuple

from tui.widgets.transcript.values import ShownTurn


class Bulk(NamedTuple):
    """What the height of a turn follows from: about how many ``cells`` its text has, its line ends, and the rows that
    no width changes."""

    cells: int
    line_ends: int
    fixed: int

    def rows(self, width: int) -> int:
        """The estimate for a text ``width`` cells wide. A line that is wrapped leaves half a row empty on average."""
        return self.fixed + self.line_ends + 1 + self.cells // max(1, width)


def bulk(shown: ShownTurn) -> Bulk:
    """Measure a turn once. Characters of three UTF-8 bytes are mostly two cells wide."""
    turn = shown.turn
    text = turn.content
    cells = len(text) if text.isascii() else (len(text) + len(text.encode("utf-8", "replace"))) // 2
    fixed = 2 + len(turn.attachments) + bool(turn.reasoning) + bool(shown.figures) + 2 * (shown.omission is not None)
    return Bulk(cells, text.count("\n"), fixed + (turn.state in ("stopped", "cut", "failed")))
