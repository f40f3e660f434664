"""What the palette offers of the chat beside the actions: its other commands, asked for what they need, this
conversation, and the presets."""

import functools
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from localinfer.errors import LocalInferError
from localinfer.history.values import Conversation
from localinfer.presets import Preset, presets
from tui.aside import aside
from tui.palette import Entry
from tui.screens.chat.commands import Commands
from tui.screens.chat.view import WRITING
from tui.screens.confirm import Ask
from tui.text.clean import clean

if TYPE_CHECKING:
    from tui.screens.chat.screen import ChatScreen

# Commands that an action of the palette is, too: without an argument they do just that.
ACTIONS = {
    "model": "models",
    "system": "parameters",
    "params": "parameters",
    "new": "new",
    "clear": "new",
    "retry": "retry",
    "edit": "edit",
    "copy": "copy_reply",
    "figures": "readout",
    "activity": "activity",
    "settings": "settings",
    "theme": "theme",
    "help": "help",
    "quit": "quit",
}


class Offered:
    """A source of entries for the palette."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen
        self._commands = Commands(screen)
        self._deleted: Conversation | None = None

    def __call__(self) -> Iterable[Entry]:
        yield from self._of_reply()
        yield from self._of_conversation()
        for preset in presets():
            yield Entry(f"Use preset: {clean(preset.name)}", "", self._later(self._use, preset))

    def _of_reply(self) -> Iterable[Entry]:
        do, ask = self._commands.do, self._ask
        engine = self._screen.desk.engine
        model = engine.status().model if engine is not None else None
        context = f"{model.context}" if model is not None else ""
        save = ask("File for the reply", "reply.md", functools.partial(do, "save"))
        yield Entry("Every figure of the last reply", "/stats", self._later(do, "stats", ""), at_once=True)
        yield Entry("Write the last reply to a file", "/save", save, at_once=True)
        yield Entry("What drafts tokens for the model", "/draft", self._later(do, "draft", ""), at_once=True)
        yield Entry(
            "Load the model with another context",
            "/context",
            ask("Tokens of context", context, functools.partial(do, "context")),
            at_once=True,
        )

    def _of_conversation(self) -> Iterable[Entry]:
        from localinfer.history.export import file_name

        if (one := self._deleted) is not None:
            yield Entry(f"Bring back “{_title(one)}”", "", self._later(self._restore, one), at_once=True)
        if (one := self._screen.talk.conversation) is None:
            return
        for kind, title, ending in (("markdown", "Markdown", ".md"), ("json", "JSON", ".json")):
            export = functools.partial(self._export, kind)
            yield Entry(
                f"Export this conversation as {title}",
                f"/export {kind}",
                self._ask(f"File for the conversation, as {title}", file_name(one.title, ending), export),
                at_once=True,
            )
        rename = self._ask("Name of this conversation", one.title, self._rename)
        yield Entry("Rename this conversation", "", rename, at_once=True)
        pin = functools.partial(self._change, pinned=not one.pinned)
        yield Entry(f"{'Unpin' if one.pinned else 'Pin'} this conversation", "", self._later(pin), at_once=True)
        yield Entry("Delete this conversation", "", self._later(self._delete), at_once=True)

    # How entries are run

    def _later(self, what: Callable[..., Awaitable[None]], *given: Any) -> Callable[[], object]:
        """``what`` in a worker of the screen; what fails is told the person."""

        async def run() -> None:
            try:
                await what(*given)
            except LocalInferError as error:
                self._screen.trouble(error)

        return lambda: self._screen.run_worker(run())

    def _ask(self, question: str, value: str, then: Callable[[str], Awaitable[None]]) -> Callable[[], object]:
        """Ask for the one thing that ``then`` needs."""

        def answered(text: str | None) -> None:
            if text:
                self._later(then, text)()

        return lambda: self._screen.owner.push_screen(Ask(question, value), answered)

    # What they do

    async def _export(self, kind: str, name: str) -> None:
        await self._commands.do("export", f"{kind} {name}")

    async def _rename(self, title: str) -> None:
        await self._change(title=title)

    async def _change(self, **fields: Any) -> None:
        talk = self._screen.talk
        if (one := talk.conversation) is not None:
            await aside(lambda: talk.history.change(one.id, **fields))
            talk.conversation = await aside(lambda: talk.history.conversation(one.id))
            self._screen.conversation_changed()

    async def _delete(self) -> None:
        talk = self._screen.talk
        if talk.busy:
            self._screen.tell(WRITING)
        elif (one := talk.conversation) is not None:
            await aside(lambda: talk.history.delete(one.id))
            self._deleted = one
            self._screen.action_new()
            self._screen.owner.say(f"Deleted “{_title(one)}”. Ctrl+P can bring it back.")

    async def _restore(self, one: Conversation) -> None:
        await aside(lambda: self._screen.talk.history.restore(one.id))
        self._deleted = None
        self._screen.go_to(one.id)

    async def _use(self, preset: Preset) -> None:
        now = self._screen.talk.parameters
        system = now.system if preset.system is None else preset.system
        await self._screen.models.apply(msgspec.structs.replace(now, sampling=preset.sampling, system=system))
        self._screen.tell(f"Replies are {preset.name} from the next message on.")


def _title(one: Conversation) -> str:
    title = " ".join(clean(one.title).split()) or "Untitled"
    return title if len(title) <= 40 else title[:39] + "…"
