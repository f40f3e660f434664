"""Which engine is loaded, and how another takes its place.

Every method may be called from any thread and may take as long as a load takes; none draws or asks anything.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from localinfer.engines.opened import Opened
from localinfer.errors import LocalInferError, WorkerDied
from localinfer.types import LoadOptions, Value

if TYPE_CHECKING:
    from localinfer.advice import Advice
    from localinfer.models.progress import FetchProgress
    from localinfer.models.store import ModelRef
    from localinfer.placing import Placing


class Prospect(Value, frozen=True):
    """A model that can be loaded, checked and planned. ``placing`` is None where there is nothing to plan.

    ``frees`` says what becomes free when it takes the place of the loaded model: "frees 1.2 GiB of qwen3-1.7b".
    """

    name: str
    options: LoadOptions
    placing: "Placing | None" = None
    frees: str = ""


class Engines:
    """At most one engine at a time. ``advice`` looks at the machine afresh for each plan."""

    def __init__(self, advice: "Callable[[], Advice] | None" = None) -> None:
        self._advice = advice
        self._switching = threading.Lock()
        self._state = threading.Lock()
        self._current: Opened | None = None
        self._loading: Opened | None = None
        self._prospect: Prospect | None = None
        self._previous: Prospect | None = None
        self._closed = False

    @property
    def current(self) -> Opened | None:
        """The engine in use; None before the first one, while another is loaded, and after one failed to load."""
        return self._current

    @property
    def loading(self) -> Opened | None:
        """The engine that is being loaded: it takes requests already."""
        return self._loading

    @property
    def prospect(self) -> Prospect | None:
        """What ``current`` was loaded from."""
        return self._prospect

    @property
    def previous(self) -> Prospect | None:
        """What was loaded before the last ``switch``: it can be switched back to."""
        return self._previous

    @property
    def freed(self) -> dict[str, int]:
        """Bytes that the loaded model would give back, by device, beyond what counts as free already."""
        engine = self._current
        if engine is None or engine.placing is None or engine.options != engine.placing.options:
            return {}  # one that was loaded smaller than planned: nothing is promised
        from localinfer.placing import gives_back

        return gives_back(engine.placing, engine.status())

    @property
    def frees(self) -> str:
        """What unloading the loaded model frees, in words; "" where there is none."""
        engine = self._current
        if engine is None:
            return ""
        from localinfer.models.explain import gib

        status = engine.status()
        held = sum(load.needed_bytes for load in engine.placing.plan.devices) if engine.placing else status.rss_bytes
        return f"frees {gib(held)} of {engine.options.name}" if held else ""

    def fetch(
        self,
        reference: str,
        *,
        offline: bool,
        progress: "Callable[[FetchProgress], None]",
        cancelled: threading.Event,
    ) -> "ModelRef":
        """The model that ``reference`` names, fetched if it is not here.

        Raises ``Stopped`` once ``cancelled`` is set, when the next progress is due: what has arrived is kept, and the
        next fetch goes on from there. Else as ``acquire``.
        """
        from localinfer.acquire import acquire
        from localinfer.models.progress import stoppable

        return acquire(reference, offline=offline, progress=stoppable(progress, cancelled))

    def prepare(
        self,
        model: "ModelRef | str",
        options: LoadOptions,
        *,
        force: bool = False,
        draft: "ModelRef | str" = "auto",
    ) -> Prospect:
        """Check and plan a model that is here, in the place of the loaded one; nothing is loaded yet.

        ``model`` is what ``fetch`` gave, or a reference to what is here; for the scripted backend, the script.
        ``options`` say how to load (context, KV type, threads, device). ``draft`` is a model that drafts for it, which
        is here too, or a word: see ``drafts.propose``. Raises ``ModelNotFound``, ``Offline`` where the
        model is not here, ``ModelFileInvalid``, ``DoesNotFit``, ``BackendUnavailable``, ``BadRequest``.
        """
        from localinfer.engines import opening

        if options.backend == "scripted":
            options = opening.scripted(options, str(model))
            return Prospect(name=options.name, options=options, frees=self.frees)
        if isinstance(model, str):
            from localinfer.acquire import acquire

            model = acquire(model, offline=True, progress=lambda _: None)
        from localinfer import drafts

        advice = self._looked()
        beside = drafts.propose(model, draft, options, advice, offline=True, progress=lambda _: None)
        placing = opening.planned(model, options, advice, force=force, freed=self.freed, beside=beside)
        return Prospect(name=model.name, options=placing.options, placing=placing, frees=self.frees)

    def switch(self, prospect: Prospect, progress: Callable[[float], None] = lambda _: None) -> Opened:
        """Unload what is loaded and load ``prospect``; ``progress`` hears 0 to 1, and may end it by raising.

        What ran on the old engine ends with ``WorkerDied``. If the new one cannot be loaded, nothing is loaded, and
        ``previous`` is what can be loaded again. Raises what keeps the model from loading.
        """
        from localinfer.engines import opening

        with self._switching:
            with self._state:
                if self._closed:
                    raise WorkerDied("localinfer is closing.")
                old, self._current = self._current, None
                if self._prospect is not None:
                    self._previous = self._prospect
                self._prospect = None
                engine = self._loading = opening.opened(prospect.options, prospect.placing)
            if old is not None:
                old.close()
            try:
                engine.load(progress)
            except BaseException as error:
                engine.close()
                if isinstance(error, LocalInferError) and self._previous is not None and not self._closed:
                    raise self._told(error, self._previous) from error
                raise
            finally:
                self._loading = None
            with self._state:
                if self._closed:
                    engine.close()
                    raise WorkerDied("localinfer is closing.")
                self._current, self._prospect = engine, prospect
            return engine

    def close(self) -> None:
        """Unload whatever is loaded or being loaded; for good."""
        with self._state:
            self._closed = True
            engines = [engine for engine in (self._loading, self._current) if engine is not None]
            self._current = None
        for engine in engines:
            engine.close()

    def _looked(self) -> "Advice":
        if self._advice is not None:
            return self._advice()
        from localinfer.advice import Advice

        return Advice(measure=False)

    def _told(self, error: LocalInferError, previous: Prospect) -> LocalInferError:
        """The same error, with the way back."""
        values = {name: getattr(error, name) for name in error.fields}
        hint = f"{error.hint} {previous.name} was unloaded for it, and can be loaded again.".strip()
        return type(error)(error.message, hint, **values)
