"""The threads of a download: each fills pieces of one ``.part`` from a hub, as long as bytes keep coming.

It knows ranges and a journal; what the bytes are worth, and when to stop, is the download's business.
"""

import functools
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import BinaryIO

from localinfer.errors import DownloadFailed
from localinfer.models.journal import Journal, Span
from localinfer.models.ranges import Remote, part, whole
from localinfer.models.web import Attempts, Temporary

_USUAL_BREAKS = 2  # so many in one piece are not worth a word


class Filler:
    """What the threads of one attempt share. After ``stop`` is set none of them writes any more.

    ``say`` is told of the waits that are worth a word, by all threads together once each. ``differed`` and
    ``compared_bytes`` are what ``compare`` found, and where it is.
    """

    def __init__(self, remote: Remote, journal: Journal, say: Callable[[str], None]) -> None:
        self.stop = threading.Event()
        self.differed = False
        self.compared_bytes = 0
        self._remote = remote
        self._journal = journal
        self._say = say
        self._told: set[str] = set()
        self._telling = threading.Lock()

    def fill(self, pieces: "SimpleQueue[int]") -> None:
        """Fill one of ``pieces`` after the other. Raises ``RangesIgnored``, what ``Web.open`` raises, ``OSError``."""
        journal = self._journal

        def fetch(span: Span) -> None:
            with part(self._remote, span.start, span.stop) as answer:
                file.seek(span.start)
                for chunk in answer.chunks:
                    if self.stop.is_set():
                        return
                    self._write(file, span.number, chunk)

        with journal.part.open("rb+", buffering=0) as file:
            while not self.stop.is_set():
                try:
                    number = pieces.get_nowait()
                except Empty:
                    return
                self._persist(functools.partial(journal.span, number), fetch)
                # A little of the disk's work at a time, while the others fetch: else all of it waits for the end.
                if not self.stop.is_set():
                    os.fsync(file.fileno())

    def pass_over(self) -> None:
        """Pass over the whole file, as a server without ranges sends it, and keep what is missing."""
        journal = self._journal

        def fetch(_: Span) -> None:
            position = 0
            with whole(self._remote) as answer:
                for chunk in answer.chunks:
                    for span, data in self._missing_of(position, chunk):
                        if self.stop.is_set():
                            return
                        file.seek(span.start)
                        self._write(file, span.number, data)
                    position += len(chunk)

        with journal.part.open("rb+", buffering=0) as file:
            self._persist(journal.first, fetch)

    def compare(self, number: int) -> None:
        """Fetch piece ``number`` again and write it where it differs from what is there; then ``differed`` is set."""
        bounds = self._journal.bounds(number)
        self.compared_bytes = bounds.start
        crc = 0

        def missing() -> Span | None:
            return bounds._replace(start=self.compared_bytes) if self.compared_bytes < bounds.stop else None

        def fetch(span: Span) -> None:
            nonlocal crc
            with part(self._remote, span.start, span.stop) as answer:
                for chunk in answer.chunks:
                    if self.stop.is_set():
                        return
                    file.seek(self.compared_bytes)
                    if file.read(len(chunk)) != chunk:
                        self.differed = True
                        file.seek(self.compared_bytes)
                        _write_all(file, chunk)
                    self.compared_bytes += len(chunk)
                    crc = zlib.crc32(chunk, crc)

        with self._journal.part.open("rb+", buffering=0) as file:
            self._persist(missing, fetch)
        if missing() is None:
            self._journal.replace(number, crc)

    def _persist(self, missing: Callable[[], Span | None], fetch: Callable[[Span], None]) -> None:
        """``fetch`` what is ``missing`` until nothing is, or until several attempts in a row brought hardly any."""
        attempts = Attempts(self._remote.web.patience)
        while (span := missing()) is not None and not self.stop.is_set():
            failure = Temporary(
                DownloadFailed(
                    f"{self._remote.web.host} ended {self._remote.name} too early.",
                    "Try again: what has arrived is kept.",
                )
            )
            try:
                fetch(span)
            except Temporary as error:
                failure = error
            left = missing()
            if self.stop.is_set():
                return
            if left is None:
                break
            wait = attempts.wait_s(failure, left.start - span.start)
            at_once = failure.silent or failure.asked_s is not None
            if at_once or attempts.in_vain > 1 or attempts.failed > _USUAL_BREAKS:
                self._tell(failure.words(wait))
            self.stop.wait(wait)
        with self._telling:  # things go well again: the next trouble is news
            self._told.clear()

    def _tell(self, words: str) -> None:
        with self._telling:
            if words not in self._told:
                self._told.add(words)
                self._say(words)

    def _missing_of(self, position: int, chunk: bytes) -> Iterator[tuple[Span, bytes]]:
        """What of ``chunk``, which begins at ``position`` of the file, continues a piece."""
        length = self._journal.piece_bytes
        end = position + len(chunk)
        for number in range(position // length, -(-end // length)):
            span = self._journal.span(number)
            if span and position <= span.start < end:
                yield span, chunk[span.start - position : min(span.stop, end) - position]

    def _write(self, file: BinaryIO, number: int, chunk: bytes) -> None:
        _write_all(file, chunk)
        self._journal.wrote(number, chunk)


def _write_all(file: BinaryIO, chunk: bytes) -> None:
    """Write all of ``chunk``: an unbuffered file may take less."""
    view = memoryview(chunk)
    while view:
        view = view[file.write(view) :]
