"""Which model answers, on the event loop: opening the first one, switching to another, and how far that has come.

Everything slow runs in threads. It knows ``Engines`` and no widget; ``changed`` hears of each change on the loop.
"""

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Literal

import msgspec

from localinfer.engines import Engines, Opened, Prospect
from localinfer.errors import DoesNotFit, LocalInferError, ModelNotFound
from localinfer.history.values import Parameters
from localinfer.types import LoadOptions, Value
from tui.aside import aside
from tui.start import Start


class DeskState(Value, frozen=True):
    """What is being done about a model. ``name`` is its name as far as it is known, ``progress`` 0 to 1; ``notice`` is
    what the person should know of how it was loaded."""

    phase: Literal["none", "checking", "loading", "ready", "failed"] = "none"
    name: str = ""
    progress: float | None = None
    error: LocalInferError | None = None
    notice: str = ""


class Superseded(LocalInferError):
    """Another model was chosen since: nothing that a person need be told."""


class Desk:
    """The model in use."""

    def __init__(self, engines: Engines, start: Start, changed: Callable[[], None]) -> None:
        self.engines = engines
        self.state = DeskState()
        self.reference: str | None = start.reference
        self._start = start
        self._changed = changed
        self._task: asyncio.Task[Opened] | None = None
        self._begun = asyncio.Event()
        self._superseded = threading.Event()  # of the last choice: set when another is made
        self._asked: tuple[LoadOptions, str] | None = None  # what the model in use was loaded for

    @property
    def engine(self) -> Opened | None:
        """The engine that requests can be given to now: it may still be loading."""
        return self.engines.current or self.engines.loading

    def options(self, parameters: Parameters) -> LoadOptions:
        """How a model is loaded for a conversation with ``parameters``."""
        asked = self._start.options
        return msgspec.structs.replace(
            asked,
            context=parameters.context or asked.context,
            kv_type=parameters.kv_type or asked.kv_type,
            threads=parameters.threads or asked.threads,
        )

    def draft(self, parameters: Parameters) -> str:
        """What drafts for a model in a conversation with ``parameters``: see ``drafts.propose``."""
        return parameters.draft or self._start.draft

    def suits(self, parameters: Parameters) -> bool:
        """Whether what is loaded was loaded for what ``parameters`` ask for."""
        return self._asked is None or self._asked == (self.options(parameters), self.draft(parameters))

    async def ensure(self, parameters: Parameters) -> Opened:
        """An engine that takes requests: the one in use, else the usual model's, which is opened for it. One that was
        loaded for other parameters is loaded again.

        Raises what keeps it from loading; ``ModelNotFound`` where no model is here.
        """
        while True:
            if self._task is None or self._task.done():
                if (engine := self.engine) is not None and self.suits(parameters):
                    return engine
                self.use(self.reference, parameters)
            task = self._task
            assert task is not None
            begun = asyncio.ensure_future(self._begun.wait())
            await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
            begun.cancel()
            if task is not self._task:  # another model was chosen meanwhile
                continue
            if task.done():
                return task.result()
            if (engine := self.engines.loading) is not None:
                return engine
            await asyncio.wait({task}, timeout=0.05)

    def use(
        self, reference: str | None, parameters: Parameters, *, force: bool = False, exact: bool = False
    ) -> "asyncio.Task[Opened]":
        """Load ``reference`` (None: the usual model) in the place of what is loaded.

        A context that ``parameters`` ask for and that does not fit, and a draft model that cannot be had, is an error
        where it has to be ``exact``; else what can be had is loaded, and the state's notice says so.
        """
        before = self._task
        self._begun = asyncio.Event()
        self._superseded.set()
        self._superseded = threading.Event()
        work = self._use(before, reference, parameters, force=force or self._start.force, exact=exact)
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(_seen)
        return self._task

    def took(self, reference: str) -> None:
        """``reference`` was loaded by somebody else."""
        self.reference = reference
        engine = self.engines.current
        self._set(DeskState(phase="ready", name=engine.options.name if engine is not None else reference))

    async def _use(
        self,
        before: "asyncio.Task[Opened] | None",
        reference: str | None,
        parameters: Parameters,
        *,
        force: bool,
        exact: bool,
    ) -> Opened:
        options, draft = self.options(parameters), self.draft(parameters)
        superseded = self._superseded
        if before is not None:
            await asyncio.gather(before, return_exceptions=True)
        loop = asyncio.get_running_loop()
        self._set(DeskState(phase="checking", name=reference or ""))

        def progress(fraction: float) -> None:
            loop.call_soon_threadsafe(self._progressed, fraction)

        try:
            name = reference if reference is not None else await aside(lambda: self._usual(options))
            prospect, notice = await self._prepared(name, options, draft, force=force, exact=exact)
            self._set(DeskState(phase="loading", name=prospect.name))
            if superseded.is_set():
                raise Superseded(f"Another model was chosen before {prospect.name} was loaded.")
            engine = await aside(lambda: self._switch(prospect, progress, superseded))
        except LocalInferError as error:
            if not superseded.is_set():
                self._set(DeskState(phase="failed", name=self.state.name, error=error))
            raise
        self.reference, self._asked = name, (options, draft)
        self._set(DeskState(phase="ready", name=prospect.name, notice=notice))
        return engine

    async def _prepared(
        self, name: str, options: LoadOptions, draft: str, *, force: bool, exact: bool
    ) -> tuple[Prospect, str]:
        """How ``name`` is loaded, and what is to be said about it."""
        usual = self._start.options.context
        prepare = functools.partial(self.engines.prepare, name, force=force)
        try:
            return await aside(lambda: prepare(options, draft=draft)), ""
        except DoesNotFit as error:
            if exact or options.context == usual:
                raise
            fewer = msgspec.structs.replace(options, context=usual)
            return await aside(lambda: prepare(fewer, draft=draft)), f"{error.message} It is loaded with what fits."
        except LocalInferError as error:
            if exact or draft in ("auto", "off"):
                raise
            prospect = await aside(lambda: prepare(options, draft="off"))  # raises the same where it was not the draft
            return prospect, f"{error.message} The model answers without it."

    def _switch(self, prospect: Prospect, progress: Callable[[float], None], superseded: threading.Event) -> Opened:
        from localinfer.models.progress import Stopped, stoppable

        try:
            return self.engines.switch(prospect, stoppable(progress, superseded))
        except Stopped:
            raise Superseded(f"Another model was chosen while {prospect.name} was loaded.") from None

    def _usual(self, options: LoadOptions) -> str:
        """The person's own choice, else the best model that is here. Raises ``ModelNotFound``."""
        if options.backend == "scripted":
            return ""
        from localinfer import settings
        from localinfer.advice import Advice

        if mine := settings.load().model:
            return mine
        best = Advice(measure=False).best_here()
        if best is None:
            raise ModelNotFound("No model is on this machine yet.", "Choose one: F2.")
        return best.name

    def _progressed(self, fraction: float) -> None:
        self._begun.set()
        if self.state.phase == "loading":
            self._set(msgspec.structs.replace(self.state, progress=fraction))

    def _set(self, state: DeskState) -> None:
        if state != self.state:
            self.state = state
            self._changed()


def _seen(task: "asyncio.Task[Opened]") -> None:
    """Its error is in the state; nobody need wait for the task itself."""
    if not task.cancelled():
        task.exception()
