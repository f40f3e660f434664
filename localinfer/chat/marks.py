"""Finding the first of a few marks (stop strings, tags) in text that is still arriving.

It knows no state: both questions are about one text. The mark that is complete first wins, and of those that end
together the longest, so the answer never depends on how the text was cut into pieces.
"""


class Marks:
    """A set of strings to look for. Empty strings are not marks."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = tuple(text for text in texts if text)
        self._initials = frozenset(text[0] for text in self._texts)
        self._longest = max(map(len, self._texts), default=0)

    def first(self, text: str) -> tuple[int, int] | None:
        """Start and end of the mark that is complete first in ``text``, or None."""
        found = [(start + len(mark), start) for mark in self._texts if (start := text.find(mark)) >= 0]
        if not found:
            return None
        end, start = min(found)
        return start, end

    def undecided(self, text: str) -> int:
        """Where the longest end of ``text`` begins that may still become a mark; ``len(text)`` when there is none."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[start] in self._initials:
                rest = text[start:]
                if any(mark.startswith(rest) for mark in self._texts):
                    return start
        return len(text)
