"""``localinfer search``, ``pull``, ``rm`` and ``where``: getting models, finding and deleting their files."""

import json
import shutil
import sys
from pathlib import Path

import msgspec

from localinfer import settings
from localinfer.acquire import acquire
from localinfer.cli import console, words
from localinfer.errors import BadRequest, ModelNotFound, StorageUnavailable
from localinfer.models import fetched, found, gguf, hf_cache, references, store
from localinfer.models.catalog import Quantization
from localinfer.models.hub import Hub


def search(query: str, *, limit: int, offline: bool, as_json: bool) -> None:
    """Write what the hub has. Raises ``LocalInferError``."""
    if not query.strip():
        raise BadRequest("There is nothing to search for.", "Give words of a name: localinfer search qwen3 4b")
    results = Hub(offline=offline, say=console.note).search(query, limit)
    if as_json:
        console.write(json.dumps(msgspec.to_builtins(results), ensure_ascii=False, indent=1) + "\n")
        return
    if not results and query.strip():
        raise ModelNotFound(f"The hub knows no GGUF or MLX model called “{query}”.", "Try fewer words.")
    rows = [
        (one.id, one.format.upper(), _short(one.downloads), one.updated[:10], "must be accepted" if one.gated else "")
        for one in results
    ]
    width = max(60, min(110, shutil.get_terminal_size().columns))
    words.table(("REPOSITORY", "FORMAT", "DOWNLOADS", "CHANGED", "TERMS"), rows, right=(2,), width=width)
    console.note("\nWhat one holds and what fits here: localinfer show REPOSITORY")


def pull(reference: str, *, offline: bool) -> None:
    """Have a model on this machine. Raises ``LocalInferError``."""
    try:
        with console.fetching(reference) as progress:
            ref = acquire(reference, offline=offline, progress=progress)
    except KeyboardInterrupt:
        console.note(f"What has arrived from the hub is kept: localinfer pull {reference} goes on from there.")
        raise
    gguf.check_all(ref.paths)
    size = sum(path.stat().st_size for path in ref.paths)
    console.write(f"{ref.name} is here ({words.download_size(size)}): {ref.path}\n")


def remove(reference: str, *, yes: bool) -> None:
    """Delete the files of a model, if we fetched them; ask first. Raises ``LocalInferError``."""
    model = found.match(found.find(settings.load()), reference)
    if model is None:
        paths = _paths(reference)
        here = [one for one in found.find(settings.load()) if one.paths == paths]
        if not here and paths and all(path.exists() for path in paths):
            raise BadRequest(f"localinfer did not fetch {paths[0]}, and does not delete it.", "Delete it yourself.")
        model = here[0] if here else None
    if model is None or not all(path.exists() for path in model.paths):
        if not _remove_parts(reference, yes=yes):
            raise ModelNotFound(
                f"“{console.safe(reference)}” is not on this machine.", "See what is: localinfer models"
            )
        return
    if not _owned(model):
        raise BadRequest(
            f"localinfer did not fetch {model.name}, and does not delete it.",
            f"It belongs to {_OWNERS[model.origin]}: {model.paths[0]}",
            param="model",
        )
    if not yes and not sys.stdin.isatty():
        raise BadRequest("Deleting has to be agreed to.", "Add --yes.", param="yes")
    console.write(f"{model.name}: {words.download_size(model.size_bytes)} in {model.paths[0].parent}\n")
    if not yes and not _agreed():
        console.write("Nothing was deleted.\n")
        return
    freed = fetched.delete(model.paths) if model.origin == "huggingface" else _delete(model)
    console.write(f"Deleted; {words.download_size(freed)} are free again.\n")


def where(reference: str | None) -> None:
    """Write where a model is, or where everything is. Raises ``LocalInferError``."""
    if reference is not None:
        ref = store.resolve(reference)
        if not ref.paths or store.missing(ref):
            raise ModelNotFound(f"{ref.name} is not on this machine.", f"Get it: localinfer pull {ref.name}")
        console.write("".join(f"{path}\n" for path in ref.paths))
        return
    for name, folder in (
        ("models", settings.models_dir()),
        ("hub cache", hf_cache.cache_dir()),
        ("settings", settings.config_file()),
        ("logs", settings.log_dir()),
        ("state", settings.state_dir()),
    ):
        console.write(f"{name:<10} {folder}\n")


_OWNERS = {
    "localinfer": "localinfer",
    "huggingface": "the Hugging Face cache, which other programs use",
    "lmstudio": "LM Studio",
    "ollama": "Ollama (ollama rm deletes it)",
    "llama.cpp": "llama.cpp's cache",
    "folder": "a folder of yours",
}


def _paths(reference: str) -> tuple[Path, ...]:
    """The files that ``reference`` names; none if there are none here."""
    try:
        return store.resolve(reference).paths
    except ModelNotFound:
        return ()


def _owned(model: found.FoundModel) -> bool:
    """Whether we fetched it: what came from the package index lies in a folder of its own, the rest is recorded."""
    if model.origin == "huggingface":
        return fetched.ours(model.paths)
    ours = settings.models_dir().resolve()
    packaged = isinstance(model.variant, Quantization) and bool(model.variant.pypi)
    real = all(path.resolve() == ours / path.parent.name / path.name for path in model.paths)  # no link leads away
    return model.ours and packaged and real


def _remove_parts(reference: str, *, yes: bool) -> bool:
    """Delete what stopped downloads of a repository have left; whether there was anything."""
    if not references.may_be_hub(reference):
        return False
    blobs = hf_cache.repo_dir(hf_cache.cache_dir(), references.parse(reference).repo) / "blobs"
    parts = [path for path in blobs.glob("*") if path.name.endswith((".part", ".part.json"))]
    if not parts:
        return False
    size = sum(path.stat().st_size for path in parts)
    console.write(f"A download of {console.safe(reference)} was stopped; {words.download_size(size)} are in {blobs}\n")
    if not yes and not _agreed():
        console.write("Nothing was deleted.\n")
        return True
    for path in parts:
        path.unlink(missing_ok=True)
    console.write(f"Deleted; {words.download_size(size)} are free again.\n")
    return True


def _delete(model: found.FoundModel) -> int:
    freed = 0
    try:
        for path in model.paths:
            size = path.stat().st_size
            path.unlink()
            freed += size
    except OSError as error:
        reason = f"{error.filename or model.paths[0]} cannot be deleted: {error.strerror}."
        raise StorageUnavailable(reason, "Check who may write there.") from error
    return freed


def _agreed() -> bool:
    console.ask("Delete it? [y/N] ")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _short(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k" if number >= 1e4 else f"{number:,}"
