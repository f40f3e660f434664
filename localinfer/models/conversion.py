"""What is asked of the child that quantizes a model, and what it answers.

Values only. A ``Conversion`` is answered by one ``Converted`` or ``Unconverted``, after ``Tensors`` for every tensor.
"""

from localinfer.types import Fault, Value

PLAIN = frozenset({"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"})  # types that no quantizer has made


class Conversion(Value, frozen=True):
    """Make ``target`` of the model whose (first) file is ``source``, with its weights in ``quantization``.

    ``only_sizes``: nothing is written; the sizes are those it would have. ``requantize`` allows weights that are
    quantized already. ``threads`` None is one for each core.
    """

    source: str
    target: str
    quantization: str
    threads: int | None = None
    requantize: bool = False
    only_sizes: bool = False


class Tensors(Value, frozen=True, tag=True):
    """``done`` of ``total`` tensors are begun."""

    done: int
    total: int


class Converted(Value, frozen=True, tag=True):
    """It is done. Sizes are those of the weights, without the header, and rounded to 0.01 MiB. ``quantization`` is the
    usual name of the type; ``description`` is what llama.cpp says of the file it wrote, empty where it wrote none.
    ``bits_per_weight`` is the mean of the new one. ``fallbacks`` tensors have a shape that the type cannot hold, and
    are in a larger one. ``needs_matrix``: only an importance matrix would make it usable."""

    quantization: str
    before_bytes: int
    after_bytes: int
    bits_per_weight: float
    description: str = ""
    fallbacks: int = 0
    needs_matrix: bool = False


class Unconverted(Value, frozen=True, tag=True):
    """Why it was not done. What was written of it is to be deleted."""

    error: Fault


Report = Tensors | Converted | Unconverted
