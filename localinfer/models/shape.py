"""What decides how much memory and time a model takes: its layers, what each keeps per token, and where its bytes lie.

It knows no machine. A GGUF header or the configuration of an MLX folder is turned into the same value; what an
architecture keeps is known by ``layer_memory`` and ``mlx_memory``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from localinfer.models.gguf import Header
from localinfer.models.layer_memory import Keys, LayerMemory, layer_memory, trunk_layers
from localinfer.models.mlx_memory import Config, mlx_memory
from localinfer.types import Value

_BLOCK = re.compile(r"blk\.(\d+)\.")
_EXPERTS = re.compile(r"\.ffn_(gate|up|down|gate_up)_(ch)?exps\.|\.ffn_(gate|up|down)\.\d+\.")
# llama.cpp keeps these in the machine's own memory wherever the layers are.
_EMBEDDINGS = ("token_embd.", "position_embd.", "token_types.", "per_layer_token_embd.", "masked_embd_")

_MLX_LAYER = re.compile(r"(?:^|\.)(?:layers|h)\.(\d+)\.")
_MLX_NOT_LOADED = re.compile(r"(?:^|\.)(?:vision|visual|audio|multi_modal|mm_|embed_(?:vision|audio)|mtp)[a-z_]*\.")
_MLX_EMBEDDINGS = re.compile(r"(?:^|\.)(?:embed_tokens|wte|embeddings)[a-z_]*\.")
_MLX_EXPERTS = re.compile(r"\.(?:switch_mlp|experts|switch_glu)\.")
_WHOLE_BITS = 16


class Layer(Value, frozen=True):
    """One block. ``keys`` and ``values`` are elements its KV cache keeps per token (0: none; latent attention keeps
    keys only). ``window`` is the tokens it keeps at most, 0 for all. ``state_bytes`` is its recurrent state per
    sequence. ``weights_bytes`` are all its tensors, ``expert_bytes`` the routed experts among them.
    """

    keys: int = 0
    values: int = 0
    window: int = 0
    state_bytes: int = 0
    weights_bytes: int = 0
    expert_bytes: int = 0


class ModelShape(Value, frozen=True):
    """One model in one quantization, as far as memory and speed go.

    ``context`` is tokens it was trained with. ``embedding_bytes`` are the token embeddings, ``output_bytes`` the output
    head and its norm; ``tied``: the head is ``head_bytes`` of the embeddings, and ``output_bytes`` only the norm.
    ``experts_used`` of ``experts`` routed experts compute a token; both 0 for a dense model. ``layers`` is empty where
    the architecture is not understood: then only the weights are known, and ``other_bytes`` are those of its blocks.
    Blocks that are never loaded (multi-token prediction) have no bytes here.
    """

    architecture: str
    format: Literal["gguf", "mlx"]
    parameters: int
    context: int
    vocabulary: int
    embedding: int
    heads: int
    layers: tuple[Layer, ...]
    embedding_bytes: int
    output_bytes: int
    tied: bool = False
    head_bytes: int = 0
    experts: int = 0
    experts_used: int = 0
    other_bytes: int = 0

    @property
    def weights_bytes(self) -> int:
        """Bytes of all tensors that are loaded."""
        return (
            self.embedding_bytes
            + self.output_bytes
            + self.other_bytes
            + sum(layer.weights_bytes for layer in self.layers)
        )

    @property
    def active_parameters(self) -> int:
        """Parameters that a token passes: of routed experts those in use, by their part of the layers' bytes."""
        total = sum(layer.weights_bytes for layer in self.layers)
        if not total:
            return self.parameters
        experts = sum(layer.expert_bytes for layer in self.layers)
        used = self.experts_used / self.experts if self.experts else 0.0
        return int(self.parameters * (total - experts * (1 - used)) / total)


class _Blocks:
    """Where the bytes of a model lie."""

    def __init__(self) -> None:
        self.embedding_bytes = 0
        self.output_bytes = 0
        self._weights: dict[int, int] = {}
        self._experts: dict[int, int] = {}

    def add(self, block: int, size_bytes: int, *, expert: bool) -> None:
        """Count one tensor of a block."""
        self._weights[block] = self._weights.get(block, 0) + size_bytes
        if expert:
            self._experts[block] = self._experts.get(block, 0) + size_bytes

    def layers(self, memories: Sequence[LayerMemory], loaded: int) -> tuple[Layer, ...]:
        """One layer for each of ``memories``; only the first ``loaded`` blocks have weights."""
        return tuple(
            Layer(
                keys=memory.keys,
                values=memory.values,
                window=memory.window,
                state_bytes=memory.state_bytes,
                weights_bytes=self._weights.get(block, 0) if block < loaded else 0,
                expert_bytes=self._experts.get(block, 0) if block < loaded else 0,
            )
            for block, memory in enumerate(memories)
        )

    @property
    def all_bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(self._weights.values())


def from_gguf(headers: Sequence[Header]) -> ModelShape:
    """The shape of the model in one GGUF file, or in all parts of one, first part first.

    Raises ``ModelFileInvalid`` where the metadata contradict themselves.
    """
    header = headers[0]
    keys = Keys(header)
    tensors = [tensor for part in headers for tensor in part.tensors]
    blocks = _Blocks()
    for tensor in tensors:
        if match := _BLOCK.match(tensor.name):
            blocks.add(int(match[1]), tensor.size_bytes, expert=bool(_EXPERTS.search(tensor.name)))
        elif tensor.name.startswith(_EMBEDDINGS):
            blocks.embedding_bytes += tensor.size_bytes
        else:
            blocks.output_bytes += tensor.size_bytes
    memories = layer_memory(header)
    head = next((tensor for tensor in tensors if tensor.name == "token_embd.weight"), None)
    tied = head is not None and not any(tensor.name == "output.weight" for tensor in tensors)
    return ModelShape(
        architecture=header.architecture,
        format="gguf",
        parameters=sum(part.parameters for part in headers),
        context=header.context_length or 0,
        vocabulary=(head.shape[-1] if head else 0) or header.counts.get("tokenizer.ggml.tokens", 0),
        embedding=header.embedding_length or 0,
        heads=_most(keys, "attention.head_count"),
        layers=blocks.layers(memories, trunk_layers(header)) if memories else (),
        embedding_bytes=blocks.embedding_bytes,
        output_bytes=blocks.output_bytes,
        tied=tied,
        head_bytes=head.size_bytes if head and tied else 0,
        experts=keys.count("expert_count"),
        experts_used=_most(keys, "expert_used_count"),
        other_bytes=0 if memories else blocks.all_bytes,
    )


def _most(keys: Keys, name: str) -> int:
    """A count, or the largest of one per layer."""
    listed = keys.listed(name)
    return max(listed, default=0) if listed is not None else keys.count(name)


def from_mlx(config: Mapping[str, object], tensors: Mapping[str, int]) -> ModelShape:
    """The shape of an MLX or safetensors folder: its ``config.json`` and the bytes of each tensor by name.

    ``parameters`` takes 16 bits for each that is not quantized. What mlx-lm does not load (towers for pictures and
    sound, multi-token prediction) does not count. Raises ``ModelFileInvalid``.
    """
    settings = Config(config)
    blocks = _Blocks()
    loaded = {name: size for name, size in tensors.items() if not _MLX_NOT_LOADED.search(name)}
    for name, size in loaded.items():
        if match := _MLX_LAYER.search(name):
            blocks.add(int(match[1]), size, expert=bool(_MLX_EXPERTS.search(name)))
        elif _MLX_EMBEDDINGS.search(name):
            blocks.embedding_bytes += size
        else:
            blocks.output_bytes += size
    memories = mlx_memory(settings)
    tied = not any("lm_head." in name for name in loaded)
    return ModelShape(
        architecture=settings.model_type,
        format="mlx",
        parameters=_mlx_parameters(settings, loaded),
        context=settings.count("max_position_embeddings"),
        vocabulary=settings.count("vocab_size"),
        embedding=settings.count("hidden_size"),
        heads=settings.count("num_attention_heads"),
        layers=blocks.layers(memories, len(memories)) if memories else (),
        embedding_bytes=blocks.embedding_bytes,
        output_bytes=blocks.output_bytes,
        tied=tied,
        head_bytes=blocks.embedding_bytes if tied else 0,
        experts=settings.count("num_experts", "num_local_experts", "n_routed_experts"),
        experts_used=settings.count("num_experts_per_tok", "top_k_experts"),
        other_bytes=0 if memories else blocks.all_bytes,
    )


def _mlx_parameters(config: Config, tensors: Mapping[str, int]) -> int:
    """How many numbers the tensors stand for. Quantized weights have scales beside them, which are not counted."""
    quantization = config.inside("quantization")
    parameters = 0
    for name, size in tensors.items():
        layer, _, part = name.rpartition(".")
        if part in ("scales", "biases") and f"{layer}.weight" in tensors:
            continue
        if f"{layer}.scales" in tensors:
            bits = quantization.inside(layer).count("bits", default=quantization.count("bits", default=_WHOLE_BITS))
            parameters += size * 8 // max(1, bits)
        else:
            parameters += size * 8 // _WHOLE_BITS
    return parameters
