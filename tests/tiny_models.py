"""Tiny GGUF models with random weights that llama.cpp loads and runs: one for each kind of memory a model can have.

They say nonsense, always the same: what matters is how their state behaves when prompts share a beginning. Names and
shapes of tensors are llama.cpp's; ``gguf`` knows the file format.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from gguf import GGUFWriter, TokenType
from numpy.typing import NDArray

Architecture = Literal["llama", "gemma3", "mamba", "lfm2"]
Shape = tuple[int, ...]
Draw = Callable[[str, Shape], NDArray[np.generic]]

LAYERS = 4
EMBEDDING = 64
HEADS = 4
KV_HEADS = 2
HEAD = EMBEDDING // HEADS
FEED_FORWARD = 128
CONTEXT = 4096
WINDOW = 32
STATE = 8
CONVOLUTION = 4
SHORT_CONVOLUTION = 3
MERGES = 150

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

SAMPLE = """The model reads the prompt and then writes the answer, one token at a time. The state of the prompt that was
read is kept in memory, so that the next prompt which begins with the same words need not be read again from the start.
A window that slides over the text forgets what lies behind it; a recurrent state cannot be taken back to an earlier
place. When two of them share a beginning, the answer must be the same as if nothing had been shared at all."""


def write_tiny_model(folder: Path, architecture: Architecture, *, variant: int = 0) -> Path:
    """Write ``<architecture>.gguf`` into ``folder``; the same bytes every time, other weights for each ``variant``.

    ``llama``: full attention, byte-level BPE. ``gemma3``: three layers of four see only the last 32 tokens,
    SentencePiece vocabulary with a begin-of-sequence token. ``mamba``: recurrent. ``lfm2``: recurrent layers (short
    convolutions) between attention layers. Context 4,096 tokens, ChatML template, some 410 tokens.
    """
    path = folder / (f"{architecture}-{variant}.gguf" if variant else f"{architecture}.gguf")
    writer = GGUFWriter(path, architecture)
    writer.add_name(f"tiny {architecture}")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_layer_norm_rms_eps(1e-6)
    vocabulary = _add_sentencepiece(writer) if architecture == "gemma3" else _add_bpe(writer)
    writer.add_vocab_size(vocabulary)
    writer.add_chat_template(CHAT_TEMPLATE)
    shapes: dict[str, Shape] = {"token_embd.weight": (vocabulary, EMBEDDING), "output.weight": (vocabulary, EMBEDDING)}
    shapes["token_embd_norm.weight" if architecture == "lfm2" else "output_norm.weight"] = (EMBEDDING,)
    shapes |= _LAYERS_OF[architecture](writer)
    rng = np.random.default_rng([*architecture.encode(), *([variant] if variant else [])])
    write_tensors(writer, shapes, np.float32, lambda name, shape: _weights(rng, name, shape))
    return path


def write_tensors(writer: GGUFWriter, shapes: dict[str, Shape], matrix_type: type[np.floating], draw: Draw) -> None:
    """Finish the file with the tensors ``draw`` gives for ``shapes`` (rows first), one in memory at a time.

    Matrices are stored as ``matrix_type``, vectors as 32-bit floats. The writer is closed.
    """
    kinds = {name: np.dtype(matrix_type if len(shape) > 1 else np.float32) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        writer.add_tensor_info(name, shape, kinds[name], int(np.prod(shape)) * kinds[name].itemsize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, shape in shapes.items():
        writer.write_tensor_data(np.ascontiguousarray(draw(name, shape), dtype=kinds[name]))
    writer.close()


def _weights(rng: np.random.Generator, name: str, shape: Shape) -> NDArray[np.generic]:
    if name.endswith("ssm_a"):  # decay rates: the state forgets
        return -np.tile(np.arange(1.0, shape[-1] + 1), (shape[0], 1))
    if "norm" in name or name.endswith("ssm_d"):
        return np.ones(shape)
    # Twice the usual scale: what the layers add outweighs the embedding, so the next token depends on all before it.
    return rng.normal(0, 2 / np.sqrt(shape[-1]), shape)


def _feed_forward(layer: str) -> dict[str, Shape]:
    return {
        f"{layer}.ffn_norm.weight": (EMBEDDING,),
        f"{layer}.ffn_gate.weight": (FEED_FORWARD, EMBEDDING),
        f"{layer}.ffn_up.weight": (FEED_FORWARD, EMBEDDING),
        f"{layer}.ffn_down.weight": (EMBEDDING, FEED_FORWARD),
    }


def _attention(layer: str) -> dict[str, Shape]:
    return {
        f"{layer}.attn_norm.weight": (EMBEDDING,),
        f"{layer}.attn_q.weight": (HEADS * HEAD, EMBEDDING),
        f"{layer}.attn_k.weight": (KV_HEADS * HEAD, EMBEDDING),
        f"{layer}.attn_v.weight": (KV_HEADS * HEAD, EMBEDDING),
        f"{layer}.attn_output.weight": (EMBEDDING, HEADS * HEAD),
    }


def _head_norms(layer: str) -> dict[str, Shape]:
    return {f"{layer}.attn_q_norm.weight": (HEAD,), f"{layer}.attn_k_norm.weight": (HEAD,)}


def _add_transformer(writer: GGUFWriter, kv_heads: int | Sequence[int] = KV_HEADS) -> None:
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(10_000.0)


def _llama(writer: GGUFWriter) -> dict[str, Shape]:
    _add_transformer(writer)
    shapes: dict[str, Shape] = {}
    for layer in (f"blk.{index}" for index in range(LAYERS)):
        shapes |= _attention(layer) | _feed_forward(layer)
    return shapes


def _gemma3(writer: GGUFWriter) -> dict[str, Shape]:
    _add_transformer(writer)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_sliding_window(WINDOW)
    writer.add_sliding_window_pattern([True, True, True, False])
    shapes: dict[str, Shape] = {}
    for layer in (f"blk.{index}" for index in range(LAYERS)):
        shapes |= _attention(layer) | _head_norms(layer) | _feed_forward(layer)
        shapes |= {f"{layer}.post_attention_norm.weight": (EMBEDDING,), f"{layer}.post_ffw_norm.weight": (EMBEDDING,)}
    return shapes


def _mamba(writer: GGUFWriter) -> dict[str, Shape]:
    inner, rank = 2 * EMBEDDING, EMBEDDING // 16
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(CONVOLUTION)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(rank)
    shapes: dict[str, Shape] = {}
    for layer in (f"blk.{index}" for index in range(LAYERS)):
        shapes |= {
            f"{layer}.attn_norm.weight": (EMBEDDING,),
            f"{layer}.ssm_in.weight": (2 * inner, EMBEDDING),
            f"{layer}.ssm_conv1d.weight": (inner, CONVOLUTION),
            f"{layer}.ssm_conv1d.bias": (inner,),
            f"{layer}.ssm_x.weight": (rank + 2 * STATE, inner),
            f"{layer}.ssm_dt.weight": (inner, rank),
            f"{layer}.ssm_dt.bias": (inner,),
            f"{layer}.ssm_a": (inner, STATE),
            f"{layer}.ssm_d": (inner,),
            f"{layer}.ssm_out.weight": (EMBEDDING, inner),
        }
    return shapes


def _lfm2(writer: GGUFWriter) -> dict[str, Shape]:
    attends = [index % 2 == 1 for index in range(LAYERS)]
    _add_transformer(writer, [KV_HEADS if here else 0 for here in attends])
    writer.add_shortconv_l_cache(SHORT_CONVOLUTION)
    shapes: dict[str, Shape] = {}
    for index, here in enumerate(attends):
        layer = f"blk.{index}"
        mixer = {
            f"{layer}.attn_norm.weight": (EMBEDDING,),
            f"{layer}.shortconv.conv.weight": (EMBEDDING, SHORT_CONVOLUTION),
            f"{layer}.shortconv.in_proj.weight": (3 * EMBEDDING, EMBEDDING),
            f"{layer}.shortconv.out_proj.weight": (EMBEDDING, EMBEDDING),
        }
        shapes |= (_attention(layer) | _head_norms(layer) if here else mixer) | _feed_forward(layer)
    return shapes


_LAYERS_OF: dict[Architecture, Callable[[GGUFWriter], dict[str, Shape]]] = {
    "llama": _llama,
    "gemma3": _gemma3,
    "mamba": _mamba,
    "lfm2": _lfm2,
}


def _add_bpe(writer: GGUFWriter) -> int:
    """A byte-level BPE vocabulary: all bytes, the merges that ``SAMPLE`` teaches, ChatML's control tokens."""
    letters = _byte_letters()
    words = Counter(
        tuple(letters[byte] for byte in word.encode()) for word in re.findall(r" ?\w+| ?[^\w\s]+|\s+", SAMPLE)
    )
    merges: list[tuple[str, str]] = []
    while len(merges) < MERGES:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = Counter({_merged(word, best): count for word, count in words.items()})
    pieces = [*letters, *("".join(pair) for pair in merges)]
    controls = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*controls, *pieces])
    writer.add_token_types([TokenType.CONTROL] * len(controls) + [TokenType.NORMAL] * len(pieces))
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    return len(controls) + len(pieces)


def _byte_letters() -> list[str]:
    """The letter byte-level BPE writes for each byte: the byte's own where that is printable, else one past 255."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


def _merged(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    pieces: list[str] = []
    for piece in word:
        if pieces and (pieces[-1], piece) == pair:
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return tuple(pieces)


def _add_sentencepiece(writer: GGUFWriter) -> int:
    """A SentencePiece vocabulary: control tokens, all bytes as a fallback, and pieces of the words of ``SAMPLE``."""
    controls = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    words = [f"▁{word}" for word in re.findall(r"\w+|[^\w\s]", SAMPLE)]
    # Every beginning of a word is a piece, so that merging letter by letter can reach the word.
    counts = Counter(word[:end] for word in words for end in range(2, len(word) + 1))
    counts.update(letter for word in words for letter in word)
    pieces = [piece for piece, _ in counts.most_common(MERGES)]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*controls, *fallback, *pieces])
    writer.add_token_types(
        [TokenType.UNKNOWN]
        + [TokenType.CONTROL] * (len(controls) - 1)
        + [TokenType.BYTE] * len(fallback)
        + [TokenType.NORMAL] * len(pieces)
    )
    writer.add_token_scores([0.0] * (len(controls) + len(fallback)) + [float(-rank) for rank in range(len(pieces))])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_eot_token_id(4)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    return len(controls) + len(fallback) + len(pieces)
