"""The backends: one loaded model behind one seam. Importing the package imports none of them."""

from importlib import import_module
from typing import cast

from backends.base import Backend, Progress
from localinfer.errors import BadRequest
from localinfer.types import LoadOptions

NAMES = ("llama.cpp", "scripted")

_MODULES = {"llama.cpp": "backends.llama_cpp", "scripted": "backends.scripted"}


def load(options: LoadOptions, progress: Progress) -> Backend:
    """Load one model with the backend that ``options`` names, importing that backend alone.

    ``progress`` is called with 0 to 1. Raises ``BadRequest``, ``BackendUnavailable``, ``ModelFileInvalid``,
    ``DoesNotFit`` and ``OutOfMemory``.
    """
    module = _MODULES.get(options.backend)
    if module is None:
        raise BadRequest(
            f"There is no backend “{options.backend}”.", f"Choose one of: {', '.join(NAMES)}.", param="backend"
        )
    return cast(Backend, import_module(module).load(options, progress))
