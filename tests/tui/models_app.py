"""An application around one screen about models, on a machine made up, with sources a test can steer."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from localinfer.advice import Advice
from localinfer.downloads import Downloads
from localinfer.engines import Engines
from localinfer.errors import LocalInferError
from localinfer.machine import Machine
from localinfer.models.progress import FetchProgress
from localinfer.models.store import ModelRef

R = TypeVar("R")
WAIT_S = 20.0


class Here(Advice):
    """Advice about the machine ``made_up``, and about what is really in the test's folders."""

    def __init__(self, made_up: Machine) -> None:
        super().__init__(measure=False)
        self.__dict__["machine"] = made_up


class Source:
    """What stands for the network: every download is a quarter done until it is told to arrive, or to fail."""

    def __init__(self, arrived: Callable[[str], None] = lambda _: None) -> None:
        self.asked: list[str] = []
        self.arrive = threading.Event()
        self.failure: LocalInferError | None = None
        self._arrived = arrived

    def __call__(self, reference: str, *, offline: bool, progress: Callable[[FetchProgress], None]) -> ModelRef:
        self.asked.append(reference)
        while not self.arrive.wait(0.01):
            progress(
                FetchProgress(
                    done_bytes=25_000_000, total_bytes=100_000_000, stage="download", bytes_per_s=5e6, eta_s=15.0
                )
            )
        if self.failure is not None:
            raise self.failure
        self._arrived(reference)
        return ModelRef(name=reference, paths=(Path(reference),))


class Around(App[None]):
    """Shows one screen and keeps what it was dismissed with."""

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self._first = screen
        self.result: list[Any] = []

    def on_mount(self) -> None:
        self.push_screen(self._first, self.result.append)


class Parts:
    """The sources of a screen. ``machine`` is what it is told it runs on."""

    def __init__(self, machine: Machine, source: Source | None = None) -> None:
        self.machine = machine
        self.source = source or Source()
        self.downloads = Downloads(fetch=self.source)
        self.engines = Engines()
        self.looks = 0

    def advice(self) -> Advice:
        self.looks += 1
        return Here(self.machine)

    def close(self) -> None:
        self.downloads.close()
        self.engines.close()


def shown(app: App[Any]) -> str:
    """The text on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


async def until(pilot: Pilot[Any], wanted: Callable[[], bool]) -> None:
    """Go on once ``wanted`` is so."""
    end = time.monotonic() + WAIT_S
    while not wanted():
        assert time.monotonic() < end, shown(pilot.app)
        await pilot.pause()
        await asyncio.sleep(0.01)
    await pilot.pause()
