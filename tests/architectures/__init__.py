"""Headers of real models without the models: one for each kind of memory a model can have.

Layers, heads and vocabularies are those of the models named; names and shapes of tensors are llama.cpp's. Each loads in
the sizing child, which reads no weights.
"""

from pathlib import Path

from tests.architectures import recurrent, transformers
from tests.architectures.writing import Synthetic
from tests.architectures.writing import write_header as _write

ARCHITECTURES: dict[str, Synthetic] = {
    "llama-8b": transformers.llama(4096, 32, 32, 14_336),
    "llama-70b": transformers.llama(8192, 80, 64, 28_672),
    "qwen3": transformers.qwen3(),
    "qwen3moe": transformers.qwen3moe(),
    "gpt-oss": transformers.gpt_oss(),
    "gemma2": transformers.gemma2(),
    "gemma3": transformers.gemma3(),
    "gemma3n": transformers.gemma3n(),
    "gemma4": transformers.gemma4(),
    "deepseek2": transformers.deepseek2(),
    "mamba": recurrent.mamba(),
    "mamba2": recurrent.mamba2_model(),
    "lfm2": recurrent.lfm2(),
    "falcon-h1": recurrent.falcon_h1(),
    "granitehybrid": recurrent.granite_hybrid(),
    "qwen35": recurrent.qwen35(),
    "qwen3next": recurrent.qwen3next(),
    "nemotron_h": recurrent.nemotron_h(),
    "rwkv7": recurrent.rwkv7(),
}


def write_header(folder: Path, name: str) -> Path:
    """The header of ``ARCHITECTURES[name]`` in ``folder``, in a sparse file of the model's length."""
    return _write(folder, name, ARCHITECTURES[name])
