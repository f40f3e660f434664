"""From a model reference to an engine that answers: acquire, check the file, plan the memory, choose the backend."""

from collections.abc import Callable

import msgspec

from localinfer import settings
from localinfer.acquire import acquire
from localinfer.advice import Advice
from localinfer.engine import WorkerEngine
from localinfer.errors import ModelFileInvalid
from localinfer.models import gguf
from localinfer.models.catalog import catalog
from localinfer.models.explain import download_size
from localinfer.models.progress import FetchProgress
from localinfer.placing import Placing, place
from localinfer.types import LoadOptions


class Opened(WorkerEngine):
    """An engine whose memory was planned: ``placing`` is None where there was nothing to plan."""

    placing: Placing | None = None


def open_engine(
    reference: str | None,
    options: LoadOptions,
    *,
    offline: bool,
    progress: Callable[[FetchProgress], None],
    force: bool = False,
) -> Opened:
    """An engine for the model ``reference`` (None: the person's own choice, else the best that is here, else the
    starter), fetched if necessary.

    ``options`` say how to load; their ``model`` and ``name`` are filled in here, and where the layers go by the memory
    plan, which ``force`` overrules. The file's structure is checked before any native code sees it. Raises
    ``ModelNotFound``, ``ModelFileInvalid``, ``DoesNotFit``, ``Offline``, ``DownloadFailed``, ``NotEnoughDisk``,
    ``StorageUnavailable``, ``BackendUnavailable``.
    """
    if options.backend == "scripted":
        options = msgspec.structs.replace(options, model=reference or "", name="scripted")
        return Opened(options, settings.log_dir())
    advice = Advice(measure=False)
    found = acquire(reference or usual(advice, progress), offline=offline, progress=progress)
    headers = gguf.check_all(found.paths)
    if headers[0].architecture in ("clip", "t5encoder"):
        raise ModelFileInvalid(
            f"{found.path.name} is a {headers[0].architecture} encoder: it cannot generate text.",
            "Choose the language model it belongs to.",
        )
    try:
        str(found.path).encode()
    except UnicodeEncodeError as error:
        raise ModelFileInvalid("The name of the model's file is not valid Unicode.", "Rename the file.") from error
    parts = tuple(str(path) for path in found.paths[1:])
    options = msgspec.structs.replace(options, model=str(found.path), parts=parts, name=found.name)
    placing = place(headers, options, advice, force=force)
    engine = Opened(placing.options, settings.log_dir(), placing.fallbacks)
    engine.placing = placing
    return engine


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
        size = download_size(pick.variant.size_bytes, approximate=pick.variant.approximate)
        better = f"{pick.spec.name} ({size}) would answer better on this machine: localinfer pull {pick.spec.id}"
        told = f"No model is here yet; {starter.name} is fetched to begin with. {better}"
        progress(FetchProgress(done_bytes=0, total_bytes=0, stage="wait", notice=told))
    return starter.id
