"""A quick look at GGUF files, before native code that aborts on a bad one opens them, or before they are fetched."""

from localinfer.models.gguf.header import Header, Tensor, check, read
from localinfer.models.gguf.quants import TYPES, TensorType
from localinfer.models.gguf.reader import LocalFile, Source, Start
from localinfer.models.gguf.shards import check_all
from localinfer.models.gguf.vocabulary import Vocabulary, difference, vocabulary, vocabulary_of

__all__ = [
    "TYPES",
    "Header",
    "LocalFile",
    "Source",
    "Start",
    "Tensor",
    "TensorType",
    "Vocabulary",
    "check",
    "check_all",
    "difference",
    "read",
    "vocabulary",
    "vocabulary_of",
]
