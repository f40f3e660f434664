"""A quick look at GGUF files, before native code that aborts on a bad one opens them, or before they are fetched."""

from localinfer.models.gguf.header import Header, Tensor, check, read
from localinfer.models.gguf.quants import TYPES, TensorType
from localinfer.models.gguf.reader import LocalFile, Source
from localinfer.models.gguf.shards import check_all

__all__ = ["TYPES", "Header", "LocalFile", "Source", "Tensor", "TensorType", "check", "check_all", "read"]
