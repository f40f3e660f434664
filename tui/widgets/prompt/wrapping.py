"""The text of the editor as rows of cells, broken between characters as a person sees them.

Textual's own view of a wrapped document measures and breaks code point by code point.
"""

from itertools import pairwise

from textual.document._document import Location  # it is exported nowhere else
from textual.document._wrapped_document import WrappedDocument

from tui.widgets.prompt.graphemes import column_at, drawn, lay_out


class Wrapped(WrappedDocument):
    """A document's rows. Tab stops are counted from where a row begins."""

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        self._width = width
        self._tab_width = tab_width or self._tab_width
        rows = [self._lay_out(line) for line in self.document.lines]
        self._wrap_offsets = [breaks for breaks, _ in rows]
        self._tab_width_cache = [tabs for _, tabs in rows]
        self._number()

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        lines = self.document.lines
        grown = len(lines) - len(self._wrap_offsets)
        top = max(0, min(start[0], old_end[0], len(lines) - 1))
        bottom = max(old_end[0], new_end[0] - grown)
        if not top <= bottom < len(self._wrap_offsets) or bottom + grown < top:
            self.wrap(self._width)
            return
        rows = [self._lay_out(line) for line in lines[top : bottom + grown + 1]]
        self._wrap_offsets[top : bottom + 1] = [breaks for breaks, _ in rows]
        self._tab_width_cache[top : bottom + 1] = [tabs for _, tabs in rows]
        self._number()

    def get_sections(self, line_index: int) -> list[str]:
        line = drawn(self.document[line_index])
        borders = [0, *self._wrap_offsets[line_index], len(line)]
        return [line[start:end] for start, end in pairwise(borders)]

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        sections = self.get_sections(line_index)
        y_offset %= len(sections)
        section = sections[y_offset]
        column = column_at(section, x_offset, self._tab_width)
        if y_offset < len(sections) - 1:  # the end of a row that goes on is the beginning of the next
            column = min(column, max(0, len(section) - 1))
        return sum(map(len, sections[:y_offset])) + column

    def _lay_out(self, line: str) -> tuple[list[int], list[int]]:
        return lay_out(drawn(line), self._width, self._tab_width)

    def _number(self) -> None:
        self._offset_to_line_info = []
        self._line_index_to_offsets = []
        for index, breaks in enumerate(self._wrap_offsets):
            first = len(self._offset_to_line_info)
            self._line_index_to_offsets.append(list(range(first, first + len(breaks) + 1)))
            self._offset_to_line_info.extend((index, row) for row in range(len(breaks) + 1))
