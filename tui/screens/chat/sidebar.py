"""The list of conversations beside the chat, and what is done to them there."""

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical

from localinfer.errors import LocalInferError
from localinfer.models.names import printable
from tui.aside import aside
from tui.widgets.conversations import Conversations

if TYPE_CHECKING:
    from tui.screens.chat.screen import ChatScreen


class Sidebar(Vertical):
    """Carries out what ``Conversations`` asks for, but for opening one: that is the screen's business."""

    DEFAULT_CSS = """
    Sidebar { width: auto; height: 1fr; }
    """

    def __init__(self, chat: "ChatScreen") -> None:
        super().__init__()
        self._chat = chat
        self._history = chat.owner.history
        self.listed = Conversations(lambda limit, offset: self._history.conversations(limit, offset))

    def compose(self) -> ComposeResult:
        yield self.listed

    @on(Conversations.Pinned)
    def _pinned(self, event: Conversations.Pinned) -> None:
        self._do(lambda: self._history.change(event.id, pinned=event.pinned))

    @on(Conversations.Renamed)
    def _renamed(self, event: Conversations.Renamed) -> None:
        self._do(lambda: self._history.change(event.id, title=event.title))

    @on(Conversations.Deleted)
    def _deleted(self, event: Conversations.Deleted) -> None:
        self._do(lambda: self._history.delete(event.id))
        if self._chat.talk.conversation is not None and self._chat.talk.conversation.id == event.id:
            self._chat.action_new()

    @on(Conversations.Restored)
    def _restored(self, event: Conversations.Restored) -> None:
        self._do(lambda: self._history.restore(event.id))

    @on(Conversations.ExportRequested)
    @work
    async def _exported(self, event: Conversations.ExportRequested) -> None:
        try:
            path = await aside(lambda: self._write(event.id, as_json=event.format == "json"))
        except LocalInferError as error:
            self._chat.trouble(error)
        else:
            self._chat.owner.say(f"Written to {printable(str(path))}")

    @on(Conversations.Failed)
    def _failed(self, event: Conversations.Failed) -> None:
        if isinstance(event.error, LocalInferError):
            self._chat.trouble(event.error)

    def _write(self, id: int, *, as_json: bool) -> Path:
        from localinfer.history import export
        from tui.screens.chat.commands import write_new

        conversation, turns = self._history.conversation(id), self._history.turns(id)
        text = (export.to_json if as_json else export.to_markdown)(conversation, turns)
        return write_new(Path(export.file_name(conversation.title, ".json" if as_json else ".md")), text)

    @work
    async def _do(self, what: "object") -> None:
        try:
            await aside(what)  # type: ignore[arg-type]
        except LocalInferError as error:
            self._chat.trouble(error)
        self.listed.refresh_list()
