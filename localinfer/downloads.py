"""Models being fetched in the background: one after another, each of which can be stopped and taken up again.

It knows references and how far each has come. It draws nothing and loads nothing; whoever shows it asks for a snapshot
when it likes.
"""

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from localinfer.errors import LocalInferError
from localinfer.models.progress import FetchProgress, Pace, Stopped, stoppable
from localinfer.types import Value

if TYPE_CHECKING:
    from localinfer.models.store import ModelRef

State = Literal["queued", "running", "done", "failed", "stopped"]

CLOSING_S = 3.0  # how long closing waits for a fetch to end

_log = logging.getLogger(__name__)


class Fetch(Protocol):
    """How a model is fetched: ``acquire.acquire``, or what stands for it."""

    def __call__(self, reference: str, *, offline: bool, progress: Callable[[FetchProgress], None]) -> "ModelRef":
        """The model, here."""


class Download(Value, frozen=True):
    """One download at one moment. ``title`` is what a person calls the model; ``size_bytes`` is what was announced.

    ``progress`` is the last report. ``message`` and ``hint`` say why it failed and how to go on; ``notice`` is the last
    thing the person should know. ``name`` is what the model goes by once it is here.
    """

    reference: str
    title: str
    size_bytes: int = 0
    state: State = "queued"
    progress: FetchProgress | None = None
    message: str = ""
    hint: str = ""
    notice: str = ""
    name: str = ""

    @property
    def active(self) -> bool:
        """Whether it is on its way, or waits for its turn."""
        return self.state in ("queued", "running")

    @property
    def fraction(self) -> float | None:
        """How far the bytes have come, 0 to 1; None while nothing is known."""
        state = self.progress
        return min(1.0, state.done_bytes / state.total_bytes) if state is not None and state.total_bytes else None


class Downloads:
    """The queue. Every method may be called from any thread and returns at once, but for ``close``."""

    def __init__(self, *, offline: bool = False, fetch: Fetch | None = None) -> None:
        self._offline = offline
        self._fetch = fetch
        self._lock = threading.Lock()
        self._downloads: dict[str, Download] = {}  # in the order they were asked for
        self._listeners: list[Callable[[Download], None]] = []
        self._cancelled = threading.Event()  # of the one that runs
        self._thread: threading.Thread | None = None
        self._closed = False

    def start(self, reference: str, title: str = "", size_bytes: int = 0) -> Download:
        """Fetch ``reference`` when its turn comes; one that was stopped or failed goes on from where it was."""
        with self._lock:
            known = self._downloads.get(reference)
            if known is not None and known.active:
                return known
            self._downloads.pop(reference, None)
            download = Download(reference=reference, title=title or reference, size_bytes=size_bytes)
            self._downloads[reference] = download
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="localinfer-downloads", daemon=True)
                self._thread.start()
        self._tell(download)
        return download

    def stop(self, reference: str) -> None:
        """Stop it, or take it out of the queue. What has arrived is kept."""
        with self._lock:
            known = self._downloads.get(reference)
            if known is None or not known.active:
                return
            if known.state == "running":
                self._cancelled.set()
                return
            stopped = self._change(reference, state="stopped")
        self._tell(stopped)

    def forget(self, reference: str) -> None:
        """Take one that is over off the list."""
        with self._lock:
            known = self._downloads.get(reference)
            if known is not None and not known.active:
                del self._downloads[reference]

    def get(self, reference: str) -> Download | None:
        """The download of ``reference``, if there was one."""
        return self._downloads.get(reference)

    def snapshot(self) -> tuple[Download, ...]:
        """All of them, in the order they were asked for."""
        with self._lock:
            return tuple(self._downloads.values())

    @property
    def active(self) -> bool:
        """Whether anything is on its way."""
        return any(download.active for download in self.snapshot())

    def listen(self, listener: Callable[[Download], None]) -> Callable[[], None]:
        """``listener`` hears of each change of a state, though not of progress, from the thread where it happens.

        The result ends it.
        """
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def close(self) -> None:
        """Stop everything; what has arrived is kept. Waits until the fetch has ended, but not long."""
        with self._lock:
            self._closed = True
            self._listeners.clear()
            self._cancelled.set()
            thread = self._thread
        if thread is not None:
            thread.join(CLOSING_S)

    # The thread

    def _run(self) -> None:
        while (download := self._next()) is not None:
            self._tell(download)
            self._tell(self._one(download))

    def _next(self) -> Download | None:
        """The next of the queue, now running; None where there is none: then this thread is over."""
        with self._lock:
            waiting = next((one for one in self._downloads.values() if one.state == "queued"), None)
            if waiting is None or self._closed:
                self._thread = None
                return None
            self._cancelled.clear()
            return self._change(waiting.reference, state="running")

    def _one(self, download: Download) -> Download:
        """Fetch one model: how it ended."""
        reference = download.reference
        pace = Pace()

        def report(state: FetchProgress) -> None:
            if state.stage == "download" and state.bytes_per_s is None:
                state = pace.at(state.done_bytes, state.total_bytes, state.stage, state.notice)
            with self._lock:
                notice = state.notice or self._downloads[reference].notice
                if state.total_bytes or state.stage != "wait" or not state.notice:
                    self._change(reference, progress=state, notice=notice)
                else:  # nothing but the notice
                    self._change(reference, notice=notice)

        try:
            name = self._fetched(reference, stoppable(report, self._cancelled))
        except Stopped:
            change: dict[str, str] = {"state": "stopped"}
        except LocalInferError as error:
            change = {"state": "failed", "message": error.message, "hint": error.hint}
        except Exception as error:
            _log.exception("fetching %s failed", reference)
            change = {"state": "failed", "message": f"Fetching failed: {error}.", "hint": "Try again."}
        else:
            change = {"state": "done", "name": name}
        with self._lock:
            return self._change(reference, **change)

    def _fetched(self, reference: str, progress: Callable[[FetchProgress], None]) -> str:
        """The name of the model, once it is here."""
        if self._fetch is not None:
            return self._fetch(reference, offline=self._offline, progress=progress).name
        from localinfer.acquire import acquire

        return acquire(reference, offline=self._offline, progress=progress).name

    def _change(self, reference: str, **fields: object) -> Download:
        """The download with other ``fields``. The lock is held."""
        changed = self._downloads[reference] = msgspec.structs.replace(self._downloads[reference], **fields)
        return changed

    def _tell(self, download: Download) -> None:
        for listener in tuple(self._listeners):
            listener(download)


def free_disk_bytes(folder: Path | None = None) -> int | None:
    """What is free where ``folder`` is or will be, else where models of the hub go; None where that cannot be told."""
    from localinfer.models import hf_cache

    folder = folder or hf_cache.cache_dir()
    for there in (folder, *folder.parents):
        try:
            return shutil.disk_usage(there).free
        except FileNotFoundError:
            continue
        except OSError:
            return None
    return None
