"""The library's quantizer: its types by their usual names, its log read while it works, and a look at what it wrote.

It knows nothing of disks, nor of whether a conversion makes sense.
"""

import ctypes
import os
import re
from collections.abc import Callable

from backends.llama_cpp.library import LogLines, capture_log, lib
from backends.llama_cpp.native import NativeModel
from localinfer.errors import BadRequest, LocalInferError, ModelFileInvalid
from localinfer.models.conversion import Conversion, Converted

_PREFIXES = ("LLAMA_FTYPE_MOSTLY_", "LLAMA_FTYPE_ALL_")
_NOT_MADE = {"GUESSED", "NVFP4", "Q2_0"}  # not a type, not made by this library, not read by ours
_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "FP16": "F16", "FP32": "F32"}
_TENSOR = re.compile(r"\[\s*(\d+)/\s*(\d+)\]")
_SIZE = re.compile(r"(model|quant) size\s+=\s+([\d.]+) MiB \(([\d.]+) BPW\)")
_FALLBACKS = re.compile(r"(\d+) of \d+ tensor\(s\) required fallback")
_NEEDS_MATRIX = "will require an imatrix"


def types() -> dict[str, int]:
    """What the library can make: its numbers by the usual names, as in Q4_K_M."""
    found = {}
    for name in dir(lib):
        for prefix in _PREFIXES:
            if name.startswith(prefix) and (short := name.removeprefix(prefix)) not in _NOT_MADE:
                found[short] = int(getattr(lib, name))
    return dict(sorted(found.items(), key=lambda item: item[1]))


def named(quantization: str) -> str:
    """The usual name of the type that ``quantization`` means, in any case. Raises ``BadRequest``."""
    known = types()
    name = quantization.strip().upper().replace("-", "_")
    name = _ALIASES.get(name, name)
    if name not in known:
        raise BadRequest(
            f"There is no quantization “{quantization}”.", f"Choose one of: {', '.join(known)}.", param="type"
        )
    return name


def name_of(file_type: int) -> str:
    """The usual name of a type by the library's number; empty for one that has none."""
    number = file_type & ~int(lib.LLAMA_FTYPE_GUESSED)
    return next((name for name, known in types().items() if known == number), "")


def convert(asked: Conversion, progress: Callable[[int, int], None]) -> Converted:
    """Do it; ``progress`` hears of (tensors begun, all tensors). Raises ``BadRequest``, ``ModelFileInvalid``,
    ``LocalInferError``."""
    lib.llama_backend_init()
    quantization = named(asked.quantization)
    params = lib.llama_model_quantize_default_params()
    params.nthread = asked.threads or os.cpu_count() or 1
    params.ftype = types()[quantization]
    params.allow_requantize = asked.requantize
    params.dry_run = asked.only_sizes
    with capture_log(_Listening(progress)) as log:
        failed = lib.llama_model_quantize(os.fsencode(asked.source), os.fsencode(asked.target), ctypes.byref(params))
    if failed:
        raise _failure(quantization, log)
    sizes = {match[1]: match for line in log.lines if (match := _SIZE.search(line))}
    if {"model", "quant"} - sizes.keys():
        raise LocalInferError("llama.cpp did not say what it has made.", "See the log.")
    return Converted(
        quantization=quantization,
        before_bytes=_mib(sizes["model"][2]),
        after_bytes=_mib(sizes["quant"][2]),
        bits_per_weight=float(sizes["quant"][3]),
        description="" if asked.only_sizes else _verified(asked.target, quantization),
        fallbacks=sum(int(match[1]) for line in log.lines if (match := _FALLBACKS.search(line))),
        needs_matrix=any(_NEEDS_MATRIX in line for line in log.lines),
    )


class _Listening(LogLines):
    """Log lines, of which those about tensors are told at once."""

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        super().__init__()
        self._progress = progress

    def add(self, level: int, text: str) -> None:
        super().add(level, text)
        if match := _TENSOR.match(text):
            self._progress(int(match[1]), int(match[2]))


def _verified(path: str, quantization: str) -> str:
    """What the library says of the file it wrote, opened without its weights. Raises ``ModelFileInvalid``."""
    model = NativeModel(path, gpu_layers=0, device="cpu", progress=lambda _: None, only_sizes=True)
    try:
        found = int(lib.llama_model_ftype(model.pointer))
        if found != types()[quantization]:
            name = name_of(found) or f"of type {found}"
            raise ModelFileInvalid(f"What was written is {name}, not {quantization}.", "See the log for the reason.")
        return model.describe()
    finally:
        model.close()


def _failure(quantization: str, log: LogLines) -> LocalInferError:
    reason = log.errors[-1].split("failed to quantize: ")[-1] if log.errors else "llama.cpp gave no reason"
    if "requantizing" in reason:
        return BadRequest(
            "The model is quantized already, and what is lost cannot be had back.",
            "Make it from the F16 file of the model, or do it all the same (--force).",
            param="type",
        )
    return LocalInferError(f"llama.cpp could not make {quantization}: {reason}.", "See the log for the details.")


def _mib(text: str) -> int:
    return round(float(text) * 2**20)
