"""Writing the header of a model that does not exist: its metadata and tensors, and a file of the right length.

The file is sparse, so a model of 70 billion parameters takes a few kilobytes of disk. There is no vocabulary, only its
size: llama.cpp sizes such a file like a real one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter

from localinfer.types import Value

Shape = tuple[int, ...]
Shapes = dict[str, Shape]
Metadata: TypeAlias = "Mapping[str, int | float | bool | str | list[int] | list[bool]]"

ALIGNMENT = 32
# Tensors whose kernels want 32-bit floats, whatever the quantization.
_FLOAT = ("norm", "conv1d", "shortconv.conv", "ssm_a", "ssm_d", "bias", "time_mix", "channel_mix_lerp", "sinks", "rope")
_INPUTS = ("ffn_gate_inp", "altup", "inp_gate", "layer_output_scale")


class Synthetic(Value, frozen=True):
    """One model as its header tells it. ``metadata`` keys are without the architecture's prefix; shapes are as
    llama.cpp names them: the length of a row first. ``quantization`` is that of the large matrices.
    """

    architecture: str
    vocabulary: int
    metadata: dict[str, object]
    shapes: dict[str, Shape]
    quantization: str = "Q4_K"


def write_header(folder: Path, name: str, model: Synthetic) -> Path:
    """Write ``<name>.gguf`` into ``folder``: the header, and nothing up to the length of the whole model."""
    path = folder / f"{name}.gguf"
    writer = GGUFWriter(path, model.architecture)
    writer.add_name(name)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(model.vocabulary)
    for key, value in model.metadata.items():
        _add(writer, f"{model.architecture}.{key}", value)
    size = 0
    for tensor, shape in model.shapes.items():
        kind = _kind(tensor, shape, model.quantization)
        block, block_bytes = GGML_QUANT_SIZES[kind]
        tensor_bytes = int(np.prod(shape)) // block * block_bytes
        # The type given is the one that counts; the numpy type only says that the shape is one of elements.
        writer.add_tensor_info(tensor, shape[::-1], np.dtype(np.float32), tensor_bytes, raw_dtype=kind)
        size += -(-tensor_bytes // ALIGNMENT) * ALIGNMENT
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        start = -(-file.seek(0, 2) // ALIGNMENT) * ALIGNMENT
        file.truncate(start + size)
    return path


def _add(writer: GGUFWriter, key: str, value: object) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case list():
            writer.add_array(key, value)
        case _:
            raise TypeError(f"{key}: {value!r}")


def _kind(name: str, shape: Shape, quantization: str) -> GGMLQuantizationType:
    if len(shape) == 1 or any(part in name for part in _FLOAT) or name.startswith(_INPUTS):
        return GGMLQuantizationType.F32
    if any(part in name for part in _INPUTS):
        return GGMLQuantizationType.F32
    wanted = GGMLQuantizationType[quantization]
    for kind in (wanted, GGMLQuantizationType.Q8_0):
        if shape[0] % GGML_QUANT_SIZES[kind][0] == 0:
            return kind
    return GGMLQuantizationType.F16
