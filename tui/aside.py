"""Slow work beside the event loop, in threads that never keep the application from ending."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from localinfer.errors import LocalInferError

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def aside(work: Callable[[], T]) -> T:
    """What ``work`` gives. Raises the ``LocalInferError`` that it raises; any other error becomes one, so that a file
    nobody thought of is a line on the screen and not its end.

    A caller that is cancelled does not end the work; the result is then dropped. A thread of the loop's own pool would
    be waited for at the end of the application, however slow the network is.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not future.done():
            settled()

    def run() -> None:
        try:
            result = work()
        except LocalInferError as error:
            failure = error
        except BaseException as error:
            _log.exception("work beside the screen failed")
            failure = LocalInferError(f"Something unexpected happened: {error}.", "The log has the details.")
        else:
            _call(loop, lambda: settle(lambda: future.set_result(result)))
            return
        _call(loop, lambda: settle(lambda: future.set_exception(failure)))

    threading.Thread(target=run, name="localinfer-aside", daemon=True).start()
    return await future


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(what)
