"""The Hugging Face cache: where it is, how files lie in it, and how one is put there so that other tools find it.

    models--OWNER--REPO/blobs/OID                          the content, named after its hash
    models--OWNER--REPO/snapshots/COMMIT/PATH              a relative link to it, or the file where links are impossible
    models--OWNER--REPO/refs/REVISION                      the commit that a branch stood at
    .locks/models--OWNER--REPO/OID.lock                    held by whoever fetches it

It does not know where files come from, and needs no library for that: listing models must be quick. The layout is that
of huggingface_hub, whose own functions read what this module writes.
"""

import os
import shutil
from pathlib import Path

from localinfer.models.quantizations import RepoFile

_TRUE = ("1", "ON", "YES", "TRUE")


def cache_dir() -> Path:
    """The folder of the cache, as the environment says; it need not exist."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    own = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    return _expanded(own) if own else _expanded(os.environ.get("HF_HOME") or f"{home}/huggingface") / "hub"


def is_true(name: str) -> bool:
    """Whether the environment variable ``name`` is switched on, in the words of huggingface_hub."""
    return os.environ.get(name, "").upper() in _TRUE


def repo_dir(cache: Path, repo: str) -> Path:
    """The folder of ``repo``."""
    return cache / f"models--{repo.replace('/', '--')}"


def blob_path(cache: Path, repo: str, oid: str) -> Path:
    """Where the content ``oid`` lies."""
    return repo_dir(cache, repo) / "blobs" / oid


def snapshot_dir(cache: Path, repo: str, commit: str) -> Path:
    """The folder of the files of ``repo`` at ``commit``."""
    return repo_dir(cache, repo) / "snapshots" / commit


def lock_path(cache: Path, repo: str, oid: str) -> Path:
    """The lock of the content ``oid``; huggingface_hub takes the same one."""
    return cache / ".locks" / repo_dir(cache, repo).name / f"{oid}.lock"


def find(cache: Path, repo: str, commit: str, file: RepoFile) -> Path | None:
    """The path of ``file`` in the snapshot, if it is there whole. Its hash is not computed."""
    path = snapshot_dir(cache, repo, commit) / file.path
    return path if _size(path) == file.size_bytes else None


def has_blob(cache: Path, repo: str, file: RepoFile) -> bool:
    """Whether the content of ``file`` is there whole."""
    return _size(blob_path(cache, repo, file.oid)) == file.size_bytes


def place(cache: Path, repo: str, commit: str, file: RepoFile, *, fresh: bool) -> Path:
    """Show the content of ``file`` in the snapshot: its path there. Raises ``OSError``.

    Where links are impossible the content itself is moved there, or copied if it is not ``fresh``, because somebody
    else may be using it where it is.
    """
    blob, path = blob_path(cache, repo, file.oid), snapshot_dir(cache, repo, commit) / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    if not _link(blob, new):
        if fresh:
            blob.replace(new)
        else:
            shutil.copyfile(blob, new)
    new.replace(path)
    return path


def set_ref(cache: Path, repo: str, revision: str, commit: str) -> None:
    """Remember that ``revision`` stands at ``commit``, whose snapshot exists. Raises ``OSError``."""
    path = repo_dir(cache, repo) / "refs" / revision
    if revision == commit:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(commit, "ascii")
    new.replace(path)


def _link(blob: Path, path: Path) -> bool:
    """Make ``path`` a relative link to ``blob``. Whether that is possible here."""
    if is_true("HF_HUB_DISABLE_SYMLINKS"):
        return False
    try:
        path.symlink_to(os.path.relpath(blob, path.parent))
    except (OSError, NotImplementedError):
        return False
    return True


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _expanded(text: str) -> Path:
    return Path(os.path.expandvars(os.path.expanduser(text)))  # noqa: PTH111 - before the variables, as the library does
