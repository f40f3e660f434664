"""Token bytes to text, exact at the boundaries of characters and of stop strings.

It knows nothing of token ids, tags or requests. A piece of bytes may end inside a character, and a piece of text inside
a stop string: what is not certain yet is held back, and nothing else is.
"""

import codecs

from localinfer.chat.marks import Marks

_decoder = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """One reply. Bytes that are no UTF-8 become U+FFFD as soon as that is certain."""

    stopped: bool
    """A stop string was completed. It is never part of the text, and nothing after it is."""

    def __init__(self, stop: tuple[str, ...] = ()) -> None:
        self.stopped = False
        self._decoder = _decoder(errors="replace")
        self._stop = Marks(stop)
        self._held = ""

    def push(self, piece: bytes) -> str:
        """The text that is certain after ``piece``, the bytes of one token or of several."""
        return "" if self.stopped else self._certain(self._decoder.decode(piece))

    def finish(self) -> str:
        """The rest: text that did not become a stop string; a character that was never completed is one U+FFFD."""
        if self.stopped:
            return ""
        text = self._certain(self._decoder.decode(b"", final=True)) + self._held
        self._held = ""
        return text

    def _certain(self, text: str) -> str:
        text = self._held + text
        found = self._stop.first(text)
        if found:
            self.stopped = True
            self._held = ""
            return text[: found[0]]
        undecided = self._stop.undecided(text)
        self._held = text[undecided:]
        return text[:undecided]
