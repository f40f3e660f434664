import os
import struct
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGUFEndian, GGUFWriter

from localinfer.errors import ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models.gguf import TYPES, Header, Tensor, check
from tests.models.gguf_files import ARRAY, LLAMA, TOKENS, U32, file, pair, write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "model.gguf")


class TestHeader:
    def test_says_what_was_written(self, model: Path) -> None:
        header = check(model)
        embedding = Tensor(name="token_embd.weight", shape=(64, 500), type="F32", size_bytes=500 * 64 * 4)
        query = Tensor(name="blk.0.attn_q.weight", shape=(64, 64), type="Q8_0", size_bytes=64 * 68)
        norm = Tensor(name="output_norm.weight", shape=(64,), type="F32", size_bytes=64 * 4)
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
            header_bytes=model.stat().st_size - header.weights_bytes,
            metadata={
                "general.architecture": "llama",
                "general.name": "Tiny ä",
                "llama.context_length": 128,
                "llama.block_count": 2,
                "llama.embedding_length": 64,
                "llama.attention.head_count": 4,
                "llama.attention.head_count_kv": 2,
                "tokenizer.ggml.model": "gpt2",
                "tokenizer.ggml.scores": (0.5,) * len(TOKENS),
                "tokenizer.ggml.token_type": (1,) * len(TOKENS),
                "tokenizer.ggml.add_bos_token": True,
                "test.double": 0.25,
                "tokenizer.chat_template": "{{ messages }}",
            },
            counts={"tokenizer.ggml.tokens": len(TOKENS), "general.languages": 2},
            tensors=(embedding, query, norm),
        )

    def test_of_what_is_long_only_the_length(self, tmp_path: Path) -> None:
        def change(writer: GGUFWriter) -> None:
            writer.add_array("test.short", [1] * 4096)
            writer.add_array("test.long", [1] * 4097)
            writer.add_string("test.text", "ä" * (1 << 19))
            writer.add_string("test.book", "ä" * (1 << 19) + ".")

        header = check(write(tmp_path / "x.gguf", change))
        assert header.metadata["test.short"] == (1,) * 4096
        assert header.metadata["test.text"] == "ä" * (1 << 19)
        assert header.counts["test.long"] == 4097
        assert header.counts["test.book"] == (1 << 20) + 1
        assert not {"test.long", "test.book"} & header.metadata.keys()

    def test_a_copy_of_the_header_says_the_same(self, model: Path, tmp_path: Path) -> None:
        header = check(model)
        copy = tmp_path / model.name
        copy.write_bytes(model.read_bytes()[: header.header_bytes])
        os.truncate(copy, header.file_size_bytes)
        assert check(copy) == header

    def test_survives_the_wire(self, model: Path) -> None:
        header = check(model)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(header), type=Header) == header

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
        assert {kind.value: (kind.name, *sizes) for kind, sizes in GGML_QUANT_SIZES.items()} == TYPES


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
