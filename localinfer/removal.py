"""Deleting models: only files that localinfer has fetched, and what stopped downloads of the hub left.

It knows who owns what; it asks nobody for leave and writes to no screen.
"""

from pathlib import Path

from localinfer import settings
from localinfer.errors import BadRequest, StorageUnavailable
from localinfer.models import fetched, hf_cache, references
from localinfer.models.catalog import Quantization
from localinfer.models.found import FoundModel
from localinfer.types import Value

_OWNERS = {
    "localinfer": "localinfer",
    "huggingface": "the Hugging Face cache, which other programs use",
    "lmstudio": "LM Studio",
    "ollama": "Ollama (ollama rm deletes it)",
    "llama.cpp": "llama.cpp's cache",
    "folder": "a folder of yours",
}


class Leftovers(Value, frozen=True):
    """Files of a stopped download."""

    paths: tuple[Path, ...]
    size_bytes: int


def check(model: FoundModel) -> None:
    """Raise ``BadRequest``, which says whose it is, for a model that is not ours to delete."""
    if not _owned(model):
        raise BadRequest(
            f"localinfer did not fetch {model.name}, and does not delete it.",
            f"It belongs to {_OWNERS[model.origin]}: {model.paths[0]}",
            param="model",
        )


def delete(model: FoundModel) -> int:
    """Delete the files of a model that we fetched; the bytes that became free.

    Raises ``BadRequest`` for another's, ``StorageUnavailable``.
    """
    check(model)
    if model.origin == "huggingface":
        return fetched.delete(model.paths)
    freed = 0
    try:
        for path in model.paths:
            size = path.stat().st_size
            path.unlink()
            freed += size
    except OSError as error:
        raise _undeletable(error, model.paths[0]) from error
    return freed


def leftovers(reference: str) -> Leftovers | None:
    """What a stopped download of a repository of the hub has left; None if there is nothing."""
    if not references.may_be_hub(reference):
        return None
    blobs = hf_cache.repo_dir(hf_cache.cache_dir(), references.parse(reference).repo) / "blobs"
    parts = tuple(path for path in blobs.glob("*") if path.name.endswith((".part", ".part.json")))
    return Leftovers(paths=parts, size_bytes=sum(path.stat().st_size for path in parts)) if parts else None


def clear(left: Leftovers) -> None:
    """Delete what a stopped download has left. Raises ``StorageUnavailable``."""
    try:
        for path in left.paths:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise _undeletable(error, left.paths[0]) from error


def _owned(model: FoundModel) -> bool:
    """Whether we fetched it: what came from the package index lies in a folder of its own, the rest is recorded."""
    if model.origin == "huggingface":
        return fetched.ours(model.paths)
    ours = settings.models_dir().resolve()
    packaged = isinstance(model.variant, Quantization) and bool(model.variant.pypi)
    real = all(path.resolve() == ours / path.parent.name / path.name for path in model.paths)  # no link leads away
    return model.ours and packaged and real


def _undeletable(error: OSError, path: Path) -> StorageUnavailable:
    return StorageUnavailable(
        f"{error.filename or path} cannot be deleted: {error.strerror}.", "Check who may write there."
    )
