"""Engines: opening one for a model reference, and which one is loaded now.

What it takes to find, check and plan a model is imported when that is asked for: the chat screen need not wait for it.
"""

from typing import TYPE_CHECKING

from localinfer.engines.opened import Opened
from localinfer.engines.switching import Engines, Prospect

if TYPE_CHECKING:
    from localinfer.engines.opening import open_engine, usual

__all__ = ["Engines", "Opened", "Prospect", "open_engine", "usual"]


def __getattr__(name: str) -> object:
    if name in ("open_engine", "usual"):
        from localinfer.engines import opening

        return getattr(opening, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
