"""How many bytes the context of a model takes: closed forms over its shape.

Source: ``llama-context.cpp``, ``llama-kv-cache.cpp``, ``llama-kv-cache-iswa.cpp`` and ``llama-memory-recurrent.cpp`` of
llama.cpp at 0c1e57098, with flash attention on; ``mlx_lm/models/cache.py``. Weights and compute buffers are elsewhere.
"""

from localinfer.errors import BadRequest
from localinfer.models.gguf import TYPES, TensorType
from localinfer.models.shape import Layer, ModelShape

GRAIN = 256  # both libraries take cells in such steps
KV_TYPES = {
    kind.name.lower(): kind
    for kind in TYPES.values()
    if kind.name in {"F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL"}
}


def kv_bytes(
    shape: ModelShape, *, context: int, slots: int, kv_type: str, micro_batch: int = 512, unified: bool = False
) -> int:
    """Bytes of the KV cache of ``slots`` sequences of ``context`` tokens each; 0 where the layers are not known.

    ``unified``: the slots share one cache. Raises ``BadRequest`` for a ``kv_type`` that no cache has.
    """
    kind = _kind(kv_type)
    return sum(
        (kind.size_bytes(layer.keys) + kind.size_bytes(layer.values))
        * cells(shape, layer, context=context, slots=slots, micro_batch=micro_batch, unified=unified)
        for layer in shape.layers
    )


def token_bytes(shape: ModelShape, *, kv_type: str) -> dict[int, int]:
    """Bytes one token takes in the KV cache, by the window of the layers that keep it (0: no window).

    Raises ``BadRequest`` for a ``kv_type`` that no cache has.
    """
    kind = _kind(kv_type)
    sizes: dict[int, int] = {}
    for layer in shape.layers:
        if size := kind.size_bytes(layer.keys) + kind.size_bytes(layer.values):
            sizes[layer.window] = sizes.get(layer.window, 0) + size
    return sizes


def _kind(kv_type: str) -> TensorType:
    if (kind := KV_TYPES.get(kv_type.lower())) is None:
        raise BadRequest(
            f"There is no KV cache of the type {kv_type}.", f"Choose one of: {', '.join(KV_TYPES)}.", param="kv_type"
        )
    return kind


def cells(shape: ModelShape, layer: Layer, *, context: int, slots: int, micro_batch: int, unified: bool) -> int:
    """Tokens for which one layer has room, all slots together."""
    each, slots = padded(context), max(1, slots)
    if not layer.window:
        return each * slots
    if shape.format == "mlx":
        return min(each, layer.window) * slots
    # A window must hold what a pass adds before what it pushes out is free.
    if unified:
        return padded(min(each * slots, layer.window * slots + micro_batch))
    return padded(min(each, layer.window + micro_batch)) * slots


def state_bytes(shape: ModelShape, *, slots: int) -> int:
    """Bytes of the recurrent states of ``slots`` sequences, whatever their length."""
    return sum(layer.state_bytes for layer in shape.layers) * max(1, slots)


def padded(tokens: int) -> int:
    """``tokens`` in whole steps of both libraries."""
    return -(-max(1, tokens) // GRAIN) * GRAIN
