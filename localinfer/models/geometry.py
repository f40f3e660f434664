"""How a catalogued model is built, and the shape that follows from it for a file nobody has seen yet.

It knows the numbers of a model's configuration and the usual bits of a quantization; a file's own header knows better
and is turned into a shape elsewhere.
"""

import re
from typing import Annotated

import msgspec

from localinfer.models.shape import Layer, ModelShape
from localinfer.types import Value

Count = Annotated[int, msgspec.Meta(ge=0)]
Size = Annotated[int, msgspec.Meta(ge=1)]

# Bits per weight in the blocks of a GGUF file, by the digit in the name of its quantization: K quantizations keep some
# tensors a step finer than they are called. The head, and tied embeddings with it, is kept at 6.56 bits or finer.
_BLOCK_BITS = {"2": 2.9, "3": 3.8, "4": 4.7, "5": 5.6, "6": 6.56, "8": 8.5}
_HEAD_BITS = 6.56
_MXFP4_BITS = (4.25, 8.5)


class Geometry(Value, frozen=True, forbid_unknown_fields=True):
    """A model's configuration, as far as memory goes.

    ``pattern`` has a letter per layer and is repeated: F attends to all tokens, W to the last ``window``, R keeps a
    recurrent state, N keeps nothing. ``kv`` and ``window_kv`` are elements of keys and of values per token and layer;
    ``state_bytes`` is per layer and sequence. ``per_layer_embedding`` is the width of embeddings that each layer has
    of its own. ``assumed``: not read from this model's own configuration.
    """

    architecture: str
    layers: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    embedding: Size
    heads: Size
    vocabulary: Size
    kv: tuple[Count, Count]
    window_kv: tuple[Count, Count] | None = None
    pattern: Annotated[str, msgspec.Meta(pattern=r"^[FWRN]+\Z")] = "F"
    window: Count = 0
    state_bytes: Count = 0
    tied: bool = False
    experts: Count = 0
    experts_used: Count = 0
    expert_parameters: Count = 0
    per_layer_embedding: Count = 0
    assumed: bool = False

    def __post_init__(self) -> None:
        if len(self.pattern) > self.layers:
            raise ValueError("“pattern” is longer than there are layers")
        if ("W" in self.pattern) != bool(self.window) or (self.window_kv is not None and not self.window):
            raise ValueError("“window” and W in “pattern” belong together")
        if ("R" in self.pattern) != bool(self.state_bytes):
            raise ValueError("“state_bytes” and R in “pattern” belong together")
        if not bool(self.experts) == bool(self.experts_used) == bool(self.expert_parameters):
            raise ValueError("“experts”, “experts_used” and “expert_parameters” belong together")
        if self.experts_used > self.experts:
            raise ValueError("more experts are used than there are")

    @property
    def head_parameters(self) -> int:
        """Weights of one matrix between the vocabulary and the width of the model."""
        return self.vocabulary * self.embedding

    @property
    def embedding_parameters(self) -> int:
        """Weights that are looked up by token."""
        return self.head_parameters + self.vocabulary * self.per_layer_embedding * self.layers

    def block_parameters(self, parameters: int) -> int:
        """How many of the model's ``parameters`` are in its layers."""
        return parameters - self.embedding_parameters - (0 if self.tied else self.head_parameters)

    def layer(self, index: int) -> Layer:
        """What one layer keeps; its weights are left at 0."""
        match self.pattern[index % len(self.pattern)]:
            case "F":
                return Layer(keys=self.kv[0], values=self.kv[1])
            case "W":
                keys, values = self.window_kv or self.kv
                return Layer(keys=keys, values=values, window=self.window)
            case "R":
                return Layer(state_bytes=self.state_bytes)
            case _:
                return Layer()


def gguf_shape(built: Geometry, *, parameters: int, context: int, quantization: str, size_bytes: int) -> ModelShape:
    """The shape of a GGUF file of ``size_bytes``.

    What the layers keep is exact where the geometry is. The weights add up to ``size_bytes``; how they are shared out
    is an estimate: between embeddings, head and blocks by their numbers and usual bits, and evenly between layers.
    """
    blocks, head = _bits(quantization)
    return _shape(built, "gguf", parameters, context, size_bytes, blocks, head)


def mlx_shape(built: Geometry, *, parameters: int, context: int, size_bytes: int) -> ModelShape:
    """As ``gguf_shape``, for MLX, which quantizes everything alike."""
    return _shape(built, "mlx", parameters, context, size_bytes, 1.0, 1.0)


def _shape(
    built: Geometry, format_: str, parameters: int, context: int, size_bytes: int, block_bits: float, head_bits: float
) -> ModelShape:
    embedding = built.embedding_parameters * (head_bits if built.tied else block_bits)
    output = 0.0 if built.tied else built.head_parameters * head_bits
    block_parameters = built.block_parameters(parameters)
    scale = size_bytes / (embedding + output + block_parameters * block_bits)
    embedding_bytes, output_bytes = int(embedding * scale), int(output * scale)
    block_bytes = size_bytes - embedding_bytes - output_bytes
    weights = _even(block_bytes, built.layers)
    experts = _even(block_bytes * built.expert_parameters // block_parameters, built.layers)
    layers = tuple(
        msgspec.structs.replace(built.layer(index), weights_bytes=weights[index], expert_bytes=experts[index])
        for index in range(built.layers)
    )
    return ModelShape(
        architecture=built.architecture,
        format="mlx" if format_ == "mlx" else "gguf",
        parameters=parameters,
        context=context,
        vocabulary=built.vocabulary,
        embedding=built.embedding,
        heads=built.heads,
        layers=layers,
        embedding_bytes=embedding_bytes,
        output_bytes=output_bytes,
        tied=built.tied,
        head_bytes=embedding_bytes * built.head_parameters // built.embedding_parameters if built.tied else 0,
        experts=built.experts,
        experts_used=built.experts_used,
    )


def _bits(quantization: str) -> tuple[float, float]:
    """Usual bits per weight in the blocks and in the head of a GGUF file."""
    if "MXFP4" in quantization.upper():
        return _MXFP4_BITS
    digit = re.search(r"Q(\d)", quantization.upper())
    blocks = _BLOCK_BITS.get(digit[1]) if digit else None
    return (blocks, max(blocks, _HEAD_BITS)) if blocks else (1.0, 1.0)


def _even(total: int, count: int) -> tuple[int, ...]:
    """``total`` in ``count`` whole parts that differ by one at most."""
    return tuple(total * (index + 1) // count - total * index // count for index in range(count))
