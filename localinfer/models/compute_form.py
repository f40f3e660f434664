"""How many bytes the buffers of one pass take: a closed form over a model's shape.

Found by varying the sizes of models and asking llama.cpp at 0c1e57098, with flash attention on: within 35 MiB of it for
every architecture in the tests at 512 tokens a pass. The type of the KV cache moves the buffers by less than that. The
widths of a block are not in a shape; they follow from what its tensors weigh. Weights and the context are elsewhere.
"""

from localinfer.models.memory_forms import padded
from localinfer.models.shape import Layer, ModelShape

_FLOAT_BYTES = 4
_MASK_BYTES = 2
_MIXER = 8  # a recurrent layer without a feed-forward network weighs at most so many squares of the embedding


def compute_bytes(
    shape: ModelShape,
    *,
    context: int,
    slots: int,
    micro_batch: int = 512,
    outputs: int = 1,
    unified: bool = False,
) -> int:
    """Bytes of the compute buffers and of the rows of logits, for ``slots`` sequences of ``context`` tokens each.

    ``micro_batch`` tokens are computed at once; ``outputs`` of them may ask for logits, at least one of each slot.
    0 where the layers are not known.
    """
    if not shape.layers:
        return 0
    rows = max(outputs, slots)
    logits = min(rows, micro_batch) * shape.vocabulary * _FLOAT_BYTES
    residual = 2 * micro_batch * shape.embedding * _FLOAT_BYTES
    cells = sum(_mask_cells(window, context, slots if unified else 1, micro_batch) for window in _windows(shape))
    states = slots * max(layer.state_bytes for layer in shape.layers)
    layers = micro_batch * (_width(shape) * _FLOAT_BYTES + cells * _MASK_BYTES) + states
    return max(layers, logits + residual) + rows * shape.vocabulary * _FLOAT_BYTES


def _windows(shape: ModelShape) -> set[int]:
    """The sliding windows of the layers that attend: each has a mask."""
    return {layer.window for layer in shape.layers if layer.keys}


def _mask_cells(window: int, context: int, slots: int, micro_batch: int) -> int:
    """Tokens that a mask speaks of; slots with a cache of their own are masked one after the other."""
    whole = padded(context) * slots
    return padded(min(whole, window * slots + micro_batch)) if window else whole


def _width(shape: ModelShape) -> int:
    """Elements per token that are alive at the widest place of a pass."""
    element_bytes = shape.weights_bytes / max(1, shape.parameters)
    embedding = max(1, shape.embedding)
    widest = max(_layer_width(layer, shape, element_bytes) for layer in set(shape.layers))  # most are alike
    # Embeddings that each layer has of its own are looked up for all layers at once.
    looked_up = shape.embedding_bytes / element_bytes / max(1, shape.vocabulary) - embedding
    return round(widest + (looked_up if looked_up > 2 * embedding else 0))


def _layer_width(layer: Layer, shape: ModelShape, element_bytes: float) -> float:
    embedding = max(1, shape.embedding)
    expert = layer.expert_bytes / element_bytes / max(1, shape.experts) / (3 * embedding)
    routed = 2 * shape.experts_used * (expert + embedding) if layer.expert_bytes else 0.0
    columns = (layer.weights_bytes - layer.expert_bytes) / element_bytes / embedding
    if layer.state_bytes and columns <= _MIXER * embedding:
        return max(routed, 7 * columns / 3)
    # Three matrices of a feed-forward network are left when queries and output, keys and values are taken off.
    feed_forward = max(0.0, columns - 2 * embedding - layer.keys - layer.values) / 3
    # Which of the two it is depends on what fits where the attention's buffers were.
    return max(routed, min(3 * feed_forward + 4 * embedding, 4 * feed_forward + embedding))
