"""How many bytes each tensor of a safetensors file takes, from the header of the file, which may be hostile.

Layout: 8 bytes of length, then JSON, then the data. It knows no model.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from localinfer import decoding
from localinfer.errors import ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models.gguf import LocalFile, Source
from localinfer.models.names import printable

_LENGTH_BYTES = 8
_LONGEST_BYTES = 1 << 25
_FIRST_READ_BYTES = 1_000_000
_MOST_TENSORS = 1 << 18
_METADATA = "__metadata__"
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class _Entry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def folder_sizes(folder: Path) -> dict[str, int]:
    """Bytes of every tensor in the ``model*.safetensors`` files of ``folder``, by name.

    Raises ``ModelNotFound``, ``ModelFileInvalid``, ``StorageUnavailable``.
    """
    sizes: dict[str, int] = {}
    try:
        paths = sorted(path for path in folder.glob("model*.safetensors") if path.is_file())
        if not paths:
            raise ModelNotFound(f"There is no model in the folder {printable(str(folder))}.", "Check the path.")
        for path in paths:
            with path.open("rb") as file:
                for name, size in tensor_sizes(LocalFile(file, path.name)).items():
                    sizes[name] = sizes.get(name, 0) + size
    except OSError as error:
        raise StorageUnavailable(
            f"{printable(str(folder))} cannot be read: {error.strerror}.", "Check its permissions and the disk."
        ) from error
    return sizes


def tensor_sizes(source: Source) -> dict[str, int]:
    """Bytes of every tensor of one file, by name; read in one or two pieces.

    Raises ``ModelFileInvalid``, and whatever the source raises.
    """
    start = source.read(0, min(_FIRST_READ_BYTES, source.size_bytes))
    if len(start) < _LENGTH_BYTES:
        _fail(source, "it is not in the safetensors format")
    length = int.from_bytes(start[:_LENGTH_BYTES], "little")
    end = _LENGTH_BYTES + length
    if length > _LONGEST_BYTES or end > source.size_bytes:
        _fail(source, f"its header would be {length:,} bytes long")
    if end > len(start):
        start += source.read(len(start), end - len(start))
    try:
        entries = msgspec.json.decode(start[_LENGTH_BYTES:end], type=dict[str, msgspec.Raw])
        if len(entries) > _MOST_TENSORS:
            _fail(source, f"it announces {len(entries):,} tensors")
        tensors = {name: decoding.json(bytes(entry), _Entry) for name, entry in entries.items() if name != _METADATA}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        _fail(source, "its header is not what a safetensors file has")
    _check(source, tensors, source.size_bytes - end)
    return {name: entry.data_offsets[1] - entry.data_offsets[0] for name, entry in tensors.items()}


def _check(source: Source, tensors: Mapping[str, _Entry], data_bytes: int) -> None:
    """The tensors lie one after another, each as long as its shape says, and end where the file ends."""
    place = 0
    for name, entry in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        if begin != place or end < begin:
            _fail(source, f"its tensor “{printable(name, 80)}” lies where another is, or nothing")
        bits = _BITS.get(entry.dtype)
        if any(size < 0 for size in entry.shape) or (
            bits is not None and math.prod(entry.shape) * bits != (end - begin) * 8
        ):
            _fail(source, f"its tensor “{printable(name, 80)}” is not as long as its shape says")
        place = end
    if place > data_bytes:
        _fail(source, f"it is incomplete, {place - data_bytes:,} bytes are missing")
    if place < data_bytes:
        _fail(source, f"{data_bytes - place:,} bytes of it belong to nothing")


def _fail(source: Source, reason: str) -> NoReturn:
    raise ModelFileInvalid(
        f"{printable(source.name, 300)} is not a model that can be loaded: {reason}.", "Fetch the file again."
    )
