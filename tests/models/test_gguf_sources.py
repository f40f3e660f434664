"""Headers of files that are far away: few pieces, never more than a header can be, all the same findings."""

import contextlib
import itertools
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import ModelFileInvalid
from localinfer.models import gguf
from tests.models.gguf_files import ARRAY, LLAMA, STRING, U64, file, pair, text, write

HUGE = 1 << 62


class Far:
    """A file somewhere else: ``data`` and then zeros up to ``size_bytes``. It remembers what was asked for."""

    name = "far.gguf"

    def __init__(self, data: bytes, size_bytes: int | None = None) -> None:
        self.data = data
        self.size_bytes = size_bytes or len(data)
        self.asked: list[tuple[int, int]] = []

    def read(self, offset: int, count: int) -> bytes:
        assert 0 <= offset < offset + count <= self.size_bytes
        self.asked.append((offset, count))
        return self.data[offset : offset + count].ljust(count, b"\0")

    @property
    def fetched_bytes(self) -> int:
        return sum(count for _, count in self.asked)


def vocabulary(size_bytes: int) -> bytes:
    """A file whose header is a list of tokens of so many bytes."""
    count = size_bytes // 16
    return file(
        [LLAMA, pair("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, count) + text("12345678") * count)]
    )


def test_says_what_the_local_file_says(tmp_path: Path) -> None:
    path = write(tmp_path / Far.name)
    assert gguf.read(Far(path.read_bytes())) == gguf.check(path)


@pytest.mark.parametrize(
    ("header_bytes", "reads", "fetched"),
    [(100, 1, 2_000_000), (1_900_000, 1, 2_000_000), (5_900_000, 2, 6_000_000), (11_900_000, 3, 12_000_000)],
)
def test_three_pieces_are_enough_for_any_model(header_bytes: int, reads: int, fetched: int) -> None:
    source = Far(vocabulary(header_bytes), 5_000_000_000)
    assert gguf.read(source).counts["tokenizer.ggml.tokens"] == header_bytes // 16
    assert len(source.asked) == reads
    assert source.fetched_bytes == fetched


def test_pieces_do_not_overlap() -> None:
    source = Far(vocabulary(30_000_000), 5_000_000_000)
    gguf.read(source)
    assert source.asked[0][0] == 0
    assert all(left[0] + left[1] == right[0] for left, right in itertools.pairwise(source.asked))


def test_no_header_is_longer_than_fifty_megabytes() -> None:
    source = Far(vocabulary(49_000_000), 5_000_000_000)
    assert gguf.read(source).tensor_count == 1
    longer = Far(vocabulary(51_000_000), 5_000_000_000)
    with pytest.raises(ModelFileInvalid, match="longer than 50,000,000 bytes"):
        gguf.read(longer)
    assert longer.fetched_bytes <= 50_000_000


@pytest.mark.parametrize(
    "content",
    [
        file([], count=HUGE),
        file([], keys=HUGE),
        file([pair("x", STRING, struct.pack("<Q", 60_000_000))]),
        file([pair("x", ARRAY, struct.pack("<IQ", STRING, 7_000_000))]),
        file([pair("x", ARRAY, struct.pack("<IQ", U64, 7_000_000))]),
        file([pair("x", STRING, struct.pack("<Q", HUGE))]),
        b"<html>",
    ],
)
def test_what_is_hostile_is_known_after_one_piece(content: bytes) -> None:
    source = Far(content, 5_000_000_000)
    with pytest.raises(ModelFileInvalid, match=r"^far\.gguf is not a model"):
        gguf.read(source)
    assert source.asked == [(0, 2_000_000)]


def test_a_file_that_ends_before_it_should() -> None:
    class Short(Far):
        def read(self, offset: int, count: int) -> bytes:
            return super().read(offset, count)[:1000]

    with pytest.raises(ModelFileInvalid, match="became shorter"):
        gguf.read(Short(file([LLAMA, pair("general.name", STRING, text("x" * 2000))])))


def test_names_from_outside_are_printable() -> None:
    class Evil(Far):
        name = "\x1b]0;title\x07.gguf"

    with pytest.raises(ModelFileInvalid) as caught:
        gguf.read(Evil(b"nothing"))
    assert caught.value.message.isprintable()


@given(content=st.binary(max_size=400), size_bytes=st.integers(400, 10**12), keys=st.integers(0, 4))
def test_any_bytes(content: bytes, size_bytes: int, keys: int) -> None:
    source = Far(b"GGUF" + struct.pack("<IQQ", 3, 1, keys) + content, size_bytes + 24)
    with contextlib.suppress(ModelFileInvalid):
        gguf.read(source)
    assert source.fetched_bytes <= 50_000_004
