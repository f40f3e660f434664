"""What of an unfinished file is there: the journal beside a ``.part``, kept so that nothing is fetched twice.

It knows pieces, their checksums and one small JSON file; it does not know where bytes come from. A journal is written
after the bytes it tells of, so it never promises what a killed process did not write. After a power failure it may: the
checksum of each piece then tells which one. Who writes keeps the journal himself, so that it never lags far behind.
"""

import contextlib
import os
import threading
import zlib
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from localinfer import decoding
from localinfer.types import Value

_MIB = 1 << 20
_SMALLEST, _LARGEST = 16 * _MIB, 64 * _MIB
_MOST_PIECES = 1 << 17
_SAVES_PER_PIECE = 4
_BLOCK = _MIB

Count = Annotated[int, msgspec.Meta(ge=0)]


def piece_bytes(size_bytes: int) -> int:
    """The length of the pieces of a file of ``size_bytes``: a power of two, 16 to 64 MiB."""
    length = _SMALLEST
    while length < _LARGEST and size_bytes > 256 * length:
        length *= 2
    return length


class _Written(Value, frozen=True, omit_defaults=False):
    """The journal as it lies on disk: for each piece, the bytes that are there from its start on, and their CRC-32."""

    oid: str
    size_bytes: Count
    piece_bytes: Annotated[int, msgspec.Meta(ge=1)]
    pieces: list[tuple[Count, Count]]


class Span(NamedTuple):
    """What is still to be fetched of piece ``number``: the bytes from ``start`` to before ``stop`` of the file."""

    number: int
    start: int
    stop: int


class Journal:
    """The state of one ``.part``. May be used from several threads."""

    def __init__(self, part: Path, oid: str, size_bytes: int, length: int) -> None:
        self.part = part
        self.path = journal_path(part)
        self.size_bytes = size_bytes
        self.piece_bytes = length
        self._oid = oid
        self._unsaved_bytes = 0
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._pieces: list[tuple[int, int]] = [(0, 0)] * -(-size_bytes // length)

    @classmethod
    def resume(cls, part: Path, oid: str, size_bytes: int, length: int) -> "Journal":
        """The journal of ``part`` as an earlier run left it; a new one, without the part, if the two do not agree."""
        written = _read(journal_path(part))
        if written and (written.oid, written.size_bytes) == (oid, size_bytes):
            journal = cls(part, oid, size_bytes, written.piece_bytes)
            if len(journal._pieces) == len(written.pieces):
                journal._pieces = list(written.pieces)
                if journal._agrees():
                    return journal
        journal = cls(part, oid, size_bytes, length)
        journal.discard()
        return journal

    def discard(self) -> None:
        """Remove the part and its journal."""
        for path in (self.part, self.path):
            path.unlink(missing_ok=True)
        self.forget_all()

    def save(self) -> None:
        """Write the journal in one step. Raises ``OSError``."""
        with self._saving:
            with self._lock:
                pieces, self._unsaved_bytes = list(self._pieces), 0
            written = _Written(oid=self._oid, size_bytes=self.size_bytes, piece_bytes=self.piece_bytes, pieces=pieces)
            new = self.path.with_name(f"{self.path.name}.new")
            new.write_bytes(msgspec.json.encode(written))
            with contextlib.suppress(PermissionError):  # Windows, while another process reads it: the old one stays
                new.replace(self.path)

    @property
    def done_bytes(self) -> int:
        """Bytes that are there."""
        with self._lock:
            return sum(done for done, _ in self._pieces)

    @property
    def contiguous_bytes(self) -> int:
        """Bytes that are there from the start of the file on without a gap."""
        total = 0
        with self._lock:
            for number, (done, _) in enumerate(self._pieces):
                total += done
                if done < self._length(number):
                    break
        return total

    def span(self, number: int) -> Span | None:
        """What is missing of piece ``number``; None if nothing is."""
        begin = number * self.piece_bytes
        with self._lock:
            done, length = self._pieces[number][0], self._length(number)
        return Span(number, begin + done, begin + length) if done < length else None

    def spans(self) -> list[Span]:
        """What is missing, in order."""
        return [span for number in range(len(self._pieces)) if (span := self.span(number))]

    def first(self) -> Span | None:
        """The first span that is missing; None if nothing is."""
        return next(iter(self.spans()), None)

    def wrote(self, number: int, chunk: bytes) -> None:
        """``chunk`` has been written to the part, behind what was there of piece ``number``.

        The journal is written each time that a quarter of a piece has come. Raises ``OSError``.
        """
        with self._lock:
            done, crc = self._pieces[number]
        crc = zlib.crc32(chunk, crc)  # outside the lock: only one thread works on a piece
        with self._lock:
            self._pieces[number] = (done + len(chunk), crc)
            self._unsaved_bytes += len(chunk)
            due = self._unsaved_bytes * _SAVES_PER_PIECE >= self.piece_bytes
            if due:
                self._unsaved_bytes = 0
        if due:
            self.save()

    def replace(self, number: int, crc: int) -> None:
        """The whole of piece ``number`` has been written anew, with this CRC-32."""
        with self._lock:
            self._pieces[number] = (self._length(number), crc)

    def forget_damaged(self) -> int:
        """Drop the pieces that are not on disk as they were written: how many. Raises ``OSError``."""
        damaged = [
            number for number in range(len(self._pieces)) if self._crc_on_disk(number) != self._pieces[number][1]
        ]
        with self._lock:
            for number in damaged:
                self._pieces[number] = (0, 0)
        return len(damaged)

    def forget_all(self) -> None:
        """Drop every piece."""
        with self._lock:
            self._pieces = [(0, 0)] * len(self._pieces)

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self._pieces)

    def bounds(self, number: int) -> Span:
        """The whole of piece ``number``."""
        begin = number * self.piece_bytes
        return Span(number, begin, begin + self._length(number))

    def _crc_on_disk(self, number: int) -> int:
        crc = 0
        left = self._pieces[number][0]
        with self.part.open("rb") as file:
            file.seek(number * self.piece_bytes)
            while left > 0 and (block := file.read(min(left, _BLOCK))):
                crc = zlib.crc32(block, crc)
                left -= len(block)
        return crc

    def _length(self, number: int) -> int:
        return min(self.piece_bytes, self.size_bytes - number * self.piece_bytes)

    def _agrees(self) -> bool:
        """Whether the part can hold what the journal says."""
        if any(done > self._length(number) for number, (done, _) in enumerate(self._pieces)):
            return False
        ends = [number * self.piece_bytes + done for number, (done, _) in enumerate(self._pieces) if done]
        with contextlib.suppress(OSError):
            size = self.part.stat().st_size
            return max(ends, default=0) <= size <= self.size_bytes
        return not ends


def journal_path(part: Path) -> Path:
    """Where the journal of ``part`` is."""
    return part.with_name(f"{part.name}.json")


def done_bytes(part: Path) -> int:
    """The bytes of ``part`` that are there, as its journal says; another process may be fetching it."""
    written = _read(journal_path(part))
    return sum(done for done, _ in written.pieces) if written else 0


def _read(path: Path) -> _Written | None:
    """The journal at ``path``; None if there is none that makes sense."""
    try:
        with path.open("rb") as file:
            written = decoding.json(file.read(_MOST_PIECES * 32), _Written)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return written if len(written.pieces) == -(-written.size_bytes // written.piece_bytes) else None


def sync(path: Path) -> None:
    """Have the content of ``path`` on the disk itself. Raises ``OSError``."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
