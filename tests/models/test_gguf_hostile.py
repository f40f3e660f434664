"""Files that were cut, damaged or made to do harm: refused with a reason, in time, whatever they say."""

import os
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import LocalInferError, ModelFileInvalid
from localinfer.models.gguf import Header, check
from tests.models.gguf_files import ARRAY, LLAMA, STRING, U8, U32, U64, file, pair, tensor, text, write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "model.gguf")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for properties to write to."""
    return tmp_path_factory.mktemp("scratch") / "x.gguf"


class TestTruncated:
    def test_at_every_kilobyte_of_the_header(self, model: Path, tmp_path: Path) -> None:
        data = model.read_bytes()
        header = len(data) - check(model).weights_bytes
        path = tmp_path / "x.gguf"
        for size in range(24, header, 1024):
            path.write_bytes(data[:size])
            with pytest.raises(ModelFileInvalid, match="bytes or more are missing"):
                check(path)

    def test_says_how_much_of_the_weights_is_missing(self, model: Path, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(model.read_bytes()[:-70_000])
        with pytest.raises(ModelFileInvalid, match="70,000 bytes or more are missing"):
            check(path)

    @given(data=st.data())
    def test_anywhere(self, model: Path, scratch: Path, data: st.DataObject) -> None:
        whole = model.read_bytes()
        scratch.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        with pytest.raises(ModelFileInvalid):
            check(scratch)

    def test_43_bytes(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes((b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text("a") + bytes(10))[:43].ljust(43, b"\xff"))
        start = time.perf_counter()
        with pytest.raises(ModelFileInvalid):
            check(path)
        assert time.perf_counter() - start < 1


HUGE = 1 << 62


class TestDamaged:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (file([], count=HUGE), "announces 4,611,686,018,427,387,904 tensors"),
            (file([], keys=HUGE), "4,611,686,018,427,387,904 metadata keys"),
            (file([LLAMA], count=2), "has 0 dimensions"),
            (file([LLAMA], keys=2), "has 0 dimensions"),
            (file([struct.pack("<Q", HUGE)]), "one metadata key is 4,611,686,018,427,387,904 bytes long"),
            (file([struct.pack("<Q", 1 << 20) + bytes(1 << 20)]), "one metadata key is 1,048,576 bytes long"),
            (file([pair("x", STRING, struct.pack("<Q", HUGE))]), "length in its header is impossible"),
            (file([pair("general.name", STRING, struct.pack("<Q", HUGE))]), "length in its header is impossible"),
            (file([pair("x", STRING, struct.pack("<Q", 1000))]), "missing"),
            (file([pair("x", ARRAY, struct.pack("<IQ", STRING, HUGE))]), "length in its header is impossible"),
            (file([pair("x", ARRAY, struct.pack("<IQ", STRING, 1000))]), "missing"),
            (file([pair("x", ARRAY, struct.pack("<IQ", U64, HUGE))]), "length in its header is impossible"),
            (file([pair("x", ARRAY, struct.pack("<IQ", ARRAY, 1) * 90)]), "unknown type, 9"),
            (file([pair("x", ARRAY, struct.pack("<IQ", 99, 1))]), "unknown type, 99"),
            (file([pair("x", 13, bytes(8))]), "unknown type, 13"),
            (
                file([pair("llama.attention.head_count", ARRAY, struct.pack("<IQ", U8, 5000) + bytes(5000)), LLAMA]),
                "5,000 values",
            ),
            (file([pair("x", ARRAY, struct.pack("<IQ", U64, 4096) + bytes(1 << 15))] * 2), "appears twice"),
            (file([pair(f"x{n}", STRING, text(bytes(1 << 20))) for n in range(17)]), "more than 16,777,216 bytes of"),
            (file([pair("general.alignment", U32, struct.pack("<I", 0)), LLAMA]), "not a power of two"),
            (file([LLAMA], [text("n" * 1025)]), "one tensor name is 1,025 bytes long"),
            (file([LLAMA, LLAMA]), "“general.architecture” appears twice"),
            (file([pair("general.architecture", U32, bytes(4))]), "is not a text"),
            (file([pair("general.architecture", STRING, text(""))]), "what architecture it has"),
            (file([]), "what architecture it has"),
            (file([LLAMA, pair("llama.block_count", STRING, text("many"))]), "is not a count"),
            (file([LLAMA, pair("llama.block_count", 5, struct.pack("<i", -1))]), "is not a count"),
            (file([LLAMA, pair("llama.block_count", 6, struct.pack("<f", 1.5))]), "is not a count"),
            (file([LLAMA, pair("general.alignment", U32, struct.pack("<I", 0))]), "not a power of two"),
            (file([LLAMA, pair("general.alignment", U32, struct.pack("<I", 48))]), "not a power of two"),
            (file([LLAMA], []), "holds no weights"),
            (file([LLAMA], [tensor(), tensor()]), "“t” appears twice"),
            (file([LLAMA], [tensor(shape=())]), "has 0 dimensions"),
            (file([LLAMA], [tensor(shape=(1,) * 5)]), "has 5 dimensions"),
            (file([LLAMA], [tensor(shape=(0,))]), "impossible shape"),
            (file([LLAMA], [tensor(shape=(1 << 32, 1 << 32))]), "impossible shape"),
            (file([LLAMA], [tensor(shape=(33,), kind=2)]), "impossible shape"),
            (file([LLAMA], [tensor(shape=(9,))]), "4 bytes or more are missing"),
            (file([LLAMA], [tensor(offset=32)]), "32 bytes or more are missing"),
            (file([LLAMA], [tensor(offset=HUGE)]), "length in its header is impossible"),
            (file([LLAMA], [tensor(kind=31)]), "has the type 31"),
            (file([LLAMA], [tensor("\x1b[2J", kind=31)]), r"“\\x1b\[2J”"),
        ],
    )
    def test_refused_with_the_reason(self, tmp_path: Path, content: bytes, said: str) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(content)
        with pytest.raises(ModelFileInvalid, match=said) as caught:
            check(path)
        assert caught.value.message.isprintable()

    def test_the_file_by_hand_is_sound(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(file([LLAMA]))
        assert check(path).weights_bytes == 32

    @pytest.mark.parametrize(
        ("count", "said"), [((1 << 23) - 3, "holds no weights"), (1 << 23, "more than 8,388,608 texts")]
    )
    def test_the_longest_list_ends_in_time(self, tmp_path: Path, count: int, said: str) -> None:
        """A file whose announced list is all there, and endless."""
        path = tmp_path / "x.gguf"
        texts = pair("x", ARRAY, struct.pack("<IQ", STRING, 1)) + text("")
        path.write_bytes(file([texts, pair("y", ARRAY, struct.pack("<IQ", STRING, count))], [], count=0))
        os.truncate(path, 1 << 32)  # a hole, read as empty texts
        start = time.perf_counter()
        with pytest.raises(ModelFileInvalid, match=said):
            check(path)
        assert time.perf_counter() - start < 10

    @given(data=st.data())
    def test_any_flipped_bytes(self, model: Path, scratch: Path, data: st.DataObject) -> None:
        whole = bytearray(model.read_bytes())
        header = len(whole) - check(model).weights_bytes
        flips = st.tuples(st.integers(0, header - 1), st.integers(0, 255))
        for place, value in data.draw(st.lists(flips, min_size=1, max_size=8)):
            whole[place] = value
        scratch.write_bytes(whole)
        header_or_error(scratch)

    @given(st.binary(max_size=300))
    def test_any_bytes(self, scratch: Path, content: bytes) -> None:
        scratch.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 3) + content)
        header_or_error(scratch)


def header_or_error(path: Path) -> None:
    """Nothing else may come of a file, and not late."""
    start = time.perf_counter()
    refused = None
    try:
        assert isinstance(check(path), Header)
    except LocalInferError as error:
        refused = error
    assert refused is None or refused.message.isprintable()
    assert time.perf_counter() - start < 5
