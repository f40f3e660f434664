"""The application over the scripted backend, with real key presses."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlencode

import pytest
from textual.pilot import Pilot

from localinfer.history.values import Turn
from localinfer.types import LoadOptions, Sampling
from tests.tui.waiting import until
from tui.app import LocalInfer
from tui.screens.chat import ChatScreen
from tui.start import Start


class Chatting:
    """An application that runs, and somebody who types."""

    def __init__(self, app: LocalInfer, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> ChatScreen:
        """The chat screen."""
        return self.app.chat

    @property
    def path(self) -> tuple[Turn, ...]:
        """The branch in view."""
        return self.screen.talk.path

    @property
    def text(self) -> str:
        """What can be read on the screen."""
        return "\n".join(
            "".join(segment.text for segment in strip) for strip in self.app.screen._compositor.render_strips()
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for it."""
        await until(self.pilot, condition)

    async def press(self, *keys: str) -> None:
        """Press keys; a text of several letters is typed."""
        for key in keys:
            if "+" in key or key in NAMED or len(key) == 1:
                await self.pilot.press(key)
            else:
                await self.pilot.press(*(SPELT.get(letter, letter) for letter in key))

    async def say(self, text: str) -> None:
        """Type ``text``, press Enter and wait for the reply to be over."""
        before = len(self.screen.talk.turns)
        await self.press(text, "enter")
        await self.until(lambda: len(self.screen.talk.turns) > before + 1 and not self.screen.talk.busy)
        await self.pilot.pause()


NAMED: tuple[str, ...] = (
    "enter",
    "escape",
    "up",
    "down",
    "left",
    "right",
    "backspace",
    "tab",
    "pageup",
    "pagedown",
    "home",
    "end",
)
NAMED += tuple(f"f{number}" for number in range(1, 13))
SPELT = {" ": "space", "/": "slash", "?": "question_mark", ".": "full_stop", ",": "comma", "@": "at"}

Open = Callable[..., AbstractAsyncContextManager[Chatting]]


@pytest.fixture
def chatting() -> Open:
    """Opens the application with a script (keyword arguments), ready to answer."""

    @contextlib.asynccontextmanager
    async def opened(
        *, size: tuple[int, int] = (120, 36), ready: bool = True, **script: object
    ) -> AsyncIterator[Chatting]:
        options = LoadOptions(backend="scripted", model="", name="")
        app = LocalInfer(
            Start(
                options=options, sampling=Sampling(temperature=0), reference=urlencode({"text": "An answer."} | script)
            )
        )
        try:
            async with app.run_test(size=size, notifications=True) as pilot:
                chat = Chatting(app, pilot)
                if ready:
                    await chat.until(lambda: chat.screen.desk.state.phase == "ready")
                    await pilot.pause()
                yield chat
        finally:
            app.close()

    return opened
