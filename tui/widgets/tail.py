"""The end of a log file as it grows: what is new is read, cleaned and shown, nothing is read twice."""

from pathlib import Path

from textual.widgets import Log

from tui.text.clean import clean

LINES = 200
MOST_BYTES = 65_536  # at a time: of a log that grows faster, the middle is left out
_LONGEST = 500  # characters of a line that are shown


class LogReader:
    """Reads what was appended to a file since the last time. Raises nothing: a log that cannot be read has no lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""  # of a line that has not ended

    def read(self) -> list[str]:
        """The lines that are new, fit for a terminal; at first the last ``MOST_BYTES`` of the file.

        A line without an end is held back until there is one, or until nothing more has come.
        """
        data, skipped = self._new()
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        if skipped:
            whole = whole.partition(b"\n")[2]
        if not data:
            whole, newline, rest = rest, rest, b""
        self._rest = rest[-MOST_BYTES:]
        if not newline:
            return []
        text = clean(whole.decode("utf-8", "replace")).expandtabs()
        return [line[:_LONGEST] for line in text.split("\n")][-LINES:]

    def _new(self) -> tuple[bytes, bool]:
        """The bytes that are new, and whether some before them were left out."""
        try:
            size = self.path.stat().st_size
            if size == self._offset:
                return b"", False
            start = max(0 if size < self._offset else self._offset, size - MOST_BYTES)
            skipped = start > self._offset or (start > 0 and size < self._offset)
            with self.path.open("rb") as file:
                file.seek(start)
                data = file.read(MOST_BYTES)
        except OSError:
            return b"", False
        self._offset = start + len(data)
        if skipped:
            self._rest = b""
        return data, skipped


class Tail(Log):
    """The last ``LINES`` lines of a log. It follows the end until the person scrolls up, and again from the end on."""

    DEFAULT_CSS = """
    Tail { background: $background; color: $text-muted; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    Tail:focus { color: $text; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(max_lines=LINES + 1, auto_scroll=False, id=id)  # one is the line after the last end
        self._reader: LogReader | None = None

    @property
    def following(self) -> bool:
        """Whether the end is in view."""
        return self.is_vertical_scroll_end

    def show(self, path: Path | None) -> None:
        """Show what is new in the file at ``path``; another file than before takes its place."""
        if path is None:
            return
        if self._reader is None or self._reader.path != path:
            self._reader = LogReader(path)
            self.clear()
        if lines := self._reader.read():
            self.write("\n".join(lines) + "\n", scroll_end=self.following)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.scroll_end(animate=False, immediate=True, x_axis=False)
