"""What decides how much memory and time a model takes: its layers, what each keeps per token, and where its bytes lie.

It knows no machine and no file format; ``gguf`` and the MLX configuration are turned into it.
"""

from typing import Literal

from localinfer.types import Value


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
    head and its norm; ``tied``: the head is the embeddings, and ``output_bytes`` only the norm. ``experts_used`` of
    ``experts`` routed experts compute a token; both 0 for a dense model. ``layers`` is empty where the architecture is
    not understood: then only the weights are known.
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
    experts: int = 0
    experts_used: int = 0

    @property
    def weights_bytes(self) -> int:
        """Bytes of all tensors."""
        return self.embedding_bytes + self.output_bytes + sum(layer.weights_bytes for layer in self.layers)
