"""One file from a hub onto the disk: in pieces, by several connections, to be gone on with after any interruption.

It knows a remote file and a destination; it does not know what a model is or which folder that is. While it works there
are ``NAME.part`` and ``NAME.part.json`` beside the destination, which appears only when its hash is right. One process
at a time may fetch one destination: the caller holds a lock.
"""

import contextlib
import functools
import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

from localinfer.errors import DownloadFailed
from localinfer.models.filling import Filler
from localinfer.models.journal import Journal, piece_bytes, sync
from localinfer.models.progress import Stage
from localinfer.models.ranges import RangesIgnored, Remote

Report = Callable[[int, Stage, str], None]

CONNECTIONS = 4

_TICK_S = 0.1
_BLOCK = 1 << 20
_HASHED_AT_ONCE = 16 * _BLOCK
_REHASHED = 4
_JOIN_S = 1.0


def part_path(destination: Path) -> Path:
    """Where the unfinished file lies."""
    return destination.with_name(f"{destination.name}.part")


def download(
    remote: Remote, destination: Path, report: Report, *, connections: int = CONNECTIONS, piece: int | None = None
) -> None:
    """Fetch ``remote`` to ``destination``.

    ``report`` gets the bytes that are done of the stage, the stage and, once each, notices; it is called ten times a
    second from this thread, and an exception from it ends the download and keeps the part. ``piece`` is the length of
    a piece in bytes. Raises ``Offline``, ``DownloadFailed``, ``Gated``, ``ModelNotFound``, ``OSError``.
    """
    size = remote.size_bytes
    journal = Journal.resume(part_path(destination), remote.oid, size, piece or piece_bytes(size))
    journal.part.touch()
    journal.save()
    job = _Job(remote, journal, report)
    job.fetch(connections)
    if not job.right():
        job.repair(connections)
    sync(journal.part)
    journal.part.replace(destination)
    journal.path.unlink(missing_ok=True)


class _Job:
    """Fetching one file. Other threads fill the pieces; the one that runs this reports and hashes."""

    def __init__(self, remote: Remote, journal: Journal, report: Report) -> None:
        self._remote = remote
        self._journal = journal
        self._report = report
        self._hash = _Hash(remote, journal.part)
        self._changed = threading.Condition()
        self._notices: SimpleQueue[str] = SimpleQueue()
        self._ranges = True

    def fetch(self, connections: int) -> None:
        """Fetch all that is missing, hashing along. Raises what ended it."""
        if self._ranges:
            pieces: SimpleQueue[int] = SimpleQueue()
            missing = self._journal.spans()
            for span in missing:
                pieces.put(span.number)
            filler = self._filler()
            try:
                self._run(filler, [lambda: filler.fill(pieces)] * min(connections, len(missing)))
            except RangesIgnored:
                self._ranges = False
                self._notices.put(f"{self._remote.web.host} sends only whole files: one connection, from the start.")
        if not self._ranges:
            filler = self._filler()
            self._run(filler, [filler.pass_over])

    def right(self) -> bool:
        """Whether all the bytes are those that the hub announced."""
        while self._hash.follow(self._journal.contiguous_bytes, _HASHED_AT_ONCE):
            self._tell("verify", lambda: self._hash.position)
        return self._hash.right()

    def repair(self, connections: int) -> None:
        """Find what is wrong and fetch that again. Raises ``DownloadFailed`` if it stays wrong; then nothing is kept.

        A piece that is not on the disk as it was written is known by its checksum. Else each is fetched again and
        compared, until the hash of the whole is right.
        """
        self._notices.put(f"A part of {self._remote.name} is damaged: it is looked for and fetched again.")
        if self._journal.forget_damaged():
            self._hash.restart()
            self.fetch(connections)
        elif not self._ranges:
            self._journal.forget_all()
            self._hash.restart()
            self.fetch(connections)
        if self.right() or (self._ranges and self._replace_differing()):
            return
        self._journal.discard()
        raise DownloadFailed(
            f"{self._remote.name} is not what the hub announced: its hash differs, also when fetched again.",
            "A mirror or proxy between you and the hub may be broken: try again without it.",
        )

    def _replace_differing(self) -> bool:
        """Fetch every piece again and replace those that differ, until the whole is right. Whether it became so."""
        replaced = 0
        for number in range(self._journal.count):
            if self._differs(number):
                replaced += 1
                self._hash.restart()
                # Each look at the whole is a pass over the disk: where much differs, one at the end is enough.
                if replaced <= _REHASHED and self.right():
                    return True
        return replaced > _REHASHED and self.right()

    def _differs(self, number: int) -> bool:
        filler = self._filler()
        self._run(filler, [functools.partial(filler.compare, number)], "verify", lambda: filler.compared_bytes)
        return filler.differed

    def _filler(self) -> Filler:
        return Filler(self._remote, self._journal, self._notices.put)

    def _run(
        self,
        filler: Filler,
        tasks: Sequence[Callable[[], None]],
        stage: Stage = "download",
        done: Callable[[], int] | None = None,
    ) -> None:
        """Run ``tasks`` in threads of their own until all end or one fails, which is raised. ``done`` is reported."""
        errors: list[BaseException] = []
        running = len(tasks)

        def guarded(task: Callable[[], None]) -> None:
            nonlocal running
            try:
                task()
            except BaseException as error:
                errors.append(error)
            with self._changed:
                running -= 1
                self._changed.notify()

        threads = [threading.Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
        try:
            for thread in threads:
                thread.start()
            while running and not errors:
                self._tend(lambda: running > 0 and not errors)
                self._tell(stage, done)
        finally:
            filler.stop.set()
            for thread in threads:  # one that waits for a silent server ends later by itself, and writes nothing
                thread.join(_JOIN_S)
            with contextlib.suppress(OSError):  # on a full disk the last journal stays: it promises less
                self._journal.save()
        self._tell(stage, done)
        if errors:
            raise errors[0]

    def _tend(self, going_on: Callable[[], bool]) -> None:
        """Hash what has come; if that is all, wait a moment."""
        behind = self._hash.follow(self._journal.contiguous_bytes, _HASHED_AT_ONCE)
        with self._changed:
            if going_on() and not behind:
                self._changed.wait(_TICK_S)

    def _tell(self, stage: Stage, done: Callable[[], int] | None = None) -> None:
        notice = "" if self._notices.empty() else self._notices.get()
        self._report(done() if done else self._journal.done_bytes, stage, notice)


class _Hash:
    """The hash of the part, taken from the disk as far as it is there without a gap."""

    def __init__(self, remote: Remote, path: Path) -> None:
        self.position = 0
        self._remote = remote
        self._path = path
        self.restart()

    def restart(self) -> None:
        """Begin again."""
        self.position = 0
        if self._remote.sha256:
            self._state = hashlib.sha256()
        else:  # what git calls a blob
            self._state = hashlib.sha1(b"blob %d\0" % self._remote.size_bytes, usedforsecurity=False)

    def follow(self, end: int, most: int) -> bool:
        """Hash up to ``end``, at most ``most`` bytes. Whether something is left. Raises ``OSError``."""
        stop = min(end, self.position + most)
        if self.position < stop:
            with self._path.open("rb", buffering=0) as file:
                file.seek(self.position)
                for block in iter(functools.partial(file.read, _BLOCK), b""):
                    data = block[: stop - self.position]
                    self._state.update(data)
                    self.position += len(data)
                    if self.position >= stop:
                        break
                else:
                    raise OSError(None, f"{self._path.name} became shorter while it was read")
        return self.position < end

    def right(self) -> bool:
        """Whether it is the one that was announced."""
        return self.position == self._remote.size_bytes and self._state.hexdigest() == self._remote.oid
