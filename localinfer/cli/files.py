"""``localinfer search``, ``pull``, ``rm`` and ``where``: getting models, finding and deleting their files."""

import json
import shutil
import sys
from pathlib import Path

import msgspec

from localinfer import removal, settings
from localinfer.acquire import acquire
from localinfer.cli import console, words
from localinfer.errors import BadRequest, ModelNotFound
from localinfer.models import found, gguf, hf_cache, store
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
    removal.check(model)
    if not yes and not sys.stdin.isatty():
        raise BadRequest("Deleting has to be agreed to.", "Add --yes.", param="yes")
    console.write(f"{model.name}: {words.download_size(model.size_bytes)} in {model.paths[0].parent}\n")
    if not yes and not _agreed():
        console.write("Nothing was deleted.\n")
        return
    console.write(f"Deleted; {words.download_size(removal.delete(model))} are free again.\n")


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
        ("chats", settings.history_file()),
        ("settings", settings.config_file()),
        ("logs", settings.log_dir()),
        ("state", settings.state_dir()),
    ):
        console.write(f"{name:<10} {folder}\n")


def _paths(reference: str) -> tuple[Path, ...]:
    """The files that ``reference`` names; none if there are none here."""
    try:
        return store.resolve(reference).paths
    except ModelNotFound:
        return ()


def _remove_parts(reference: str, *, yes: bool) -> bool:
    """Delete what stopped downloads of a repository have left; whether there was anything."""
    left = removal.leftovers(reference)
    if left is None:
        return False
    size = words.download_size(left.size_bytes)
    where = left.paths[0].parent
    console.write(f"A download of {console.safe(reference)} was stopped; {size} are in {where}\n")
    if not yes and not _agreed():
        console.write("Nothing was deleted.\n")
        return True
    removal.clear(left)
    console.write(f"Deleted; {size} are free again.\n")
    return True


def _agreed() -> bool:
    console.ask("Delete it? [y/N] ")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _short(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k" if number >= 1e4 else f"{number:,}"
