"""What can be typed behind a slash, and what it does."""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from localinfer import kept
from localinfer.errors import BadRequest, LocalInferError, StorageUnavailable
from localinfer.models.names import printable
from tui.parameters import DRAFTERS
from tui.screens.chat.figures import rows
from tui.widgets.prompt import Command

if TYPE_CHECKING:
    from tui.screens.chat.screen import ChatScreen

COMMANDS = (
    Command(name="model", summary="use another model; without a name, choose one", argument="NAME"),
    Command(name="system", summary="set the system prompt of this conversation", argument="TEXT"),
    Command(name="params", summary="system prompt, sampling, context, presets"),
    Command(name="context", summary="load the model with a context of so many tokens", argument="TOKENS"),
    Command(
        name="draft",
        summary="what drafts tokens for the model; without a name, choose",
        argument="auto|lookup|off|MODEL",
        choices=lambda typed: [word for word in DRAFTERS if word.startswith(typed.casefold())],
    ),
    Command(name="new", summary="begin a new conversation; this one stays in the list"),
    Command(name="clear", summary="the same as /new"),
    Command(name="retry", summary="answer the last message again, as another branch"),
    Command(name="edit", summary="edit the last message and send it as another branch"),
    Command(name="copy", summary="copy the last reply, or its last code block", argument="code"),
    Command(name="save", summary="write the last reply to a file", argument="FILE"),
    Command(name="export", summary="write the conversation to a file", argument="markdown|json FILE"),
    Command(name="stats", summary="every figure of the last reply"),
    Command(name="activity", summary="what the engine is doing, and for whom"),
    Command(name="figures", summary="show or hide the column of figures"),
    Command(name="settings", summary="see and change the settings"),
    Command(name="theme", summary="choose a theme"),
    Command(name="help", summary="keys, commands, and what the figures mean"),
    Command(name="quit", summary="leave localinfer"),
)


class Commands:
    """Carries commands out on a chat screen."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen
        self._table: dict[str, Callable[[str], object]] = {
            "model": self._model,
            "system": self._system,
            "params": lambda _: screen.action_parameters(),
            "context": self._context,
            "draft": screen.drafters.do,
            "new": lambda _: screen.action_new(),
            "clear": lambda _: screen.action_new(),
            "retry": lambda _: screen.action_retry(),
            "edit": lambda _: screen.action_edit(),
            "copy": self._copy,
            "save": self._save,
            "export": self._export,
            "stats": self._stats,
            "activity": lambda _: screen.owner.action_activity(),
            "figures": lambda _: screen.action_readout(),
            "settings": lambda _: screen.owner.action_settings(),
            "theme": lambda _: screen.owner.action_theme(),
            "help": lambda _: screen.owner.action_help(),
            "quit": lambda _: screen.owner.exit(),
        }

    async def do(self, name: str, argument: str) -> None:
        """Carry out a command; what goes wrong is told the person, and what went wrong before is past."""
        self._screen.owner.forget_troubles()
        try:
            outcome = self._table[name](argument)
            if inspect.iscoroutine(outcome):
                await outcome
        except LocalInferError as error:
            self._screen.trouble(error)

    async def _model(self, name: str) -> None:
        if name:
            await self._screen.models.use(name)
        else:
            await self._screen.models.choose()

    async def _system(self, text: str) -> None:
        talk = self._screen.talk
        if not text:
            self._screen.action_parameters()
            return
        await talk.set_parameters(msgspec.structs.replace(talk.parameters, system=text))
        self._screen.tell("The system prompt is set; it holds from the next message on.")

    async def _context(self, text: str) -> None:
        digits = text.replace(",", "").replace("_", "")
        if not digits.isdecimal() or not 16 <= int(digits) <= 2**31 - 1:
            raise BadRequest("/context takes a number of tokens.", "As in: /context 16384", param="context")
        talk = self._screen.talk
        await self._screen.models.apply(msgspec.structs.replace(talk.parameters, context=int(digits)))

    def _copy(self, what: str) -> None:
        if what.strip().casefold() == "code":
            self._screen.action_copy_code()
        else:
            self._screen.action_copy_reply()

    async def _save(self, name: str) -> None:
        reply = self._screen.talk.last("assistant")
        if reply is None or not reply.content:
            raise BadRequest("There is no reply to save yet.", "Ask something first.")
        await self._write(name or "reply.md", reply.content)

    async def _export(self, argument: str) -> None:
        from localinfer.history import export

        talk = self._screen.talk
        if talk.conversation is None:
            raise BadRequest("There is no conversation to export yet.", "Ask something first.")
        first, _, rest = argument.partition(" ")
        as_json = first.casefold() == "json"
        name = rest.strip() if first.casefold() in ("json", "markdown") else argument
        make = export.to_json if as_json else export.to_markdown
        text = make(talk.conversation, talk.turns)
        await self._write(name or export.file_name(talk.conversation.title, ".json" if as_json else ".md"), text)

    async def _write(self, name: str, text: str) -> None:
        path = Path(name).expanduser()
        path = await asyncio.to_thread(write_new, path, text)
        self._screen.owner.say(f"Written to {printable(str(path))}")

    async def _stats(self, _: str) -> None:
        from tui.screens.note import NoteScreen

        reply = self._screen.talk.last("assistant")
        if reply is None or reply.metrics is None:
            raise BadRequest("No reply was measured yet.", "Ask something first.")
        if not self._screen.has_class("-wide"):  # the column is not there to explain them
            await self._screen.action_readout()
            return
        self._screen.owner.push_screen(NoteScreen("The figures of the last reply", rows(reply.metrics)))


def write_new(path: Path, text: str) -> Path:
    """Write ``text`` to ``path``, whole or not at all, and return where it is. A file that is there is never written
    over. Raises ``BadRequest`` and ``StorageUnavailable``."""
    path = path.absolute()
    if path.exists() or path.is_symlink():
        raise BadRequest(f"{printable(str(path))} exists already.", "Name another file.", param="file")
    try:
        kept.put(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise StorageUnavailable(
            f"{printable(str(path))} cannot be written: {error.strerror}.", "Choose another place."
        ) from error
    return path
