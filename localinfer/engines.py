"""From a model reference to an engine that answers: resolve, fetch, check the file, choose the backend."""

from collections.abc import Callable

import msgspec

from localinfer import settings
from localinfer.engine import WorkerEngine
from localinfer.errors import ModelFileInvalid
from localinfer.models import gguf, store
from localinfer.models.catalog import catalog
from localinfer.models.store import FetchProgress
from localinfer.types import LoadOptions


def open_engine(
    reference: str | None,
    options: LoadOptions,
    *,
    offline: bool,
    progress: Callable[[FetchProgress], None],
) -> WorkerEngine:
    """An engine for the model ``reference`` (None: the person's default, else the starter), fetched if necessary.

    ``options`` say how to load; their ``model`` and ``name`` are filled in here. The file's structure is checked before
    any native code sees it. Raises ``ModelNotFound``, ``ModelFileInvalid``, ``Offline``, ``DownloadFailed``,
    ``NotEnoughDisk``, ``StorageUnavailable``.
    """
    if options.backend == "scripted":
        options = msgspec.structs.replace(options, model=reference or "", name="scripted")
        return WorkerEngine(options, settings.log_dir())
    found = store.resolve(reference or settings.load().model or catalog().starter.id)
    path = store.ensure(found, offline=offline, progress=progress)
    header, *_ = [gguf.check(part) for part in found.paths]
    if header.architecture in ("clip", "t5encoder"):
        raise ModelFileInvalid(
            f"{path.name} is a {header.architecture} encoder: it cannot generate text.",
            "Choose the language model it belongs to.",
        )
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise ModelFileInvalid("The name of the model's file is not valid Unicode.", "Rename the file.") from error
    options = msgspec.structs.replace(options, model=str(path), name=found.name)
    return WorkerEngine(options, settings.log_dir())
