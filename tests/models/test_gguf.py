import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFEndian, GGUFWriter
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import LocalInferError, ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models import gguf
from localinfer.models.gguf import Header, check

TOKENS = [f"token {number}" for number in range(500)]
STRING, ARRAY, U8, U32, U64 = 8, 9, 0, 4, 10


def write(path: Path, change: Callable[[GGUFWriter], None] = lambda _: None, architecture: str = "llama") -> Path:
    """A small file as converters write them; ``change`` adds to its metadata."""
    writer = GGUFWriter(path, architecture)
    writer.add_name("Tiny ä")
    writer.add_context_length(128)
    writer.add_block_count(2)
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.5] * len(TOKENS))
    writer.add_token_types([1] * len(TOKENS))
    writer.add_array("general.languages", ["en", "de"])
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_float64("test.double", 0.25)
    writer.add_chat_template("{{ messages }}")
    change(writer)
    writer.add_tensor("token_embd.weight", np.zeros((500, 64), np.float32))
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((64, 68), np.uint8), raw_dtype=GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", np.ones(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "model.gguf")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for properties to write to."""
    return tmp_path_factory.mktemp("scratch") / "x.gguf"


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str = "t", shape: tuple[int, ...] = (8,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


LLAMA = pair("general.architecture", STRING, text("llama"))


def file(
    pairs: list[bytes], tensors: list[bytes] | None = None, *, keys: int | None = None, count: int | None = None
) -> bytes:
    """A file by hand, with one tensor of 32 bytes unless told otherwise, and the data for it."""
    tensors = [tensor()] if tensors is None else tensors
    counts = struct.pack("<QQ", len(tensors) if count is None else count, len(pairs) if keys is None else keys)
    header = b"GGUF" + struct.pack("<I", 3) + counts + b"".join(pairs) + b"".join(tensors)
    return header + bytes(-len(header) % 32) + bytes(32)


class TestHeader:
    def test_says_what_was_written(self, model: Path) -> None:
        header = check(model)
        assert header == Header(
            version=3,
            architecture="llama",
            name="Tiny ä",
            tensor_count=3,
            parameters=500 * 64 + 64 * 64 + 64,
            context_length=128,
            block_count=2,
            embedding_length=64,
            head_count=4,
            head_count_kv=2,
            key_length=None,
            value_length=None,
            sliding_window=None,
            has_chat_template=True,
            tokenizer_model="gpt2",
            split_no=0,
            split_count=1,
            file_size_bytes=model.stat().st_size,
            weights_bytes=500 * 64 * 4 + 64 * 68 + 64 * 4,
        )

    def test_optional_keys(self, tmp_path: Path) -> None:
        def change(writer: GGUFWriter) -> None:
            writer.add_key_length(32)
            writer.add_value_length(16)
            writer.add_sliding_window(512)
            writer.add_uint16("split.no", 1)
            writer.add_uint16("split.count", 3)

        header = check(write(tmp_path / "x.gguf", change, "gemma3"))
        assert header.architecture == "gemma3"
        assert (header.key_length, header.value_length, header.sliding_window) == (32, 16, 512)
        assert (header.split_no, header.split_count) == (1, 3)

    def test_heads_per_layer(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        heads = struct.pack("<IQ3I", U32, 3, 4, 0, 2)
        path.write_bytes(file([LLAMA, pair("llama.attention.head_count_kv", ARRAY, heads)]))
        assert check(path).head_count_kv == (4, 0, 2)

    def test_the_order_of_keys_does_not_matter(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(file([pair("llama.block_count", U32, struct.pack("<I", 7)), LLAMA]))
        assert check(path).block_count == 7

    def test_the_first_part_of_a_split_may_hold_no_tensors(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(file([LLAMA, pair("split.count", U32, struct.pack("<I", 2))], []))
        assert check(path).tensor_count == 0

    def test_later_parts_of_a_split_say_little(self, tmp_path: Path) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(file([pair("split.no", 2, bytes([1, 0])), pair("split.count", 2, bytes([2, 0]))]))
        header = check(path)
        assert (header.architecture, header.split_no, header.weights_bytes) == ("", 1, 32)

    def test_unicode_paths(self, model: Path, tmp_path: Path) -> None:
        path = tmp_path / "Größe 模型 😸.gguf"
        path.write_bytes(model.read_bytes())
        assert check(path).architecture == "llama"

    def test_the_starter_model_is_read_quickly(self, starter_model: Path) -> None:
        check(starter_model)
        fastest = min(_timed(starter_model) for _ in range(5))
        header = check(starter_model)
        assert (header.architecture, header.tensor_count, header.parameters) == ("llama", 272, 134_515_008)
        assert (header.head_count, header.head_count_kv, header.block_count) == (9, 3, 30)
        assert header.weights_bytes < header.file_size_bytes
        assert fastest < 0.1

    def test_the_tensor_types_are_those_of_ggml(self) -> None:
        assert {kind.value: sizes for kind, sizes in GGML_QUANT_SIZES.items()} == gguf._BLOCKS


def _timed(path: Path) -> float:
    start = time.perf_counter()
    check(path)
    return time.perf_counter() - start


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "is empty"),
            (b"<!DOCTYPE html><title>Sign in</title>", "this is a web page"),
            (b"\xef\xbb\xbf\n <html>", "this is a web page"),
            (b'{"error": "Not found"}', "this is a web page"),
            (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
            (b"lmgg" + bytes(100), "given up for GGUF"),
            (b"PK\x03\x04" + bytes(100), "not in the GGUF format"),
            (b"GGU", "not in the GGUF format"),
            (b"G", "not in the GGUF format"),
            (b"GGUF", "incomplete"),
            (b"GGUF" + struct.pack("<I", 1) + bytes(100), "version, 1, is too old"),
            (b"GGUF" + struct.pack("<I", 0) + bytes(100), "version, 0, is too old"),
            (b"GGUF" + struct.pack("<I", 4) + bytes(100), "version, 4, is newer"),
            (b"GGUF" + struct.pack(">I", 3) + bytes(100), "big-endian"),
            (b"GGUF" + struct.pack("<I", 3) + bytes(16), "holds no weights"),
        ],
    )
    def test_refused(self, tmp_path: Path, content: bytes, said: str) -> None:
        path = tmp_path / "x.gguf"
        path.write_bytes(content)
        with pytest.raises(ModelFileInvalid, match=said) as caught:
            check(path)
        assert caught.value.message.startswith("x.gguf is not a model that can be loaded: ")
        assert caught.value.message.isprintable()
        assert caught.value.hint

    def test_big_endian(self, tmp_path: Path) -> None:
        writer = GGUFWriter(tmp_path / "x.gguf", "llama", endianess=GGUFEndian.BIG)
        writer.add_tensor("t", np.zeros(8, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        with pytest.raises(ModelFileInvalid, match="big-endian"):
            check(tmp_path / "x.gguf")

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ModelNotFound, match=r"nothing\.gguf"):
            check(tmp_path / "nothing.gguf")
        (tmp_path / "file").touch()
        for path in (tmp_path / "file" / "x.gguf", tmp_path / "a\0b"):
            with pytest.raises(ModelNotFound):
                check(path)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileInvalid, match="is not a file"):
            check(tmp_path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileInvalid, match="is not a file"):
            check(tmp_path / "pipe")

    def test_a_disk_that_fails(self, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(Path, "open", fail)
        with pytest.raises(StorageUnavailable, match="Input/output error"):
            check(model)


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
            (file([pair("llama.attention.head_count", ARRAY, struct.pack("<IQ", U8, 5000))]), "5,000 values"),
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
