"""A quick look at the structure of a GGUF file, before native code that aborts on a bad one opens it.

It reads the header and checks that everything the header announces lies inside the file. It does not know whether a
backend supports the architecture, and it keeps neither tokens nor weights. Layout: ``docs/gguf.md`` of the ggml
project. The file is read, not mapped: a mapped file that shrinks, or whose disk fails, ends the process.
"""

import math
import os
import stat
import struct
from pathlib import Path
from typing import BinaryIO, NoReturn, overload

from localinfer.errors import ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models.names import printable
from localinfer.types import Value

_BLOCKS = {  # tensor type: elements per block, bytes per block
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
}  # fmt: skip
_NUMBERS = {  # metadata type
    0: struct.Struct("<B"), 1: struct.Struct("<b"), 2: struct.Struct("<H"), 3: struct.Struct("<h"),
    4: struct.Struct("<I"), 5: struct.Struct("<i"), 6: struct.Struct("<f"), 7: struct.Struct("<?"),
    10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d"),
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_U32, _U64 = _NUMBERS[4], _NUMBERS[10]

# Ten times what the largest models have, and small enough that the worst file is refused within seconds.
_MAX_KEYS = 1 << 16
_MAX_TENSORS = 1 << 17
_MAX_STRINGS = 1 << 23
_MAX_LABEL_BYTES = 1 << 16
_MAX_HEADER_BYTES = 1 << 28
_MAX_LAYERS = 1 << 12
_IMPOSSIBLE_BYTES = 1 << 50
_READ_BYTES = 1 << 21

_WANTED = {
    "general.architecture",
    "general.name",
    "general.alignment",
    "tokenizer.ggml.model",
    "split.no",
    "split.count",
}
_WANTED_OF_ARCHITECTURE = {
    "context_length",
    "block_count",
    "embedding_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
}

_GET_AGAIN = "Fetch the file again."
_WEB_PAGE = "this is a web page, not a model: the download probably went wrong"
_OTHER_FILES = {
    b"<": _WEB_PAGE,
    b"{": _WEB_PAGE,
    b"version https://git-lfs": "this is a pointer to a file in Git LFS, not the file itself",
    b"lmgg": "its format was given up for GGUF in 2023",
    b"tjgg": "its format was given up for GGUF in 2023",
}

PerLayer = int | tuple[int, ...]


class Header(Value, frozen=True):
    """What the header of one GGUF file says. What it does not say is None.

    A head count is one number, or one per layer. ``parameters`` and ``weights_bytes`` are those of the tensors in this
    file. ``context_length`` and ``sliding_window`` are tokens. ``split_no`` counts from 0; parts after the first say
    little, not even the ``architecture``, which is empty then.
    """

    version: int
    architecture: str
    name: str | None
    tensor_count: int
    parameters: int
    context_length: int | None
    block_count: int | None
    embedding_length: int | None
    head_count: PerLayer | None
    head_count_kv: PerLayer | None
    key_length: int | None
    value_length: int | None
    sliding_window: int | None
    has_chat_template: bool
    tokenizer_model: str | None
    split_no: int
    split_count: int
    file_size_bytes: int
    weights_bytes: int


def check(path: Path) -> Header:
    """The header of the GGUF file at ``path``, if the file can be what it says.

    Raises ``ModelNotFound``, ``ModelFileInvalid`` with one line that says what is wrong, ``StorageUnavailable``.
    """
    shown = printable(str(path))
    try:
        # Opening a named pipe would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelFileInvalid(f"{shown} is not a file.", "Name a .gguf file.")
        with path.open("rb") as file:
            return _header(_Reader(file, os.fstat(file.fileno()).st_size, printable(path.name)))
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise ModelNotFound(f"There is no file {shown}.", "Check the path.") from error
    except OSError as error:
        reason = f"{shown} cannot be read: {error.strerror}."
        raise StorageUnavailable(reason, "Check its permissions and the disk.") from error


def _quoted(label: str) -> str:
    return f"“{printable(label, 80)}”"


class _Reader:
    """The bytes of one header, read as far as they are needed; ``pos`` is the next one to interpret."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self.size = size
        self.pos = 0
        self._file = file
        self._name = name
        self._data = bytearray()
        self._strings = 0

    def fail(self, reason: str, hint: str = _GET_AGAIN) -> NoReturn:
        raise ModelFileInvalid(f"{self._name} is not a model that can be loaded: {reason}.", hint)

    def inside(self, end: int) -> None:
        """Fail unless the first ``end`` bytes are inside the file."""
        missing = end - self.size
        if missing > _IMPOSSIBLE_BYTES:
            self.fail("a length in its header is impossible, so the file is damaged")
        if missing > 0:
            self.fail(f"it is incomplete, {missing:,} bytes or more are missing")

    def need(self, end: int) -> None:
        """Have the first ``end`` bytes in memory."""
        if end <= len(self._data):
            return
        self.inside(end)
        if end > _MAX_HEADER_BYTES:
            self.fail(f"its header is longer than {_MAX_HEADER_BYTES:,} bytes")
        self._data += self._file.read(max(end - len(self._data), _READ_BYTES))
        if end > len(self._data):
            self.fail("it became shorter while it was read")

    def peek(self, count: int) -> bytes:
        self.need(min(self.pos + count, self.size))
        return bytes(self._data[self.pos : self.pos + count])

    def number(self, layout: struct.Struct) -> int | float | bool:
        start = self.pos
        self.need(start + layout.size)
        self.pos += layout.size
        value: int | float | bool = layout.unpack_from(self._data, start)[0]
        return value

    def u32(self) -> int:
        return int(self.number(_U32))

    def u64(self) -> int:
        return int(self.number(_U64))

    def string(self) -> str:
        return self._text(self.u64())

    def label(self, what: str) -> str:
        """A text that can only be short."""
        length = self.u64()
        if length > _MAX_LABEL_BYTES:
            self.fail(f"one {what} is {length:,} bytes long")
        return self._text(length)

    def _text(self, length: int) -> str:
        self.need(self.pos + length)
        start, self.pos = self.pos, self.pos + length
        return self._data[start : self.pos].decode("utf-8", "replace")

    def skip(self, kind: int, key: str) -> None:
        """Pass over one value without keeping it."""
        if kind == _STRING:
            self._skip_strings(1)
        elif kind != _ARRAY:
            self._skip_bytes(self.layout(kind, key).size)
        else:
            item, count = self.u32(), self.u64()
            if item == _STRING:
                self._skip_strings(count)
            else:
                self._skip_bytes(count * self.layout(item, key).size)

    def layout(self, kind: int, key: str) -> struct.Struct:
        """How one number of the type ``kind`` lies in the file. Nested arrays, which nothing reads, have none."""
        if kind not in _NUMBERS:
            self.fail(f"its metadata key {_quoted(key)} has an unknown type, {kind}")
        return _NUMBERS[kind]

    def _skip_bytes(self, count: int) -> None:
        self.inside(self.pos + count)
        self.pos += count

    def _skip_strings(self, count: int) -> None:
        self.inside(self.pos + count * _U64.size)
        self._strings += count
        if self._strings > _MAX_STRINGS:
            self.fail(f"its header lists more than {_MAX_STRINGS:,} texts")
        data, pos, unpack = self._data, self.pos, _U64.unpack_from  # the one loop whose speed counts
        for _ in range(count):
            if pos + 8 > len(data):
                self.need(pos + 8)
            pos += 8 + unpack(data, pos)[0]
        self.inside(pos)
        self.pos = pos


def _header(reader: _Reader) -> Header:
    version = _start(reader)
    tensor_count, key_count = reader.u64(), reader.u64()
    if tensor_count > _MAX_TENSORS or key_count > _MAX_KEYS:
        reader.fail(f"it announces {tensor_count:,} tensors and {key_count:,} metadata keys")
    metadata = _metadata(reader, key_count)
    parameters, weights_bytes, end = _tensors(reader, tensor_count)
    if tensor_count:
        alignment = metadata.count("general.alignment", 32)
        if not alignment or alignment & (alignment - 1):
            reader.fail(f"its alignment, {alignment}, is not a power of two")
        reader.inside(-(-reader.pos // alignment) * alignment + end)
    elif metadata.count("split.count", 1) == 1:
        reader.fail("it holds no weights", "Get the file with the weights.")

    split_no = metadata.count("split.no", 0)
    architecture = metadata.text("general.architecture") or ""
    if not architecture and not split_no:
        reader.fail("it does not say what architecture it has")
    return Header(
        version=version,
        architecture=architecture,
        name=metadata.text("general.name"),
        tensor_count=tensor_count,
        parameters=parameters,
        context_length=metadata.count(f"{architecture}.context_length"),
        block_count=metadata.count(f"{architecture}.block_count"),
        embedding_length=metadata.count(f"{architecture}.embedding_length"),
        head_count=metadata.per_layer(f"{architecture}.attention.head_count"),
        head_count_kv=metadata.per_layer(f"{architecture}.attention.head_count_kv"),
        key_length=metadata.count(f"{architecture}.attention.key_length"),
        value_length=metadata.count(f"{architecture}.attention.value_length"),
        sliding_window=metadata.count(f"{architecture}.attention.sliding_window"),
        has_chat_template="tokenizer.chat_template" in metadata.keys,
        tokenizer_model=metadata.text("tokenizer.ggml.model"),
        split_no=split_no,
        split_count=metadata.count("split.count", 1),
        file_size_bytes=reader.size,
        weights_bytes=weights_bytes,
    )


def _start(reader: _Reader) -> int:
    """The version, after the checks that tell other files from GGUF ones."""
    if not reader.size:
        reader.fail("it is empty: the download probably went wrong")
    start = reader.peek(64)
    if not start.startswith(b"GGUF"):
        text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        reason = next((reason for sign, reason in _OTHER_FILES.items() if text.startswith(sign)), None)
        reader.fail(reason or "it is not in the GGUF format", _GET_AGAIN if reason else "Name a .gguf file.")
    reader.pos = 4
    version = reader.u32()
    if version and not version & 0xFFFF:
        reader.fail("it was written for big-endian machines", "Get the little-endian file of this model.")
    if version not in (2, 3):
        age = "too old" if version < 2 else "newer than this localinfer knows"
        reader.fail(f"its GGUF version, {version}, is {age}", "Get a file of GGUF version 3.")
    return version


class _Metadata:
    """The values that are of interest here, and the keys of all."""

    def __init__(self, reader: _Reader) -> None:
        self.keys: set[str] = set()
        self._values: dict[str, str | float | tuple[float, ...]] = {}
        self._reader = reader

    def read(self) -> None:
        """Read one key and its value."""
        reader = self._reader
        key = reader.label("metadata key")
        if key in self.keys:
            reader.fail(f"its metadata key {_quoted(key)} appears twice")
        self.keys.add(key)
        kind = reader.u32()
        if key not in _WANTED and key.partition(".")[2] not in _WANTED_OF_ARCHITECTURE:
            reader.skip(kind, key)
        elif kind == _STRING:
            self._values[key] = reader.string()
        elif kind == _ARRAY:
            layout, count = reader.layout(reader.u32(), key), reader.u64()
            if count > _MAX_LAYERS:
                reader.fail(f"its metadata key {_quoted(key)} has {count:,} values")
            self._values[key] = tuple(reader.number(layout) for _ in range(count))
        else:
            self._values[key] = reader.number(reader.layout(kind, key))

    def text(self, key: str) -> str | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            self._reader.fail(f"its metadata key {_quoted(key)} is not a text")
        return value

    @overload
    def count(self, key: str) -> int | None: ...
    @overload
    def count(self, key: str, default: int) -> int: ...
    def count(self, key: str, default: int | None = None) -> int | None:
        value = self._values.get(key, default)
        return None if value is None else self._counted(key, value)

    def per_layer(self, key: str) -> PerLayer | None:
        value = self._values.get(key)
        if isinstance(value, tuple):
            return tuple(self._counted(key, item) for item in value)
        return self.count(key)

    def _counted(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self._reader.fail(f"its metadata key {_quoted(key)} is not a count")
        return value


def _metadata(reader: _Reader, count: int) -> _Metadata:
    metadata = _Metadata(reader)
    for _ in range(count):
        metadata.read()
    return metadata


def _tensors(reader: _Reader, count: int) -> tuple[int, int, int]:
    """Elements and bytes of all tensors, and where the last one ends, counted from the start of the tensor data."""
    elements = weights_bytes = end = 0
    names: set[str] = set()
    for _ in range(count):
        name = reader.label("tensor name")
        what = f"its tensor {_quoted(name)}"
        if name in names:
            reader.fail(f"{what} appears twice")
        names.add(name)
        rank = reader.u32()
        if not 1 <= rank <= 4:
            reader.fail(f"{what} has {rank} dimensions")
        shape = [reader.u64() for _ in range(rank)]
        kind, offset = reader.u32(), reader.u64()
        if kind not in _BLOCKS:
            hint = "Get another quantization of this model, or a newer localinfer."
            reader.fail(f"{what} has the type {kind}, which this localinfer does not know", hint)
        block, block_bytes = _BLOCKS[kind]
        size = math.prod(shape)
        if not size or size >= 1 << 63 or shape[0] % block:
            reader.fail(f"{what} has an impossible shape")
        elements += size
        weights_bytes += size // block * block_bytes
        end = max(end, offset + size // block * block_bytes)
    return elements, weights_bytes, end
