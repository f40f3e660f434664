"""A small application with a prompt, which keeps the messages that the prompt posts."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Static

from tui.widgets.prompt import Command, Prompt
from tui.widgets.prompt.chips import Chips
from tui.widgets.prompt.completion import Completion
from tui.widgets.prompt.editor import Editor
from tui.widgets.prompt.status import Status

COMMANDS = (
    Command(
        name="model", summary="Switch to another model", argument="name", choices=lambda _: ("alpha", "beta", "betamax")
    ),
    Command(name="system", summary="Set the system prompt", argument="text"),
    Command(name="help", summary="Keys and commands"),
    Command(name="retry", summary="Answer again"),
)


class Host(App[None]):
    """``posted`` are the messages of the prompt, without those that it has changed."""

    CSS = "#conversation { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("pageup", "paged", "Page", show=False)]

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.prompt = Prompt(COMMANDS, folder=folder)
        self.posted: list[Message] = []
        self.changes = 0
        self.pages = 0

    def compose(self) -> ComposeResult:
        yield Static("conversation", id="conversation")
        yield self.prompt

    def on_mount(self) -> None:
        self.prompt.focus()

    def action_paged(self) -> None:
        self.pages += 1

    def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        self.posted.append(message)

    def on_prompt_command_given(self, message: Prompt.CommandGiven) -> None:
        self.posted.append(message)

    def on_prompt_attachment_added(self, message: Prompt.AttachmentAdded) -> None:
        self.posted.append(message)

    def on_prompt_escaped(self, message: Prompt.Escaped) -> None:
        self.posted.append(message)

    def on_prompt_mode_left(self, message: Prompt.ModeLeft) -> None:
        self.posted.append(message)

    def on_prompt_changed(self) -> None:
        self.changes += 1

    @property
    def sent(self) -> list[Prompt.Submitted]:
        """The messages that were submitted."""
        return [message for message in self.posted if isinstance(message, Prompt.Submitted)]

    @property
    def given(self) -> list[tuple[str, str]]:
        """The commands that were given, with their arguments."""
        return [(one.name, one.argument) for one in self.posted if isinstance(one, Prompt.CommandGiven)]

    @property
    def editor(self) -> Editor:
        """The editor in the prompt."""
        return self.query_one(Editor)

    @property
    def completion(self) -> Completion:
        """The list above the editor."""
        return self.query_one(Completion)

    @property
    def chips(self) -> Chips:
        """The attachments under it."""
        return self.query_one(Chips)

    @property
    def status(self) -> str:
        """The line under it."""
        return self.query_one(Status).text

    @property
    def screen_text(self) -> str:
        """What is on the screen."""
        strips = self.screen._compositor.render_strips(self.size)
        return "\n".join(strip.text for strip in strips)

    async def until(self, condition: Callable[[], object], timeout_s: float = 10) -> None:
        """Wait until ``condition`` holds."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"it did not come to that; the screen:\n{self.screen_text}"
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(folder: Path, size: tuple[int, int] = (80, 24)) -> AsyncIterator[tuple[Host, Pilot[None]]]:
    """A running host whose files are in ``folder``."""
    host = Host(folder)
    async with host.run_test(size=size) as pilot:
        yield host, pilot
