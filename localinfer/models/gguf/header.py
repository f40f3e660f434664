"""What the header of one GGUF file says, if everything it announces can be true of that file.

It does not know whether a backend supports the architecture, nor what the keys of an architecture mean for memory.
"""

import contextlib
import math
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import overload

from localinfer.errors import ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models.gguf.quants import TYPES
from localinfer.models.gguf.reader import ARRAY, GET_AGAIN, NUMBERS, STRING, LocalFile, Reader, Source
from localinfer.models.names import printable
from localinfer.types import Value

LONGEST_LOCAL_BYTES = 1 << 28
LONGEST_REMOTE_BYTES = 50_000_000

_MAX_KEYS = 1 << 16
_MAX_TENSORS = 1 << 17
_MAX_KEY_BYTES = 1 << 16
_MAX_NAME_BYTES = 1 << 10
_MAX_TEXT_BYTES = 1 << 20
_MAX_LAYERS = 1 << 12  # numbers in an array that is about layers

_WEB_PAGE = "this is a web page, not a model: the download probably went wrong"
_OTHER_FILES = {
    b"<": _WEB_PAGE,
    b"{": _WEB_PAGE,
    b"version https://git-lfs": "this is a pointer to a file in Git LFS, not the file itself",
    b"lmgg": "its format was given up for GGUF in 2023",
    b"tjgg": "its format was given up for GGUF in 2023",
}

Number = int | float | bool
PerLayer = int | tuple[int, ...]


class Tensor(Value, frozen=True):
    """One tensor: ``shape`` fastest dimension first, ``type`` as in Q4_K, ``size_bytes`` without padding."""

    name: str
    shape: tuple[int, ...]
    type: str
    size_bytes: int


class Header(Value, frozen=True):
    """What the header of one GGUF file says. What it does not say is None.

    A head count is one number, or one per layer. ``parameters`` and ``weights_bytes`` are those of the tensors in this
    file. ``context_length`` and ``sliding_window`` are tokens. ``split_no`` counts from 0; parts after the first say
    little, not even the ``architecture``, which is empty then. ``header_bytes`` is where the tensor data starts: with
    that many bytes, and its length, the file can be sized.

    ``metadata`` has every number and text, and arrays of up to 4,096 numbers. Of what is longer, and of lists of texts,
    only the length is known: ``counts``, elements of an array, bytes of a text.
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
    header_bytes: int
    metadata: dict[str, str | int | float | bool | tuple[Number, ...]]
    counts: dict[str, int]
    tensors: tuple[Tensor, ...]


def check(path: Path) -> Header:
    """The header of the GGUF file at ``path``, if the file can be what it says.

    Raises ``ModelNotFound``, ``ModelFileInvalid`` with one line that says what is wrong, ``StorageUnavailable``.
    """
    with opened(path) as source:
        return read(source, longest_bytes=LONGEST_LOCAL_BYTES)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[LocalFile]:
    """The file at ``path``. Raises ``ModelNotFound``, ``ModelFileInvalid`` where it is no file, ``StorageUnavailable``,
    the last also for what goes wrong while it is read."""
    shown = printable(str(path))
    try:
        # Opening a named pipe would wait for its writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelFileInvalid(f"{shown} is not a file.", "Name a .gguf file.")
        with path.open("rb") as file:
            yield LocalFile(file, path.name)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise ModelNotFound(f"There is no file {shown}.", "Check the path.") from error
    except OSError as error:
        reason = f"{shown} cannot be read: {error.strerror}."
        raise StorageUnavailable(reason, "Check its permissions and the disk.") from error


def read(source: Source, *, longest_bytes: int = LONGEST_REMOTE_BYTES) -> Header:
    """The header of ``source``, of which at most the first ``longest_bytes`` are read, in few pieces.

    Raises ``ModelFileInvalid``, and whatever the source raises.
    """
    reader = Reader(source, longest_bytes)
    version, tensor_count, metadata = read_metadata(reader)
    tensors, end = _tensors(reader, tensor_count)

    alignment = metadata.count("general.alignment", 32)
    if not alignment or alignment & (alignment - 1):
        reader.fail(f"its alignment, {alignment}, is not a power of two")
    start = _aligned(reader.pos, alignment)
    split_no, split_count = metadata.count("split.no", 0), metadata.count("split.count", 1)
    if tensors:
        reader.inside(start + end)
    elif split_count == 1:
        reader.fail("it holds no weights", "Get the file with the weights.")
    if split_count > 1 and reader.beyond(_aligned(start + end, alignment), 4) == b"GGUF":
        reader.fail(
            f"the {split_count} parts of a split model were put together with cat, which gives no GGUF file",
            "Fetch the parts and name the first one, or merge them with llama-gguf-split.",
        )
    architecture = metadata.text("general.architecture") or ""
    if not architecture and not split_no:
        reader.fail("it does not say what architecture it has")
    return Header(
        version=version,
        architecture=architecture,
        name=metadata.text("general.name"),
        tensor_count=tensor_count,
        parameters=sum(math.prod(tensor.shape) for tensor in tensors),
        context_length=metadata.count(f"{architecture}.context_length"),
        block_count=metadata.count(f"{architecture}.block_count"),
        embedding_length=metadata.count(f"{architecture}.embedding_length"),
        head_count=metadata.per_layer(f"{architecture}.attention.head_count"),
        head_count_kv=metadata.per_layer(f"{architecture}.attention.head_count_kv"),
        key_length=metadata.count(f"{architecture}.attention.key_length"),
        value_length=metadata.count(f"{architecture}.attention.value_length"),
        sliding_window=metadata.count(f"{architecture}.attention.sliding_window"),
        has_chat_template="tokenizer.chat_template" in metadata,
        tokenizer_model=metadata.text("tokenizer.ggml.model"),
        split_no=split_no,
        split_count=split_count,
        file_size_bytes=reader.size,
        weights_bytes=sum(tensor.size_bytes for tensor in tensors),
        header_bytes=min(start, reader.size),
        metadata=metadata.values,
        counts=metadata.counts,
        tensors=tensors,
    )


def read_metadata(reader: Reader) -> "tuple[int, int, Metadata]":
    """The version, how many tensors follow, and the keys. Raises as ``read``."""
    version = _start(reader)
    tensor_count, key_count = reader.u64(), reader.u64()
    if tensor_count > _MAX_TENSORS or key_count > _MAX_KEYS:
        reader.fail(f"it announces {tensor_count:,} tensors and {key_count:,} metadata keys")
    metadata = Metadata(reader)
    for _ in range(key_count):
        metadata.read()
    return version, tensor_count, metadata


def quoted(label: str) -> str:
    """A name from inside a file, as it is shown."""
    return f"“{printable(label, 80)}”"


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _start(reader: Reader) -> int:
    """The version, after the checks that tell other files from GGUF ones."""
    if not reader.size:
        reader.fail("it is empty: the download probably went wrong")
    start = reader.peek(64)
    if not start.startswith(b"GGUF"):
        text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        reason = next((reason for sign, reason in _OTHER_FILES.items() if text.startswith(sign)), None)
        reader.fail(reason or "it is not in the GGUF format", GET_AGAIN if reason else "Name a .gguf file.")
    reader.pos = 4
    version = reader.u32()
    if version and not version & 0xFFFF:
        reader.fail("it was written for big-endian machines", "Get the little-endian file of this model.")
    if version not in (2, 3):
        age = "too old" if version < 2 else "newer than this localinfer knows"
        reader.fail(f"its GGUF version, {version}, is {age}", "Get a file of GGUF version 3.")
    return version


class Metadata:
    """The keys read so far, and what can be asked of them. ``places`` is where the elements of each array lie, from
    and to."""

    def __init__(self, reader: Reader) -> None:
        self.values: dict[str, str | Number | tuple[Number, ...]] = {}
        self.counts: dict[str, int] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self._reader = reader

    def __contains__(self, key: str) -> bool:
        return key in self.values or key in self.counts

    def read(self) -> None:
        """Read one key and its value."""
        reader = self._reader
        key = reader.label("metadata key", _MAX_KEY_BYTES)
        if key in self:
            reader.fail(f"its metadata key {quoted(key)} appears twice")
        kind = reader.u32()
        if kind == ARRAY:
            self._read_array(key)
        elif kind != STRING:
            self.values[key] = reader.number(NUMBERS[self._known(kind, key)])
        elif (length := reader.u64()) > _MAX_TEXT_BYTES:
            reader.skip(length)
            self.counts[key] = length
        else:
            self.values[key] = reader.text(length)

    def _read_array(self, key: str) -> None:
        reader = self._reader
        kind, count = reader.u32(), reader.u64()
        start = reader.pos
        if kind == STRING:
            reader.skip_texts(count)
            self.counts[key] = count
        else:
            layout = NUMBERS[self._known(kind, key)]
            if count <= _MAX_LAYERS:
                self.values[key] = reader.numbers(layout, count)
            else:
                reader.skip(count * layout.size)
                self.counts[key] = count
        self.places[key] = (start, reader.pos)

    def _known(self, kind: int, key: str) -> int:
        """``kind`` if it is the type of a number: arrays in arrays, which nothing uses, are refused too."""
        if kind not in NUMBERS:
            self._reader.fail(f"its metadata key {quoted(key)} has an unknown type, {kind}")
        return kind

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            self._reader.fail(f"its metadata key {quoted(key)} is not a text")
        return value

    @overload
    def count(self, key: str) -> int | None: ...
    @overload
    def count(self, key: str, default: int) -> int: ...
    def count(self, key: str, default: int | None = None) -> int | None:
        value = self.values.get(key, default)
        return None if value is None else self._counted(key, value)

    def per_layer(self, key: str) -> PerLayer | None:
        if (count := self.counts.get(key)) is not None:
            self._reader.fail(f"its metadata key {quoted(key)} has {count:,} values")
        value = self.values.get(key)
        if isinstance(value, tuple):
            return tuple(self._counted(key, item) for item in value)
        return self.count(key)

    def _counted(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self._reader.fail(f"its metadata key {quoted(key)} is not a count")
        return value


def _tensors(reader: Reader, count: int) -> tuple[tuple[Tensor, ...], int]:
    """All tensors, and where the last one ends, counted from the start of the tensor data."""
    tensors: dict[str, Tensor] = {}
    end = 0
    for _ in range(count):
        name = reader.label("tensor name", _MAX_NAME_BYTES)
        what = f"its tensor {quoted(name)}"
        if name in tensors:
            reader.fail(f"{what} appears twice")
        rank = reader.u32()
        if not 1 <= rank <= 4:
            reader.fail(f"{what} has {rank} dimensions")
        shape = tuple(reader.u64() for _ in range(rank))
        kind, offset = reader.u32(), reader.u64()
        if kind not in TYPES:
            hint = "Get another quantization of this model, or a newer localinfer."
            reader.fail(f"{what} has the type {kind}, which this localinfer does not know", hint)
        type_, elements = TYPES[kind], math.prod(shape)
        if not elements or elements >= 1 << 63 or shape[0] % type_.block:
            reader.fail(f"{what} has an impossible shape")
        tensors[name] = Tensor(name=name, shape=shape, type=type_.name, size_bytes=type_.size_bytes(elements))
        end = max(end, offset + tensors[name].size_bytes)
    return tuple(tensors.values()), end
