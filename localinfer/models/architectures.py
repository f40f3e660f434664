"""Which rules every architecture of GGUF files follows for what its layers keep in memory: one table.

Source: llama.cpp at 0c1e57098, ``create_memory`` and the ``load_arch_hparams`` of each model. Architectures
that are not here are not understood. It does not know the rules themselves (``layer_memory``).
"""

from typing import Literal, NamedTuple

Recurrence = Literal["", "all", "both", "no_kv_heads", "no_heads_no_ff", "interval"]
State = Literal["ssm", "wkv", "convolution", "delta", "lightning"]


class Windows(NamedTuple):
    """Which layers see only a sliding window of tokens, unless the metadata have a list of them.

    ``every``: all but every so-many-th layer; 0: all; None: only a list says it. ``full_first``: the full layer is the
    first of ``every``, not the last. ``size`` is the window where the metadata name none, ``fixed`` the window whatever
    size they name. ``depth`` is the only number of layers for which this holds, 0 for any.
    """

    every: int | None
    full_first: bool = False
    size: int = 0
    fixed: int = 0
    depth: int = 0


class Architecture(NamedTuple):
    """The rules one architecture follows.

    ``caches``: attention keeps keys and values. ``recurrent`` is which layers are: all; all, and they attend as well;
    those without KV heads; those without KV heads and feed-forward; all but every ``interval``-th. ``state`` is what
    they keep. ``indexer``: a second cache chooses what attention sees, of keys (which layers may share), or of keys and
    values. ``shared_from``: later layers use the caches of earlier ones. ``router``: one more layer, of one head,
    chooses adapters. ``trailing``: the blocks for multi-token prediction keep a cache, though they are not loaded.
    ``headless_first``: heads have a size although the first layer has none.
    """

    caches: bool = True
    windows: Windows | None = None
    recurrent: Recurrence = ""
    interval: int = 4
    state: State = "ssm"
    indexer: Literal["", "keys", "shared_keys", "keys_and_values"] = ""
    shared_from: int | None = None
    router: bool = False
    trailing: bool = False
    headless_first: bool = False


_PLAIN = """
apertus arcee arctic baichuan bailingmoe bailingmoe2 bitnet bloom chameleon chatglm codeshell cogvlm command-r dbrx deci
deepseek deepseek2 deepseek2-ocr dots1 ernie4_5 ernie4_5-moe exaone falcon gemma glm4 glm4moe gpt2 gptneox granite
granitemoe grok grovemoe hrm_text hunyuan-dense hunyuan-moe hunyuan_vl hy_v3 internlm2 jais jais2 llama llama-embed
maincoder minicpm minicpm3 minimax-m2 mistral3 mistral4 mpt nanbeige nemotron olmo olmoe openelm orion paddleocr
pangu-embedded phi2 phi3 phimoe plamo plm qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3vl qwen3vlmoe refact seed_oss
smollm3 stablelm starcoder starcoder2 talkie xverse
"""
_NO_CACHE = """
bert dream eurobert gemma-embedding jina-bert-v2 jina-bert-v3 llada llada-moe modern-bert neo-bert nomic-bert
nomic-bert-moe rnd1
"""
_EVERY_FOURTH_FULL = "afmoe cohere2 mellum muse-glimmer olmo2"
_LISTED_WINDOWS = "gemma4 granite_swa maple mimo2 spark2_5 step35"


def _all(names: str, rules: Architecture) -> dict[str, Architecture]:
    return dict.fromkeys(names.split(), rules)


ARCHITECTURES: dict[str, Architecture] = {
    **_all(_PLAIN, Architecture()),
    **_all(_NO_CACHE, Architecture(caches=False)),
    # sliding windows
    **_all(_EVERY_FOURTH_FULL, Architecture(windows=Windows(4))),
    **_all(_LISTED_WINDOWS, Architecture(windows=Windows(None))),
    "cohere2moe": Architecture(windows=Windows(4, full_first=True)),
    "exaone-moe": Architecture(windows=Windows(4, size=128)),
    "exaone4": Architecture(windows=Windows(4, size=4096, depth=64)),
    "gemma2": Architecture(windows=Windows(2, size=4096)),
    "gemma3": Architecture(windows=Windows(6)),
    "gemma3n": Architecture(windows=Windows(5), shared_from=20),
    "gpt-oss": Architecture(windows=Windows(2)),
    "laguna": Architecture(windows=Windows(4, full_first=True)),
    "llama4": Architecture(windows=Windows(4, size=8192, fixed=8192)),
    "plamo3": Architecture(windows=Windows(8)),
    "smallthinker": Architecture(windows=Windows(4, full_first=True, fixed=4096)),
    # a second cache
    "deepseek32": Architecture(indexer="keys"),
    "dots3note": Architecture(windows=Windows(None), indexer="keys"),
    "glm5-next": Architecture(recurrent="no_kv_heads", state="delta", indexer="keys"),
    "glm-dsa": Architecture(indexer="shared_keys"),
    "hy_v4": Architecture(indexer="keys", trailing=True),
    "minimax-m3": Architecture(indexer="keys_and_values", trailing=True),
    "qwen4exp": Architecture(recurrent="interval", indexer="keys"),
    # recurrent layers, alone and between attention
    **_all("mamba mamba2", Architecture(recurrent="all")),
    **_all("arwkv7 rwkv6 rwkv6qwen2 rwkv7", Architecture(recurrent="all", state="wkv")),
    **_all("granitehybrid jamba", Architecture(recurrent="no_kv_heads")),
    **_all("kimi-k3 kimi-linear", Architecture(recurrent="no_kv_heads", state="delta")),
    **_all("qwen35 qwen35moe qwen3next", Architecture(recurrent="interval")),
    **_all("nemotron_h nemotron_h_moe", Architecture(recurrent="no_heads_no_ff", trailing=True)),
    "bailingmoe3": Architecture(recurrent="no_kv_heads", state="delta", trailing=True),
    "falcon-h1": Architecture(recurrent="both"),
    "lfm2": Architecture(recurrent="no_kv_heads", state="convolution", windows=Windows(0)),
    "lfm2moe": Architecture(recurrent="no_kv_heads", state="convolution"),
    "minimax-01": Architecture(recurrent="interval", interval=8, state="lightning"),
    "plamo2": Architecture(recurrent="no_kv_heads", headless_first=True),
    # an attention layer that no block has
    "graniteswitch": Architecture(router=True),
}
