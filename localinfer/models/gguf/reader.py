"""The bytes of one GGUF header, fetched in few growing pieces, and the numbers and texts they stand for.

It does not know what any key means. However the bytes lie, it reads no more than ``longest_bytes``, keeps no more than
``_MAX_KEPT_BYTES``, and refuses what it can before it fetches more. Layout: ``docs/gguf.md`` of the ggml project.
"""

import os
import struct
from typing import BinaryIO, NoReturn, Protocol

from localinfer.errors import ModelFileInvalid
from localinfer.models.names import printable

NUMBERS = {  # metadata type
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"), 3: struct.Struct("<h"),
    4: struct.Struct("<I"), 5: struct.Struct("<i"), 6: struct.Struct("<f"), 7: struct.Struct("<?"),
    10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
STRING, ARRAY = 8, 9
_U32, _U64 = NUMBERS[4], NUMBERS[10]

# Ten times what the largest models have, and small enough that the worst file is refused within seconds.
_MAX_STRINGS = 1 << 23
_MAX_KEPT_BYTES = 1 << 24
_IMPOSSIBLE_BYTES = 1 << 50
# A server is asked twice for the header of most models, three times for the longest.
_PIECES = (2_000_000, 4_000_000, 6_000_000)
_LATER_PIECE = 12_000_000

GET_AGAIN = "Fetch the file again."


class Source(Protocol):
    """A file of ``size_bytes`` of which pieces can be had. ``name`` is what a person calls it."""

    @property
    def name(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    def read(self, offset: int, count: int) -> bytes:
        """The ``count`` bytes from ``offset`` on, all of them inside the file."""


class LocalFile:
    """An open file on this machine. It is read, not mapped: a mapped file that shrinks ends the process."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name
        self.size_bytes = os.fstat(file.fileno()).st_size

    def read(self, offset: int, count: int) -> bytes:
        """The ``count`` bytes from ``offset`` on, fewer if the file has become shorter. Raises ``OSError``."""
        self._file.seek(offset)
        return self._file.read(count)


class Start:
    """The first bytes of a file, as if they were all of it: enough for what its header says first."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self.name = name
        self.size_bytes = len(data)

    def read(self, offset: int, count: int) -> bytes:
        """The ``count`` bytes from ``offset`` on."""
        return self._data[offset : offset + count]


class Reader:
    """The bytes of one header, had as far as they are needed; ``pos`` is the next one to interpret."""

    def __init__(self, source: Source, longest_bytes: int) -> None:
        self.size = source.size_bytes
        self.pos = 0
        self._source = source
        self._longest = longest_bytes
        self._data = bytearray()
        self._pieces = iter(_PIECES)
        self._strings = 0
        self._kept = 0

    def fail(self, reason: str, hint: str = GET_AGAIN) -> NoReturn:
        """Refuse the file."""
        name = printable(self._source.name, 300)
        raise ModelFileInvalid(f"{name} is not a model that can be loaded: {reason}.", hint)

    def inside(self, end: int) -> None:
        """Fail unless the first ``end`` bytes are inside the file."""
        missing = end - self.size
        if missing > _IMPOSSIBLE_BYTES:
            self.fail("a length in its header is impossible, so the file is damaged")
        if missing > 0:
            self.fail(f"it is incomplete, {missing:,} bytes or more are missing")

    def within(self, end: int) -> None:
        """Fail unless the first ``end`` bytes can be a header."""
        self.inside(end)
        if end > self._longest:
            self.fail(f"its header is longer than {self._longest:,} bytes")

    def need(self, end: int) -> None:
        """Have the first ``end`` bytes in memory."""
        if end <= len(self._data):
            return
        self.within(end)
        begin = len(self._data)
        count = max(end - begin, next(self._pieces, _LATER_PIECE))
        self._data += self._source.read(begin, min(count, self._longest - begin, self.size - begin))
        if end > len(self._data):
            self.fail("it became shorter while it was read")

    def beyond(self, offset: int, count: int) -> bytes:
        """The ``count`` bytes from ``offset`` on, which may lie far behind the header; fewer at the end of the file."""
        count = min(count, self.size - offset)
        return self._source.read(offset, count) if count > 0 else b""

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end of the file."""
        self.need(min(self.pos + count, self.size))
        return bytes(self._data[self.pos : self.pos + count])

    def piece(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``, which were passed over."""
        self.need(end)
        return bytes(self._data[start:end])

    def number(self, layout: struct.Struct) -> int | float | bool:
        """The next number."""
        start = self.pos
        self.need(start + layout.size)
        self.pos += layout.size
        value: int | float | bool = layout.unpack_from(self._data, start)[0]
        return value

    def numbers(self, layout: struct.Struct, count: int) -> tuple[int | float | bool, ...]:
        """The next ``count`` numbers, kept."""
        start, size = self.pos, count * layout.size
        self.within(start + size)
        self._keep(count * _U64.size)
        self.need(start + size)
        self.pos += size
        return struct.unpack_from(f"<{count}{layout.format[1:]}", self._data, start)

    def u32(self) -> int:
        return int(self.number(_U32))

    def u64(self) -> int:
        return int(self.number(_U64))

    def text(self, length: int) -> str:
        """The next ``length`` bytes as a text, kept. Bytes that are no text become U+FFFD."""
        self.within(self.pos + length)
        self._keep(length)
        self.need(self.pos + length)
        start, self.pos = self.pos, self.pos + length
        return self._data[start : self.pos].decode("utf-8", "replace")

    def label(self, what: str, longest_bytes: int) -> str:
        """A text that can only be short."""
        length = self.u64()
        if length > longest_bytes:
            self.fail(f"one {what} is {length:,} bytes long")
        return self.text(length)

    def skip(self, count: int) -> None:
        """Pass over ``count`` bytes."""
        self.within(self.pos + count)
        self.pos += count

    def skip_texts(self, count: int) -> None:
        """Pass over ``count`` texts without keeping them."""
        self.within(self.pos + count * _U64.size)
        self._strings += count
        if self._strings > _MAX_STRINGS:
            self.fail(f"its header lists more than {_MAX_STRINGS:,} texts")
        data, pos, unpack = self._data, self.pos, _U64.unpack_from  # the one loop whose speed counts
        for _ in range(count):
            if pos + 8 > len(data):
                self.need(pos + 8)
            pos += 8 + unpack(data, pos)[0]
        self.within(pos)
        self.pos = pos

    def _keep(self, count: int) -> None:
        self._kept += count
        if self._kept > _MAX_KEPT_BYTES:
            self.fail(f"its header holds more than {_MAX_KEPT_BYTES:,} bytes of names, texts and numbers")
