"""From a model reference to an engine that answers: acquire, check the file, plan the memory, choose the backend."""

from collections.abc import Callable, Mapping

import msgspec

from localinfer import drafts, settings
from localinfer.acquire import acquire, checked
from localinfer.advice import Advice
from localinfer.engines.opened import Opened
from localinfer.models.catalog import catalog
from localinfer.models.explain import download_size
from localinfer.models.progress import FetchProgress
from localinfer.models.store import ModelRef
from localinfer.placing import Beside, Placing, place
from localinfer.types import LoadOptions


def open_engine(
    reference: str | None,
    options: LoadOptions,
    *,
    offline: bool,
    progress: Callable[[FetchProgress], None],
    force: bool = False,
    draft: str = "auto",
) -> Opened:
    """An engine for the model ``reference`` (None: the person's own choice, else the best that is here, else the
    starter), fetched if necessary.

    ``options`` say how to load; their ``model`` and ``name`` are filled in here, and where the layers go by the memory
    plan, which ``force`` overrules. ``draft`` is a model that drafts for it, or a word: see ``drafts.propose``. The
    file's structure is checked before any native code sees it. Raises ``BadRequest``, ``ModelNotFound``,
    ``ModelFileInvalid``, ``DoesNotFit``, ``Offline``, ``DownloadFailed``, ``NotEnoughDisk``,
    ``StorageUnavailable``, ``BackendUnavailable``.
    """
    if options.backend == "scripted":
        return opened(scripted(options, reference), None)
    drafts.check(draft)
    advice = Advice(measure=False)
    found = acquire(reference or usual(advice, progress), offline=offline, progress=progress)
    beside = drafts.propose(found, draft, options, advice, offline=offline, progress=progress)
    placing = planned(found, options, advice, force=force, beside=beside)
    return opened(placing.options, placing)


def opened(options: LoadOptions, placing: Placing | None) -> Opened:
    """The engine that loads by ``options``; its worker starts when it is needed."""
    engine = Opened(options, settings.log_dir(), placing.fallbacks if placing else ())
    engine.placing = placing
    return engine


def scripted(options: LoadOptions, script: str | None) -> LoadOptions:
    """How the scripted backend is loaded: there is nothing to fetch, nor to plan."""
    return msgspec.structs.replace(options, model=script or "", name="scripted")


def planned(
    found: ModelRef,
    options: LoadOptions,
    advice: Advice,
    *,
    force: bool = False,
    freed: Mapping[str, int] | None = None,
    beside: Beside | None = None,
) -> Placing:
    """Where the model goes, after its file was checked. ``freed`` is what the loaded model gives back, by device;
    ``beside`` may draft for it.

    Raises ``ModelFileInvalid``, ``DoesNotFit``, ``BackendUnavailable``, ``BadRequest``.
    """
    headers = checked(found)
    parts = tuple(str(path) for path in found.paths[1:])
    options = msgspec.structs.replace(options, model=str(found.path), parts=parts, name=found.name)
    return place(headers, options, advice, force=force, freed=freed, beside=beside)


def usual(advice: Advice, progress: Callable[[FetchProgress], None]) -> str:
    """The model for somebody who names none; ``progress`` hears of a better one if it is only the starter."""
    if mine := settings.load().model:
        return mine
    best = advice.best_here()
    if best is not None:
        return best.name
    starter = catalog().starter
    pick = Advice().recommended()
    if pick is not None and pick.spec.rank > starter.rank:
        size = download_size(pick.variant.download_bytes, approximate=pick.variant.approximate)
        better = f"{pick.spec.name} ({size}) would answer better on this machine: localinfer pull {pick.spec.id}"
        told = f"No model is here yet; {starter.name} is fetched to begin with. {better}"
        progress(FetchProgress(done_bytes=0, total_bytes=0, stage="wait", notice=told))
    return starter.id
