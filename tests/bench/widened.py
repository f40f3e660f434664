"""The starter model in the shape of a larger one: it says what the starter says, and a pass costs what the larger one's
costs.

    uv run python -m tests.bench.widened FOLDER [--starter FILE]

makes the 0.5B-class one in FOLDER and compares its text with the starter's.

Every dimension is filled up with zeros: what is added computes nothing, and RMSNorm, whose mean runs over more numbers,
has its weights and its epsilon scaled to match. So texts, repetitions and the acceptance of drafts are a real model's
where no larger model can be had. The vocabulary stays the starter's, which can draft for it.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from gguf import GGUFReader, GGUFWriter, dequantize
from numpy.typing import NDArray

from backends.base import SequenceJob
from localinfer import quantizing
from localinfer.models import store
from localinfer.types import Sampling, Speculation
from tests.backends.llama_cpp.driving import chat, opened
from tests.backends.llama_cpp.speculating import say, split
from tests.bench.models import download_starter
from tests.tiny_models import Shape, write_tensors

_ARCHITECTURE = "llama"
_QUESTIONS = (
    "Explain how a bicycle stays upright.",
    "Write a letter to a landlord about a broken window.",
    "Write a Python function that returns the median of a list.",
)


class Width(msgspec.Struct, frozen=True):
    """The dimensions of a model. Heads keep their size, and their number for each head of the KV cache."""

    name: str
    embedding: int
    feed_forward: int
    kv_heads: int


# Embedding and feed-forward of Qwen2.5-0.5B; with the starter's 30 layers 0.50 billion parameters.
HALF = Width("0.5b", 896, 4864, 5)


class _Starter:
    """What is read of the source."""

    def __init__(self, path: Path) -> None:
        self.reader = GGUFReader(path)
        self.embedding = int(self.number("embedding_length"))
        self.heads = int(self.number("attention.head_count"))
        self.kv_heads = int(self.number("attention.head_count_kv"))
        self.head = self.embedding // self.heads

    def number(self, name: str) -> float:
        """A number of the metadata."""
        return float(self.reader.fields[f"{_ARCHITECTURE}.{name}"].contents())


def widened(folder: Path, starter: Path, width: Width, quantization: str) -> Path:
    """The model's path in ``folder``, made where it is missing: half a minute or two on two cores, and for that time
    the 16-bit file besides. ``quantization`` is a name such as ``Q4_K_M`` or ``F16``."""
    path = folder / f"starter-as-{width.name}-{quantization}.gguf"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    plain = folder / f"starter-as-{width.name}-F16.gguf"
    kept = plain.exists()
    if not kept:
        unfinished = plain.with_suffix(".part")
        write_widened(unfinished, starter, width)
        unfinished.rename(plain)
    if quantization == "F16":
        return plain
    try:
        return quantized(plain, quantization, path)
    finally:
        if not kept:
            plain.unlink()


def quantized(source: Path, quantization: str, path: Path) -> Path:
    """``path``, made of ``source`` by the library's quantizer where it is missing."""
    if not path.exists():
        print(f"making {path}", file=sys.stderr, flush=True)
        found = store.resolve(str(source))
        quantizing.quantize(found, quantization, path, progress=lambda _: None, force=True)
    return path


def write_widened(path: Path, starter: Path, width: Width) -> None:
    """Write the GGUF ``starter``, a Llama of any quantization, as a model of this width in 16-bit floats."""
    source = _Starter(starter)
    grouping = source.heads // source.kv_heads
    writer = GGUFWriter(path, _ARCHITECTURE)
    writer.add_name(f"The starter as wide as a {width.name.upper()}")
    writer.add_context_length(int(source.number("context_length")))
    writer.add_block_count(int(source.number("block_count")))
    writer.add_embedding_length(width.embedding)
    writer.add_feed_forward_length(width.feed_forward)
    writer.add_head_count(width.kv_heads * grouping)
    writer.add_head_count_kv(width.kv_heads)
    writer.add_key_length(source.head)
    writer.add_value_length(source.head)
    writer.add_rope_dimension_count(source.head)
    writer.add_rope_freq_base(source.number("rope.freq_base"))
    writer.add_vocab_size(int(source.number("vocab_size")))
    # mean(x²) + ε of the starter is that of the wider model times a factor: the weights take up its root.
    shrunk = source.embedding / width.embedding
    writer.add_layer_norm_rms_eps(source.number("attention.layer_norm_rms_epsilon") * shrunk)
    for name, field in source.reader.fields.items():
        if name.startswith("tokenizer."):
            sub_type = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=sub_type)
    tensors = {tensor.name: tensor for tensor in source.reader.tensors}
    shapes = {name: _shape(name, tensor.shape.tolist(), source, width) for name, tensor in tensors.items()}

    def draw(name: str, shape: Shape) -> NDArray[np.generic]:
        small = dequantize(tensors[name].data, tensors[name].tensor_type)
        wide = np.zeros(shape, np.float32)
        wide[tuple(map(slice, small.shape))] = small * np.sqrt(shrunk) if small.ndim == 1 else small
        return wide

    write_tensors(writer, shapes, np.float16, draw)


def _shape(name: str, shape: Sequence[int], source: _Starter, width: Width) -> Shape:
    """The wider shape of a tensor, rows first; ``shape`` is the file's, columns first. Vectors are weights of norms."""
    embedding = width.embedding
    kind = re.sub(r"^blk\.\d+\.|\.weight$", "", name)
    query, key = (count * source.head for count in (width.kv_heads * source.heads // source.kv_heads, width.kv_heads))
    if len(shape) == 1:
        return (embedding,)
    return {
        "token_embd": (shape[1], embedding),
        "output": (shape[1], embedding),
        "attn_q": (query, embedding),
        "attn_k": (key, embedding),
        "attn_v": (key, embedding),
        "attn_output": (embedding, query),
        "ffn_gate": (width.feed_forward, embedding),
        "ffn_up": (width.feed_forward, embedding),
        "ffn_down": (embedding, width.feed_forward),
    }[kind]


def parted(one: Path, other: Path, questions: Sequence[str], tokens: int) -> list[tuple[int, float]]:
    """How many tokens two models say alike, greedily, after each question, and how far apart the two likeliest logits
    were where they part: 0 where they do not."""
    said = []
    for path in (one, other):
        with opened(path, threads=None) as backend:
            jobs = [
                SequenceJob(
                    id=index,
                    tokens=chat(backend.tokenizer, question),
                    sampling=Sampling(temperature=0, top_logprobs=2),
                    max_tokens=tokens,
                    ignore_eos=True,
                    speculation=Speculation("off"),
                )
                for index, question in enumerate(questions)
            ]
            said.append([say(backend, [job])[0] for job in jobs])
    return [split(first, second) or (tokens, 0.0) for first, second in zip(*said, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the widened starter and compare its text with the starter's.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starter", type=Path, help="the starter model's GGUF, if it is here already")
    given = parser.parse_args()
    starter = given.starter or download_starter(given.folder)
    wide = widened(given.folder, starter, HALF, "F16")
    plain = quantized(starter, "F16", given.folder / "starter-F16.gguf")
    for question, (alike, gap) in zip(_QUESTIONS, parted(plain, wide, _QUESTIONS, 100), strict=True):
        print(f"{question} {alike} tokens alike, then a gap of {gap:.3f} between the two likeliest")
    print(wide)


if __name__ == "__main__":
    main()
