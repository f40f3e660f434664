"""Work beside the event loop: its result, its errors, and a caller that is gone."""

import asyncio
import threading

import pytest

from localinfer.errors import LocalInferError, Offline
from tui.aside import aside


async def test_the_result_comes_back_from_another_thread() -> None:
    assert await aside(threading.current_thread) is not threading.current_thread()
    assert await aside(lambda: 7) == 7


async def test_an_error_of_ours_stays_what_it_is() -> None:
    def fail() -> None:
        raise Offline("No network.", "Go online.")

    with pytest.raises(Offline, match="No network"):
        await aside(fail)


async def test_an_error_nobody_thought_of_becomes_one_a_person_can_read() -> None:
    with pytest.raises(LocalInferError) as caught:
        await aside(lambda: int("four"))
    assert "unexpected" in caught.value.message
    assert caught.value.hint


async def test_a_caller_that_is_cancelled_is_not_waited_for() -> None:
    go, ended = threading.Event(), threading.Event()

    def work() -> None:
        go.wait(20)
        ended.set()

    task = asyncio.create_task(aside(work))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    assert await asyncio.to_thread(ended.wait, 20)
