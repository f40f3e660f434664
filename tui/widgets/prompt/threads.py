"""Work on files away from the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Never, TypeVar

from localinfer.errors import StorageUnavailable

T = TypeVar("T")

TIMEOUT_S = 10.0


async def aside(work: Callable[[], T]) -> T:
    """What ``work`` returns, done in a thread of its own. Raises what it raises, and ``StorageUnavailable`` when it
    takes longer than ``TIMEOUT_S``.

    A dead network drive may hold the thread for ever, so nothing waits for it, the end of the process neither.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Callable[[], T]] = loop.create_future()

    def tell(answer: Callable[[], T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, answer)

    def run() -> None:
        try:
            result = work()
        except Exception as error:
            tell(partial(_raise, error))
        else:
            tell(lambda: result)

    def settle(answer: Callable[[], T]) -> None:
        if not outcome.done():
            outcome.set_result(answer)

    threading.Thread(target=run, daemon=True, name="files").start()
    try:
        answer = await asyncio.wait_for(outcome, TIMEOUT_S)
    except TimeoutError:
        raise StorageUnavailable(
            f"The files cannot be read: no answer in {TIMEOUT_S:.0f} s.", "Is the drive connected?"
        ) from None
    return answer()


def _raise(error: Exception) -> Never:
    raise error
