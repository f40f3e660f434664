"""Having the files of a model from the hub on this machine: in the Hugging Face cache, which other tools share.

It knows a list of files and the folder they go to: what is there already, whether the rest fits on the disk, who else
is fetching it. How one file is fetched is ``download``'s business.
"""

import contextlib
import errno
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from localinfer import settings
from localinfer.errors import NotEnoughDisk, StorageUnavailable
from localinfer.lock import exclusive
from localinfer.models import hf_cache, journal
from localinfer.models.download import CONNECTIONS, download, part_path
from localinfer.models.hub import Hub, Repo
from localinfer.models.progress import FetchProgress, Pace, Stage
from localinfer.models.quantizations import RepoFile

_MARGIN_BYTES = 64_000_000


def pull(
    hub: Hub,
    repo: Repo,
    files: Sequence[RepoFile],
    progress: Callable[[FetchProgress], None],
    *,
    cache: Path | None = None,
    connections: int = CONNECTIONS,
    piece: int | None = None,
) -> tuple[Path, ...]:
    """The paths of ``files`` in the cache, in order; those that are not there are fetched, as one unit.

    ``progress`` is called ten times a second from this thread; an exception from it, or Ctrl-C, ends the fetch and
    keeps what has arrived for the next call. Raises ``Offline``, ``DownloadFailed``, ``Gated``, ``ModelNotFound``,
    ``NotEnoughDisk``, ``StorageUnavailable``.
    """
    cache = cache or hf_cache.cache_dir()
    missing = [file for file in files if hf_cache.find(cache, repo.id, repo.commit, file) is None]
    if missing:
        unit = _Unit(hub, repo, files, progress, cache)
        with unit.disk_errors():
            unit.check_disk(missing)
            for file in missing:
                unit.fetch(file, connections, piece)
            hf_cache.set_ref(cache, repo.id, repo.revision, repo.commit)
    return tuple(hf_cache.snapshot_dir(cache, repo.id, repo.commit) / file.path for file in files)


class _Unit:
    """Files that are fetched together, with one progress."""

    def __init__(
        self,
        hub: Hub,
        repo: Repo,
        files: Sequence[RepoFile],
        progress: Callable[[FetchProgress], None],
        cache: Path,
    ) -> None:
        self._hub = hub
        self._repo = repo
        self._files = files
        self._progress = progress
        self._cache = cache
        self._pace = Pace()
        self._done = {file.path: self._present(file) for file in files}

    def check_disk(self, missing: Sequence[RepoFile]) -> None:
        """Fail if what is still to come has no room. Raises ``NotEnoughDisk``."""
        to_come = sum(file.size_bytes - self._present(file) for file in missing)
        free = shutil.disk_usage(settings.make_folder(self._cache)).free
        if to_come and to_come + _MARGIN_BYTES > free:
            raise self._no_disk(to_come, free)

    def fetch(self, file: RepoFile, connections: int, piece: int | None) -> None:
        """Have ``file`` in the cache; wait if another process is fetching it, and take over if that one dies."""
        cache, repo = self._cache, self._repo
        blob = hf_cache.blob_path(cache, repo.id, file.oid)
        lock = hf_cache.lock_path(cache, repo.id, file.oid)
        for folder in (blob.parent, lock.parent, hf_cache.snapshot_dir(cache, repo.id, repo.commit)):
            settings.make_folder(folder)

        def report(done_bytes: int, stage: Stage, notice: str = "") -> None:
            self._report(file, done_bytes, stage, notice)

        with exclusive(lock, lambda: report(self._present(file), "wait")):
            if hf_cache.find(cache, repo.id, repo.commit, file) is None:
                fresh = not hf_cache.has_blob(cache, repo.id, file)
                if fresh:
                    download(self._hub.remote(repo, file), blob, report, connections=connections, piece=piece)
                hf_cache.place(cache, repo.id, repo.commit, file, fresh=fresh)
        self._done[file.path] = file.size_bytes

    @contextlib.contextmanager
    def disk_errors(self) -> Iterator[None]:
        """Turn an error of the file system into one that a person understands."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                to_come = sum(file.size_bytes - self._present(file) for file in self._files)
                raise self._no_disk(to_come, shutil.disk_usage(self._cache).free) from error
            raise StorageUnavailable(
                f"The model folder {self._cache} cannot be used: {error.strerror or error}.",
                "Make it writable, or set HF_HUB_CACHE to a folder where you may write.",
            ) from error

    def _present(self, file: RepoFile) -> int:
        """The bytes of ``file`` that are on this machine."""
        cache, repo = self._cache, self._repo
        if hf_cache.find(cache, repo.id, repo.commit, file) or hf_cache.has_blob(cache, repo.id, file):
            return file.size_bytes
        return min(journal.done_bytes(part_path(hf_cache.blob_path(cache, repo.id, file.oid))), file.size_bytes)

    def _report(self, file: RepoFile, done_bytes: int, stage: Stage, notice: str) -> None:
        if stage == "verify":  # one file alone is read through; the others have nothing to do with it
            self._progress(
                FetchProgress(done_bytes=done_bytes, total_bytes=file.size_bytes, stage=stage, notice=notice)
            )
            return
        self._done[file.path] = done_bytes
        total = sum(one.size_bytes for one in self._files)
        self._progress(self._pace.at(sum(self._done.values()), total, stage, notice))

    def _no_disk(self, to_come: int, free: int) -> NotEnoughDisk:
        needed = to_come + _MARGIN_BYTES
        return NotEnoughDisk(
            f"Fetching {self._repo.id} needs {_megabytes(needed)} of free disk space; {_megabytes(free)} are free.",
            f"Free some space where {self._cache} is, or set HF_HUB_CACHE to another disk. What has arrived is kept.",
            needed_bytes=needed,
            free_bytes=free,
        )


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
