"""What each layer of an MLX model keeps in memory while it runs, from its ``config.json``.

Source: ``make_cache`` and the attention of each model of mlx-lm at d78bf58e2. Models that are not in the table are not
understood. It knows neither weights nor how long a context is.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from localinfer.errors import ModelFileInvalid
from localinfer.models.layer_memory import LayerMemory
from localinfer.models.names import printable

Kind = Literal["full", "window", "recurrent", "both", "none"]

_F32_BYTES = 4
_CONVOLUTION_BYTES = 2  # convolutions remember numbers of the model's own type, 16 bits
_MOST_LAYERS = 512
_MOST = 1 << 32

_KINDS: dict[str, Kind] = {
    "full_attention": "full", "attention": "full", "sliding_attention": "window", "chunked_attention": "window",
    "linear_attention": "recurrent", "mamba": "recurrent", "conv": "recurrent",
    "M": "recurrent", "*": "full", "E": "none", "-": "none", "moe": "none", "mlp": "none",
}  # fmt: skip


class Ssm(NamedTuple):
    """The configuration's names for the size of a state-space layer; ``inner`` are multiplied."""

    inner: tuple[str, ...]
    groups: str
    state: str
    kernel: str


class MlxArchitecture(NamedTuple):
    """The rules one model type follows.

    ``types`` are the keys that may list the kind of each layer. Without a list, all layers are ``first``, but every
    ``every``-th, as the key ``every_key`` may say otherwise, is full. ``keys`` is what a cache keeps: of every head, of
    every head after the latent was spread out, or the latent. ``window_key`` names the size of the windows.
    """

    types: tuple[str, ...] = ()
    first: Kind = "full"
    every: int = 0
    every_key: str = ""
    window_key: str = "sliding_window"
    keys: Literal["heads", "spread", "latent"] = "heads"
    state: Literal["", "delta", "convolution"] | Ssm = ""


_PLAIN = """
Klear apertus bailing_moe cohere deepseek dots1 ernie4_5 ernie4_5_moe exaone gemma gemma2 glm glm4 glm4_moe granite
granitemoe helium hunyuan_v1_dense internlm2 internlm3 mimo minicpm minimax mixtral nemotron olmo olmo2 olmoe phi3
phimoe qwen2 qwen2_moe qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text seed_oss smollm3 solar_open stablelm starcoder2
"""
_LISTED = MlxArchitecture(types=("layer_types",))
_QWEN_HYBRID = MlxArchitecture(first="recurrent", every=4, every_key="full_attention_interval", state="delta")
_MAMBA_OF_GRANITE = Ssm(("mamba_n_heads", "mamba_d_head"), "mamba_n_groups", "mamba_d_state", "mamba_d_conv")

MLX_ARCHITECTURES: dict[str, MlxArchitecture] = {
    **dict.fromkeys(_PLAIN.split(), MlxArchitecture()),
    **dict.fromkeys(("llama", "mellum", "ministral3", "mistral", "olmo3"), _LISTED),
    **dict.fromkeys(("deepseek_v3", "glm4_moe_lite", "kimi_k2"), MlxArchitecture(keys="latent")),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), _QWEN_HYBRID),
    **dict.fromkeys(
        ("lfm2", "lfm2_moe"), MlxArchitecture(types=("layer_types",), first="recurrent", state="convolution")
    ),
    "cohere2": MlxArchitecture(first="window", every=4, every_key="sliding_window_pattern"),
    "deepseek_v2": MlxArchitecture(keys="spread"),
    "falcon_h1": MlxArchitecture(
        first="both", state=Ssm(("mamba_d_ssm",), "mamba_n_groups", "mamba_d_state", "mamba_d_conv")
    ),
    "gemma3": MlxArchitecture(first="window", every=6, every_key="sliding_window_pattern"),
    "gemma3_text": MlxArchitecture(first="window", every=6, every_key="sliding_window_pattern"),
    "gemma3n_text": _LISTED,
    "gemma4_text": MlxArchitecture(
        types=("layer_types",), first="window", every=5, every_key="sliding_window_pattern"
    ),
    "gpt_oss": MlxArchitecture(types=("layer_types",), first="window", every=2),
    "granitemoehybrid": MlxArchitecture(types=("layer_types",), state=_MAMBA_OF_GRANITE),
    "llama4_text": MlxArchitecture(first="window", every=4, window_key="attention_chunk_size"),
    "mamba2": MlxArchitecture(
        first="recurrent", state=Ssm(("num_heads", "head_dim"), "n_groups", "state_size", "conv_kernel")
    ),
    "nemotron_h": MlxArchitecture(
        types=("hybrid_override_pattern", "layers_block_type"),
        state=Ssm(("mamba_num_heads", "mamba_head_dim"), "n_groups", "ssm_state_size", "conv_kernel"),
    ),
}  # fmt: skip


class Config:
    """The part of a ``config.json`` that is about text. What is not there is the default.

    Every method raises ``ModelFileInvalid`` for a value of another kind.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        text = config.get("text_config")
        self._values: Mapping[str, object] = {**config, **text} if isinstance(text, Mapping) else config
        self.model_type = self.text("model_type")

    def text(self, name: str) -> str:
        """A text."""
        value = self._values.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        """Whether something is so."""
        return self._values.get(name) is True

    def count(self, *names: str, default: int = 0) -> int:
        """The first of ``names`` that is there."""
        value = next((found for name in names if (found := self._values.get(name)) is not None), default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
            raise ModelFileInvalid(
                f"The configuration of this model cannot be right: {printable(names[0], 60)} is not a count.",
                "Fetch its config.json again, or get the model from elsewhere.",
            )
        return value

    def listed(self, *names: str) -> tuple[str, ...]:
        """The texts of the first list that is there, or the letters of a text; empty if there is none."""
        for name in names:
            value = self._values.get(name)
            if isinstance(value, str | list | tuple) and value:
                return tuple(str(item) for item in value[: _MOST_LAYERS + 1])
        return ()

    def inside(self, name: str) -> "Config":
        """A part of it."""
        value = self._values.get(name)
        return Config(value if isinstance(value, Mapping) else {})


def mlx_memory(config: Config) -> tuple[LayerMemory, ...] | None:
    """What every layer keeps, in order, or None where the model type is not understood. Raises ``ModelFileInvalid``."""
    rules = MLX_ARCHITECTURES.get(config.model_type)
    kinds = _kinds(config, rules) if rules is not None else ()
    if rules is None or not 0 < len(kinds) <= _MOST_LAYERS or None in kinds:
        return None
    return tuple(_memory(config, rules, kind) for kind in _unshared(config, kinds))


def _kinds(config: Config, rules: MlxArchitecture) -> tuple[Kind | None, ...]:
    """The kind of each layer, None where it is not known; as many as there are, but not endlessly many."""
    if listed := config.listed(*rules.types):
        return tuple(_KINDS.get(name) for name in listed)
    every = config.count(rules.every_key, default=rules.every) if rules.every_key else rules.every
    return tuple(
        "full" if every and layer % every == every - 1 else rules.first
        for layer in range(min(config.count("num_hidden_layers"), _MOST_LAYERS + 1))
    )


def _unshared(config: Config, kinds: tuple[Kind | None, ...]) -> Iterator[Kind]:
    """Later layers of some models use the caches of earlier ones."""
    first_shared = len(kinds) - config.count("num_kv_shared_layers")
    for layer, kind in enumerate(kinds):
        yield kind if kind is not None and layer < first_shared else "none"


def _memory(config: Config, rules: MlxArchitecture, kind: Kind) -> LayerMemory:
    if kind == "none":
        return LayerMemory()
    state = _state_bytes(config, rules) if kind in ("recurrent", "both") else 0
    if kind == "recurrent":
        return LayerMemory(state_bytes=state)
    keys, values = _keys_and_values(config, rules, full=kind != "window")
    window = config.count(rules.window_key) if kind == "window" else 0
    return LayerMemory(keys=keys, values=values, window=window, state_bytes=state)


def _keys_and_values(config: Config, rules: MlxArchitecture, *, full: bool) -> tuple[int, int]:
    heads = config.count("num_attention_heads")
    rope = config.count("qk_rope_head_dim")
    if rules.keys == "latent":
        return config.count("kv_lora_rank") + rope, 0
    if rules.keys == "spread":
        return heads * (config.count("qk_nope_head_dim") + rope), heads * config.count("v_head_dim")
    size = config.count("head_dim", default=config.count("hidden_size") // max(1, heads))
    kv_heads = config.count("num_key_value_heads", default=heads)
    if full:
        size = config.count("global_head_dim", default=size) or size
        if config.flag("attention_k_eq_v"):
            kv_heads = config.count("num_global_key_value_heads", default=kv_heads)
    return kv_heads * size, kv_heads * size


def _state_bytes(config: Config, rules: MlxArchitecture) -> int:
    if isinstance(rules.state, Ssm):
        inner = math.prod(config.count(name) for name in rules.state.inner)
        state = config.count(rules.state.state)
        channels = inner + 2 * config.count(rules.state.groups, default=1) * state
        rows, elements = config.count(rules.state.kernel) - 1, inner * state
    elif rules.state == "delta":
        key_size, value_size = config.count("linear_key_head_dim"), config.count("linear_value_head_dim")
        value_heads = config.count("linear_num_value_heads")
        channels = 2 * key_size * config.count("linear_num_key_heads") + value_size * value_heads
        rows, elements = config.count("linear_conv_kernel_dim", default=4) - 1, value_heads * value_size * key_size
    else:
        rows, channels, elements = config.count("conv_L_cache") - 1, config.count("hidden_size"), 0
    return max(0, rows) * channels * _CONVOLUTION_BYTES + elements * _F32_BYTES
