"""Sizes of tensors in safetensors files, and files that are none."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import ModelFileInvalid, ModelNotFound
from localinfer.models.safetensors import folder_sizes, tensor_sizes


class Bytes:
    """A file in memory, of which it is known how much was asked for."""

    name = "model.safetensors"

    def __init__(self, data: bytes, size_bytes: int | None = None) -> None:
        self.data = data
        self.size_bytes = len(data) if size_bytes is None else size_bytes
        self.asked_bytes = 0

    def read(self, offset: int, count: int) -> bytes:
        assert offset + count <= self.size_bytes
        self.asked_bytes += count
        return self.data[offset : offset + count].ljust(count, b" ")


def entry(begin: int, end: int, dtype: str = "U8", shape: list[Any] | None = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


def file(header: object, data_bytes: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data_bytes)


def test_the_size_of_each_tensor() -> None:
    header = {
        "__metadata__": {"format": "mlx"},
        "b": entry(8, 24, "BF16", [2, 4]),
        "a": entry(0, 8, "U32", [2]),
        "c": entry(24, 24, "F32", [0]),
        "d": entry(24, 25, "NEW9"),
    }
    assert tensor_sizes(Bytes(file(header, 25))) == {"b": 16, "a": 8, "c": 0, "d": 1}


def test_a_long_header_is_read_in_two_pieces() -> None:
    header = {f"model.layers.{number}.mlp.down_proj.weight": entry(number, number + 1) for number in range(30_000)}
    data = file(header, 30_000)
    source = Bytes(data)
    assert len(tensor_sizes(source)) == 30_000
    assert source.asked_bytes == len(data) - 30_000


def test_a_folder_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(file({"a": entry(0, 5)}, 5))
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(file({"b": entry(0, 6)}, 6))
    (tmp_path / "adapters.safetensors").write_bytes(b"not looked at")
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert folder_sizes(tmp_path) == {"a": 5, "b": 6}


def test_a_folder_without_any(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ModelNotFound, match="no model in the folder"):
            folder_sizes(folder)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not in the safetensors format"),
        (b"1234567", "not in the safetensors format"),
        (b"GGUF\3\0\0\0" + bytes(100), "header would be"),
        ((1 << 62).to_bytes(8, "little"), "header would be 4,611,686,018,427,387,904 bytes long"),
        (file({"a": entry(0, 5)}, 4), "1 bytes are missing"),
        (file({"a": entry(0, 5)}, 6), "1 bytes of it belong to nothing"),
        (file({"a": entry(1, 5)}, 5), "lies where another is, or nothing"),
        (file({"a": entry(0, 5), "b": entry(4, 6)}, 6), "lies where another is, or nothing"),
        (file({"a": entry(0, 4, "F32", [2])}, 4), "is not as long as its shape says"),
        (file({"a": entry(0, 4, "F32", [-1])}, 4), "is not as long as its shape says"),
        (file({"a": entry(0, 4, "F32", [1 << 60] * 60)}, 4), "is not as long as its shape says"),
        (file({"a": entry(5, 0, "NEW", [])}, 5), "lies where another is, or nothing"),
        (file({"\x1b[2J": entry(1, 2)}, 2), r"“\\x1b\[2J”"),
        (file({"a": {"dtype": "F32", "shape": [1]}}, 4), "not what a safetensors file has"),
        (file({"a": entry(0, 4, "F32", ["x"])}, 4), "not what a safetensors file has"),
        (file([], 0), "not what a safetensors file has"),
        (file(b"{" * 1000, 0), "not what a safetensors file has"),
        (file(b'{"a":' + b"[" * 100_000, 0), "not what a safetensors file has"),
        (file(b"\xff\xfe{}", 0), "not what a safetensors file has"),
        (file(b"", 0), "not what a safetensors file has"),
    ],
)
def test_refused_with_the_reason(content: bytes, said: str) -> None:
    with pytest.raises(ModelFileInvalid, match=said) as caught:
        tensor_sizes(Bytes(content))
    assert caught.value.message.isprintable()
    assert caught.value.hint


def test_a_header_that_is_too_long_is_not_read() -> None:
    source = Bytes((1 << 26).to_bytes(8, "little"), 1 << 40)
    with pytest.raises(ModelFileInvalid, match="67,108,864 bytes long"):
        tensor_sizes(source)
    assert source.asked_bytes <= 1_000_000


@given(header=st.binary(max_size=200), data_bytes=st.integers(0, 100))
def test_any_bytes(header: bytes, data_bytes: int) -> None:
    try:
        sizes = tensor_sizes(Bytes(file(header, data_bytes)))
    except ModelFileInvalid:
        return
    assert sum(sizes.values()) == data_bytes


@given(data=st.data())
def test_any_flipped_bytes(data: st.DataObject) -> None:
    whole = bytearray(file({"__metadata__": {"a": "b"}, "a": entry(0, 8, "F32", [2]), "b": entry(8, 9)}, 9))
    for place, value in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=6)):
        whole[place] = value
    try:
        sizes = tensor_sizes(Bytes(bytes(whole)))
    except ModelFileInvalid:
        return
    assert np.all(np.array(list(sizes.values())) >= 0)
