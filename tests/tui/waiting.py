"""Waiting for what an application does in its own time."""

from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Let the application go on until ``condition`` holds, for ten seconds at most."""
    for _ in range(1000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never became true")
