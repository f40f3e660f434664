"""The worker-backed engine: one model in a process of its own, started on demand and replaced when it dies.

This side never touches native code. It survives whatever happens to the worker, and says what happened.
"""

import asyncio
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Self

import psutil

from localinfer.errors import LocalInferError, OutOfMemory, WorkerDied, from_fault
from localinfer.generation import Generation, check
from localinfer.process import Child, Death
from localinfer.types import (
    Active,
    Cancel,
    Count,
    Counted,
    Done,
    EngineStatus,
    Event,
    Fatal,
    Fault,
    GenerationRequest,
    Loaded,
    Loading,
    LoadOptions,
    LoadProgress,
    Message,
    ModelInfo,
    Piece,
    Queued,
    Report,
    Stepped,
    Submit,
    TokenCount,
)

PROGRESS_S = 0.1
SHOWN_LINES = 3  # of the log, in an error
CRASH_LIMIT = 3
CRASH_PAUSE_S = 30.0
FINISHED_KEPT = 50

_serial = itertools.count(1)


class _Session:
    """One life of a worker: the process and what it has told us."""

    def __init__(self, child: Child[Report]) -> None:
        self.child = child
        self.progress = 0.0
        self.loaded: Loaded | None = None
        self.fatal: Fault | None = None
        self.last: Stepped | None = None
        self.productive = False
        self.settled = threading.Event()  # loaded, or over
        self.reader: threading.Thread | None = None


class WorkerEngine:
    """An ``Engine`` (see ``generation.Engine``) over one worker process; every method may be called from any thread.

    ``options`` say what to load, ``log_dir`` takes the native logs. The worker starts with the first request or
    ``load``. A worker that dies ends its generations with ``WorkerDied`` or ``OutOfMemory``; the next request starts a
    new one, unless ``CRASH_LIMIT`` workers in a row died without producing a token. Where memory runs out while
    loading, the next of ``fallbacks`` is loaded instead.
    """

    def __init__(self, options: LoadOptions, log_dir: Path, fallbacks: Sequence[LoadOptions] = ()) -> None:
        self.options = options
        self._fallbacks = list(fallbacks)
        self._log_dir = log_dir
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._generations: dict[int, Generation] = {}
        self._accepted: set[int] = set()
        self._resubmitted: set[int] = set()
        self._counts: dict[int, tuple[Count, Future[TokenCount]]] = {}
        self._finished: deque[Active] = deque(maxlen=FINISHED_KEPT)
        self._log: Path | None = None
        self._session: _Session | None = None
        self._crashes = 0
        self._last_crash = 0.0
        self._failure: LocalInferError | None = None
        self._closed = False

    # Faces

    def submit(self, request: GenerationRequest) -> Generation:
        """Start a generation. Raises ``BadRequest`` at once; every later error ends the generation."""
        check(request)
        generation = Generation(next(self._ids), request, self._cancel)
        self._dispatch(generation)
        return generation

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        """How many tokens a conversation is, also where the context does not hold them; none for no messages.

        The model need not be idle: it is not asked. Loads it first where it is not loaded. Raises ``BadRequest``, also
        where the model's template refuses the conversation, and what keeps the worker from answering.
        """
        if not messages:
            return TokenCount(total=0)
        return await self._count(GenerationRequest(messages=tuple(messages)))

    async def count_text(self, text: str) -> int:
        """How many tokens ``text`` is as a raw prompt; otherwise like ``count``."""
        return (await self._count(GenerationRequest(prompt=text))).total if text else 0

    def load(self, progress: Callable[[float], None] = lambda _: None) -> ModelInfo:
        """Load the model now and wait for it; ``progress`` hears 0 to 1. Raises what keeps it from loading."""
        with self._lock:
            session: _Session | None = self._ensure_session()
        while session is not None:
            while not session.settled.wait(PROGRESS_S):
                progress(session.progress)
            if session.loaded is not None:
                return session.loaded.info
            with self._lock:
                session = self._session  # a smaller attempt, if there is one
        with self._lock:
            raise self._failure or WorkerDied("The model was unloaded while it was being loaded.")

    def active(self) -> tuple[Active, ...]:
        """The generations that are not over, oldest first."""
        return tuple(active for each in self._waiting() if (active := each.active()).state != "over")

    def finished(self) -> tuple[Active, ...]:
        """The last ``FINISHED_KEPT`` generations that are over, the latest first."""
        with self._lock:
            return tuple(reversed(self._finished))

    @property
    def log(self) -> Path | None:
        """The native log of the worker, or of the last one; None before the first has started."""
        return self._log

    def status(self) -> EngineStatus:
        """What the engine is doing now; memory and counts are those of the worker."""
        with self._lock:
            session, failure, closed = self._session, self._failure, self._closed
        if closed:
            return EngineStatus(state="closed")
        if session is None:
            return EngineStatus(state="failed" if failure else "idle")
        info = session.loaded.info if session.loaded else None
        last = session.last
        return EngineStatus(
            state="ready" if info else "loading",
            running=last.running if last else 0,
            queued=last.queued if last else 0,
            slots=info.slots if info else 0,
            threads=last.threads if last else (info.threads if info else None),
            rss_bytes=_rss(session.child.pid),
            pid=session.child.pid,
            model=info,
        )

    def close(self) -> None:
        """End the worker. Generations still running end with ``WorkerDied``."""
        with self._lock:
            self._closed = True
            session = self._session
        if session is not None:
            session.child.close()
            self._end(session, _unloaded())
            if session.reader is not None:
                session.reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # The worker

    def _dispatch(self, generation: Generation) -> None:
        with self._lock:
            try:
                session = self._ensure_session()
            except LocalInferError as error:
                generation.fail(error)
                return
            self._generations[generation.id] = generation
            if session.loaded is None:
                generation.push(Loading(progress=session.progress))
        session.child.send(Submit(id=generation.id, request=generation.request))

    async def _count(self, request: GenerationRequest) -> TokenCount:
        return await asyncio.wrap_future(await asyncio.to_thread(self._ask, request))

    def _ask(self, request: GenerationRequest) -> Future[TokenCount]:
        check(request)
        command = Count(id=next(self._ids), request=request)
        future: Future[TokenCount] = Future()
        with self._lock:
            session = self._ensure_session()
            self._counts[command.id] = command, future
        session.child.send(command)
        return future

    def _answer(self, report: Counted) -> None:
        with self._lock:
            _, future = self._counts.pop(report.id, (None, None))
        if future is None or not future.set_running_or_notify_cancel():  # nobody waits any more
            return
        if report.count is not None:
            future.set_result(report.count)
        elif report.error is not None:
            future.set_exception(from_fault(report.error))

    def _cancel(self, generation_id: int) -> None:
        with self._lock:
            session = self._session
        if session is not None:
            session.child.send(Cancel(id=generation_id))

    def _ensure_session(self) -> _Session:
        if self._closed:
            raise _unloaded()
        if self._session is not None:
            return self._session
        if self._crashes >= CRASH_LIMIT and time.monotonic() - self._last_crash < CRASH_PAUSE_S:
            assert self._failure is not None
            raise WorkerDied(
                f"The model crashed {self._crashes} times in a row: {self._failure.message}",
                f"{self._failure.hint} A new attempt is possible in {CRASH_PAUSE_S:.0f} s.".strip(),
                cause="crash loop",
            )
        log = self._log = self._log_dir / f"worker-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_serial)}.log"
        child: Child[Report] = Child("localinfer.worker", Report, log)
        session = self._session = _Session(child)
        self._failure = None
        child.send(self.options)
        session.reader = threading.Thread(target=self._read, args=(session,), name="localinfer-reports", daemon=True)
        session.reader.start()
        return session

    def _read(self, session: _Session) -> None:
        for report in session.child.reports():
            match report:
                case Stepped():
                    self._deliver(session, report)
                case LoadProgress():
                    session.progress = report.progress
                    for generation in self._waiting():
                        generation.push(Loading(progress=report.progress))
                case Counted():
                    self._answer(report)
                case Loaded():
                    with self._lock:
                        session.loaded = report
                        waiting = self._waiting()
                    for generation in waiting:
                        generation.loaded(report.at_ns)
                    session.settled.set()
                case Fatal():
                    session.fatal = report.error
        self._end(session, self._explain(session, session.child.death()))

    def _waiting(self) -> list[Generation]:
        with self._lock:
            return list(self._generations.values())

    def _deliver(self, session: _Session, report: Stepped) -> None:
        session.last = report
        for generation_id, group in itertools.groupby(report.events, _generation_id):
            events = [event for _, event in group]
            with self._lock:
                generation = self._generations.get(generation_id)
                if isinstance(events[0], Queued):
                    self._accepted.add(generation_id)
            if generation is None:
                continue
            generation.push(*events)
            session.productive |= isinstance(events[-1], Piece | Done)
            if generation.over:
                self._forget(generation_id)

    def _forget(self, generation_id: int) -> None:
        with self._lock:
            generation = self._generations.pop(generation_id, None)
            if generation is not None:
                self._finished.append(generation.active())
            self._accepted.discard(generation_id)
            self._resubmitted.discard(generation_id)

    def _explain(self, session: _Session, death: Death) -> LocalInferError:
        if session.fatal is not None:
            return from_fault(session.fatal)
        if self._closed:
            return _unloaded()
        lines = "\n".join(f"  {line}" for line in death.log_tail[-SHOWN_LINES:])
        where = f"The log is {session.child.log}." + (f" Its last lines:\n{lines}" if lines else "")
        doing = "while loading" if session.loaded is None else "while generating"
        if death.out_of_memory:
            return OutOfMemory(
                f"Memory ran out {doing} {self.options.name} ({death.cause}).",
                f"Use a smaller context, fewer slots or a smaller model. {where}",
            )
        return WorkerDied(
            f"The process running {self.options.name} died {doing}: {death.cause}.",
            f"The next request starts it again. {where}",
            cause=death.cause,
        )

    def _end(self, session: _Session, error: LocalInferError) -> None:
        """The session is over: settle its generations. Those the worker never saw go to a fresh worker, once."""
        with self._lock:
            if self._session is not session:
                return
            self._session = None
            starved = session.loaded is None and isinstance(error, OutOfMemory)
            smaller = starved and bool(self._fallbacks) and not self._closed
            if smaller:
                self.options = self._fallbacks.pop(0)
                fresh: _Session | None = self._ensure_session()
            else:
                fresh = None
                self._failure = error
                self._crashes = 0 if session.productive else self._crashes + 1
                self._last_crash = time.monotonic()
            again: list[Generation] = []
            for generation in list(self._generations.values()):
                if generation.over:
                    self._forget(generation.id)
                    continue
                unseen = generation.id not in self._accepted and generation.id not in self._resubmitted
                if smaller:
                    again.append(generation)
                elif unseen and session.loaded is not None and not self._closed:
                    self._resubmitted.add(generation.id)
                    again.append(generation)
                else:
                    generation.fail(error)
                    self._forget(generation.id)
            counts = list(self._counts.values())
            if fresh is None:
                self._counts.clear()
        session.settled.set()
        for command, future in counts:
            if fresh is not None:
                fresh.child.send(command)
            elif future.set_running_or_notify_cancel():
                future.set_exception(error)
        for generation in again:
            self._dispatch(generation)


def _unloaded() -> WorkerDied:
    return WorkerDied("The model was unloaded.", "Load it again to go on.")


def _generation_id(entry: tuple[int, Event]) -> int:
    return entry[0]


def _rss(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
