"""Which models of the shared cache localinfer has fetched: only those may it delete again.

One file in the state folder; what it does not name belongs to somebody else.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from localinfer import kept, settings
from localinfer.errors import StorageUnavailable
from localinfer.lock import exclusive

_FILE = "fetched.json"


def record(paths: Sequence[Path]) -> None:
    """These files were fetched by us. Raises ``StorageUnavailable``."""
    _change(lambda known: [*known, *(path for path in map(str, paths) if path not in known)])


def forget(paths: Sequence[Path]) -> None:
    """These files are gone."""
    gone = set(map(str, paths))
    _change(lambda known: [path for path in known if path not in gone])


def ours(paths: Iterable[Path]) -> bool:
    """Whether all of the files were fetched by us."""
    known = set(kept.load(settings.state_dir() / _FILE, list[str], []))
    return all(str(path) in known for path in paths)


def delete(paths: Sequence[Path]) -> int:
    """Delete files of the cache that we fetched; the bytes that became free. What other snapshots hold stays.

    Raises ``StorageUnavailable``.
    """
    freed = 0
    try:
        for path in paths:
            blob = path.resolve()
            size = blob.stat().st_size if blob.exists() else 0
            root = _repository(path)
            path.unlink(missing_ok=True)
            if blob == path or not _held(root, blob):
                blob.unlink(missing_ok=True)
                freed += size
            _sweep(path.parent, root)
    except OSError as error:
        raise StorageUnavailable(
            f"{error.filename or paths[0]} cannot be deleted: {error.strerror}.", "Check who may write there."
        ) from error
    forget(paths)
    return freed


def _repository(path: Path) -> Path:
    """The folder of the repository in the cache, or the file's own folder."""
    return next((folder for folder in path.parents if folder.name.startswith("models--")), path.parent)


def _held(root: Path, blob: Path) -> bool:
    """Whether another snapshot still points to the blob."""
    return any(link.is_symlink() and link.resolve() == blob for link in (root / "snapshots").rglob("*"))


def _sweep(folder: Path, root: Path) -> None:
    """Remove folders that became empty, up to the repository's."""
    while folder not in (root, folder.parent) and root in folder.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _change(change: Callable[[list[str]], list[str]]) -> None:
    path = settings.make_folder(settings.state_dir()) / _FILE
    try:
        with exclusive(path.with_suffix(".lock"), lambda: None):
            kept.replace(path, change(kept.load(path, list[str], [])))
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}.", "Free some space.") from error
