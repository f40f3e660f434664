"""GGUF files for tests: small ones as converters write them, and broken ones byte by byte."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

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
