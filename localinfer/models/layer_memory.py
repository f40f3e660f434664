"""What each layer of a GGUF model keeps in memory while it runs, from its metadata and the rules of its architecture.

Source: llama.cpp at 0c1e57098, ``llama-hparams.cpp`` and the constructors of its caches. It knows neither weights nor
how long a context is.
"""

from typing import NamedTuple, NoReturn

from localinfer.errors import ModelFileInvalid
from localinfer.models.architectures import ARCHITECTURES, Architecture
from localinfer.models.gguf import Header
from localinfer.models.names import printable

_F32_BYTES = 4  # recurrent states are never kept in less
_MOST_LAYERS = 512  # llama.cpp knows no more
_MOST = 1 << 32
_SHARING_CONTEXT = 1 << 20  # models trained with so many tokens share indexers without saying which


class LayerMemory(NamedTuple):
    """What one layer keeps: elements of ``keys`` and ``values`` per token, of the last ``window`` tokens (0: of all),
    and a recurrent state of ``state_bytes`` per sequence."""

    keys: int = 0
    values: int = 0
    window: int = 0
    state_bytes: int = 0


class Keys:
    """The metadata keys of one architecture, named without its prefix. What is not there is the default.

    Every method raises ``ModelFileInvalid`` for a value of another kind.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self.architecture = header.architecture

    def __contains__(self, name: str) -> bool:
        return f"{self.architecture}.{name}" in self._header.metadata

    def count(self, name: str, default: int = 0) -> int:
        """A number. Where there is one per layer, it counts as not there."""
        value = self._header.metadata.get(f"{self.architecture}.{name}", default)
        return default if isinstance(value, tuple) else self._counted(name, value)

    def each(self, name: str, layers: int, default: int = 0) -> tuple[int, ...]:
        """A number for each of so many layers, from a list or one number for all."""
        if (listed := self.listed(name)) is None:
            return (self.count(name, default),) * layers
        if len(listed) != layers:
            self._fail(name, f"has {len(listed)} values for {layers} layers")
        return listed

    def listed(self, name: str) -> tuple[int, ...] | None:
        """The numbers of a list, of any length; true is 1. None if it is not there or is no list."""
        key = f"{self.architecture}.{name}"
        if key in self._header.counts:
            self._fail(name, f"has {self._header.counts[key]:,} values")
        value = self._header.metadata.get(key)
        return tuple(self._counted(name, item) for item in value) if isinstance(value, tuple) else None

    def _counted(self, name: str, value: object) -> int:
        if not isinstance(value, int) or not 0 <= value < _MOST:
            self._fail(name, "is not a count")
        return int(value)

    def _fail(self, name: str, reason: str) -> NoReturn:
        raise ModelFileInvalid(
            f"{printable(self._header.name or 'This model', 80)} cannot be loaded: its metadata key "
            f"“{printable(self.architecture, 40)}.{name}” {reason}.",
            "Fetch the file again, or get it from elsewhere.",
        )


def layer_memory(header: Header) -> tuple[LayerMemory, ...] | None:
    """What every block keeps, in order, or None where the architecture is not understood.

    There may be more entries than blocks with weights. Raises ``ModelFileInvalid``.
    """
    rules = ARCHITECTURES.get(header.architecture)
    keys = Keys(header)
    blocks = keys.count("block_count") * keys.count("num_loops", 1)
    if rules is None or not 0 < blocks <= _MOST_LAYERS or keys.count("nextn_predict_layers") > blocks:
        return None
    return _Layers(rules, keys, blocks).all()


def trunk_layers(header: Header) -> int:
    """How many blocks are loaded: those for multi-token prediction, at the end, are not."""
    keys = Keys(header)
    return max(0, keys.count("block_count") - keys.count("nextn_predict_layers"))


class _Layers:
    def __init__(self, rules: Architecture, keys: Keys, blocks: int) -> None:
        self.rules = rules
        self.keys = keys
        self.blocks = blocks
        self.trunk = blocks - keys.count("nextn_predict_layers")
        once = keys.count("block_count")
        self.embedding = keys.count("embedding_length")
        self.heads = keys.each("attention.head_count", once) * (blocks // once)
        self.kv_heads = (
            keys.each("attention.head_count_kv", once) * (blocks // once)
            if "attention.head_count_kv" in keys
            else self.heads
        )
        each_head = self.embedding // self.heads[0] if self.heads[0] else 0
        self.head_sizes = tuple(self._head_size(name, each_head) for name in ("key", "value"))
        self.latent = bool(keys.count("attention.key_length_mla") and keys.count("attention.value_length_mla"))

    def _head_size(self, name: str, default: int) -> tuple[int, int]:
        """Elements of one head's keys or values, in a layer with all tokens and in one with a window."""
        named = self.heads[0] or self.rules.headless_first
        full = self.keys.count(f"attention.{name}_length", default) if named else 0
        return full, self.keys.count(f"attention.{name}_length_swa", full)

    def all(self) -> tuple[LayerMemory, ...]:
        windows, recurrent, indexed = self._windows(), self._recurrent(), self._indexed()
        kept = self.blocks if self.rules.trailing else self.trunk
        layers = [self._layer(layer, recurrent[layer], windows[layer], indexed=indexed[layer]) for layer in range(kept)]
        if self.rules.router:
            (keys, _), (values, _) = self.head_sizes
            layers.append(LayerMemory(keys=keys, values=values))
        return tuple(layers)

    def _layer(self, layer: int, is_recurrent: bool, window: int, *, indexed: bool) -> LayerMemory:
        state_bytes = self._state_bytes(layer) if is_recurrent else 0
        if not self._attends(layer, is_recurrent):
            return LayerMemory(state_bytes=state_bytes)
        heads, windowed = self.kv_heads[layer], window > 0
        keys, values = (size[windowed] * heads for size in self.head_sizes)
        if self.latent:
            values = 0  # they are read out of the keys
        if indexed:
            keys += self._indexer_keys()
            if self.rules.indexer == "keys_and_values":
                values += self.head_sizes[1][windowed]
        return LayerMemory(keys=keys, values=values, window=window, state_bytes=state_bytes)

    def _attends(self, layer: int, is_recurrent: bool) -> bool:
        if not self.rules.caches or layer >= self._first_shared():
            return False
        match self.rules.recurrent:
            case "all":
                return False
            case "no_heads_no_ff":
                return not is_recurrent and self._feed_forward(layer) == 0
            case "both" | "":
                return True
            case _:
                return not is_recurrent

    def _first_shared(self) -> int:
        if self.rules.shared_from is not None:
            return self.rules.shared_from
        return self.blocks - self.keys.count("attention.shared_kv_layers")

    def _feed_forward(self, layer: int) -> int:
        return self.keys.each("feed_forward_length", self.blocks)[layer]

    def _windows(self) -> tuple[int, ...]:
        """The window of each layer, 0 for those that see all tokens."""
        rules, none = self.rules.windows, (0,) * self.blocks
        if rules is None or (rules.depth and rules.depth != self.trunk):
            return none
        size = self.keys.count("attention.sliding_window", rules.size)
        if not size:
            return none
        size = rules.fixed or size
        if (listed := self.keys.listed("attention.sliding_window_pattern")) is not None:
            padded = (*listed, *none)[: self.blocks]
            return tuple(size if flag else 0 for flag in padded)
        every = rules.every
        if every is None:
            return none
        every = self.keys.count("attention.sliding_window_pattern", every)
        full = 0 if rules.full_first else every - 1
        return tuple(size if every == 0 or layer % every != full else 0 for layer in range(self.blocks))

    def _recurrent(self) -> tuple[bool, ...]:
        """Which layers have a recurrent state."""
        return tuple(layer < self.trunk and here for layer, here in enumerate(self._marked_recurrent()))

    def _marked_recurrent(self) -> tuple[bool, ...]:
        layers = range(self.blocks)
        match self.rules.recurrent:
            case "all" | "both":
                return (True,) * self.blocks
            case "no_kv_heads":
                return tuple(not self.kv_heads[layer] for layer in layers)
            case "no_heads_no_ff":
                return tuple(not self.kv_heads[layer] and not self._feed_forward(layer) for layer in layers)
            case "interval":
                if "attention.recurrent_layers" in self.keys:
                    return tuple(map(bool, self.keys.each("attention.recurrent_layers", self.blocks)))
                every = self.keys.count("full_attention_interval", self.rules.interval) or 1
                return tuple((layer + 1) % every != 0 for layer in layers)
            case _:
                return (False,) * self.blocks

    def _state_bytes(self, layer: int) -> int:
        """Bytes of a recurrent layer's state: what its convolutions remember, and the state itself."""
        count = self.keys.count
        kernel, heads = count("ssm.conv_kernel"), self.heads[0]
        match self.rules.state:
            case "wkv":
                elements = self.embedding * (count("token_shift_count", 2) + count("wkv.head_size"))
            case "convolution":
                elements = self.embedding * max(0, count("shortconv.l_cache") - 1)
            case "delta":
                size = count("kda.head_dim")
                elements = 3 * (kernel - 1 if kernel else 3) * heads * size + size * size * heads
            case "lightning":
                size = self.head_sizes[0][0]
                elements = size * size * heads
            case "ssm":
                inner, state = count("ssm.inner_size"), count("ssm.state_size")
                elements = max(0, kernel - 1) * (inner + 2 * count("ssm.group_count") * state) + state * inner
        if layer in (self.keys.listed("ple.layers") or ()):
            rows = max(0, count("ple.conv_kernel") - 1) * count("ple.ngram_size")
            elements += rows * count("hyper_connection.count") * self.embedding
        return elements * _F32_BYTES

    def _indexer_keys(self) -> int:
        pooled = "attention.indexer.kpool" in self.keys  # keys, gates and pooled values
        return self.keys.count("attention.indexer.key_length") * (3 if pooled else 1)

    def _indexed(self) -> tuple[bool, ...]:
        """Which layers have an indexer cache of their own."""
        if not self.rules.indexer or not self.keys.count("attention.indexer.top_k"):
            return (False,) * self.blocks
        if self.rules.indexer == "keys_and_values":
            first = self.keys.count("leading_dense_block_count")
            return tuple(layer >= first for layer in range(self.blocks))
        types = self.keys.listed("attention.indexer.types")
        if types is not None:
            return tuple(map(bool, (*types, *(0,) * self.blocks)[: self.blocks]))
        shares = self.rules.indexer == "shared_keys" and self.keys.count("context_length") >= _SHARING_CONTEXT
        return tuple(not shares or layer < 2 or layer % 4 == 2 for layer in range(self.blocks))
