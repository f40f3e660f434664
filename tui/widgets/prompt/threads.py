"""Work on files away from the event loop, with an end to patience."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from localinfer.errors import StorageUnavailable
from tui import aside as threads

T = TypeVar("T")

TIMEOUT_S = 10.0


async def aside(work: Callable[[], T]) -> T:
    """As ``tui.aside.aside``; raises ``StorageUnavailable`` when it takes longer than ``TIMEOUT_S``, as a dead network
    drive does."""
    try:
        return await asyncio.wait_for(threads.aside(work), TIMEOUT_S)
    except TimeoutError:
        raise StorageUnavailable(
            f"The files cannot be read: no answer in {TIMEOUT_S:.0f} s.", "Is the drive connected?"
        ) from None
