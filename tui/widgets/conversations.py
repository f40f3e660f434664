"""The list of conversations: pinned first, then by day, read page by page as one goes down.

It shows values and posts what a person wants done with them; the store is the owner's.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar, Literal

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click, Key
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from localinfer.history.values import Conversation
from tui.text.clean import clean
from tui.widgets.bars import Keyed, KeyHint
from tui.widgets.conversation_rows import ConversationRows
from tui.widgets.entry import Entry

PAGE = 200

Format = Literal["markdown", "json"]
Source = Callable[[int, int], Sequence[Conversation]]

KEYS = "Enter open · p pin · r rename\nDel delete · x export · n new"


class Conversations(Keyed, Vertical):
    """``source(limit, offset)`` gives conversations, pinned first and then the newest; it is called in a thread.

    ``refresh_list`` reads anew, ``current`` marks the one that is open. A deleted one is hidden at once; the notice
    says how to take it back.
    """

    DEFAULT_CSS = """
    Conversations { width: 32; background: $surface; layers: base edit; }
    Conversations #foot { height: 2; padding: 0 1; color: $text-muted; }
    Conversations #foot.notice { color: $text; }
    Conversations Input.-textual-compact {
        layer: edit; position: absolute; padding: 0 1; background: $panel; display: none;
    }
    Conversations Input.editing { display: block; }
    """
    KEYS: ClassVar[tuple[KeyHint, ...]] = (("Esc", "Back"), ("↑ ↓", "Choose"), ("/", "Search"), ("u", "Undo deletion"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open"),
        Binding("p", "pin", "Pin"),
        Binding("r", "rename", "Rename"),
        Binding("delete,backspace", "delete", "Delete"),
        Binding("u", "undo", "Undo"),
        Binding("n", "new", "New"),
        Binding("x", "export", "Export"),
        Binding("slash", "search", "Search"),
    ]

    class Wanted(Message):
        """Base of what is wanted for one conversation."""

        def __init__(self, id: int) -> None:
            super().__init__()
            self.id = id

    class Opened(Wanted):
        """The person wants to see this conversation."""

    class Pinned(Wanted):
        """It is to be pinned, or no longer."""

        def __init__(self, id: int, pinned: bool) -> None:
            super().__init__(id)
            self.pinned = pinned

    class Renamed(Wanted):
        """It is to have another title."""

        def __init__(self, id: int, title: str) -> None:
            super().__init__(id)
            self.title = title

    class Deleted(Wanted):
        """It is to be deleted; it may be wanted back."""

    class Restored(Wanted):
        """It was deleted and is wanted back."""

    class ExportRequested(Wanted):
        """It is to be written to a file."""

        def __init__(self, id: int, format: Format) -> None:  # noqa: A002
            super().__init__(id)
            self.format = format

    class NewRequested(Message):
        """A new conversation is wanted."""

    class SearchRequested(Message):
        """All conversations are to be searched."""

    class Failed(Message):
        """The list could not be read."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    class _Page(Message):
        """What was read of the list."""

        def __init__(self, conversations: tuple[Conversation, ...], limit: int, offset: int) -> None:
            super().__init__()
            self.conversations = conversations
            self.limit = limit
            self.offset = offset

    def __init__(self, source: Source, *, now: Callable[[], datetime] = datetime.now, id: str | None = None) -> None:
        super().__init__(id=id)
        self._source = source
        self._rows = ConversationRows(now)
        self._complete = False
        self._reading = False
        self._deleted: Conversation | None = None
        self._renaming: Conversation | None = None
        self._exporting: Conversation | None = None

    def compose(self) -> ComposeResult:
        yield self._rows
        yield Entry(compact=True, max_length=200, select_on_focus=False)
        yield Static(KEYS, id="foot", markup=False)

    def on_mount(self) -> None:
        self.refresh_list()

    @property
    def current(self) -> int | None:
        """The conversation that is open, marked in the list."""
        return self._rows.current

    @current.setter
    def current(self, id: int | None) -> None:
        self._rows.current = id
        self._rows.refresh()

    @property
    def highlighted(self) -> Conversation | None:
        """The conversation under the cursor."""
        return self._rows.highlighted

    def focus(self, scroll_visible: bool = True) -> "Conversations":
        self._rows.focus(scroll_visible)
        return self

    def refresh_list(self) -> None:
        """Read the list again, as far down as it was read, and keep the cursor where it is."""
        self._read(max(PAGE, len(self._rows.conversations)), 0)

    def show(self, conversation: Conversation) -> None:
        """Put ``conversation``, new or changed, where it belongs, without reading the list again."""
        others = [one for one in self._rows.conversations if one.id != conversation.id]
        place = next((index for index, one in enumerate(others) if _order(one) >= _order(conversation)), len(others))
        self._rows.put([*others[:place], conversation, *others[place:]])

    def _read(self, limit: int, offset: int) -> None:
        self._reading = True
        self._ask(limit, offset)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _ask(self, limit: int, offset: int) -> None:
        worker = get_current_worker()
        try:
            answer: Message = self._Page(tuple(self._source(limit, offset)), limit, offset)
        except Exception as error:
            answer = self.Failed(error)
        if not worker.is_cancelled:  # the list is being read anew
            self.post_message(answer)

    def on_conversations_failed(self) -> None:
        self._reading = False

    @on(_Page)
    def _take(self, page: _Page) -> None:
        page.stop()
        self._reading = False
        self._complete = len(page.conversations) < page.limit
        hidden = self._deleted.id if self._deleted else None
        before = self._rows.conversations[: page.offset] if page.offset else []
        known = {hidden, *(one.id for one in before)}
        self._rows.put([*before, *(one for one in page.conversations if one.id not in known)])

    @on(ConversationRows.NearEnd)
    def _read_on(self) -> None:
        if not self._complete and not self._reading:
            self._read(PAGE, len(self._rows.conversations))

    # What a person does

    def on_click(self, event: Click) -> None:
        if event.widget is self._rows and self._rows.point(event.y):
            self.action_open()

    def action_open(self) -> None:
        if one := self.highlighted:
            self.post_message(self.Opened(one.id))

    def action_pin(self) -> None:
        if one := self.highlighted:
            self.show(msgspec.structs.replace(one, pinned=not one.pinned))
            self.post_message(self.Pinned(one.id, not one.pinned))

    def action_new(self) -> None:
        self.post_message(self.NewRequested())

    def action_search(self) -> None:
        self.post_message(self.SearchRequested())

    def action_delete(self) -> None:
        one = self.highlighted
        if one is None:
            return
        self._deleted = one
        self._rows.put(each for each in self._rows.conversations if each.id != one.id)
        self.post_message(self.Deleted(one.id))
        self._say(f"Deleted “{_title(one)}”\nu takes it back")

    def action_undo(self) -> None:
        if self._deleted is None:
            return
        one, self._deleted = self._deleted, None
        self.show(one)
        self._rows.highlight(one.id)
        self.post_message(self.Restored(one.id))
        self._say()

    def action_rename(self) -> None:
        one, line = self.highlighted, self._rows.cursor_line
        if one is None or line is None:
            return
        self._renaming = one
        box = self.query_one(Input)
        box.styles.offset = (0, line)
        box.styles.width = self.content_size.width
        box.value = one.title
        box.cursor_position = len(box.value)
        box.add_class("editing")
        box.focus()
        self._say("Enter renames\nEsc leaves it")

    @on(Input.Submitted)
    def _rename(self, event: Input.Submitted) -> None:
        event.stop()
        one, title = self._renaming, event.value.strip()
        self._end_renaming()
        if one is not None and title and event.value != one.title:
            self._rows.put(
                [
                    msgspec.structs.replace(each, title=title) if each.id == one.id else each
                    for each in self._rows.conversations
                ]
            )
            self.post_message(self.Renamed(one.id, title))

    @on(Input.Blurred)
    def _end_renaming(self) -> None:
        if self._renaming is not None:
            self._renaming = None
            self.query_one(Input).remove_class("editing")
            self._rows.focus()
            self._say()

    def action_export(self) -> None:
        if one := self.highlighted:
            self._exporting = one
            self._say("Export: m Markdown · j JSON\nEsc leaves it")

    def on_key(self, event: Key) -> None:
        if self._renaming is not None:
            if event.key == "escape":
                event.stop()
                self._end_renaming()
            return
        exporting, self._exporting = self._exporting, None
        if exporting is None:
            return
        event.stop()
        event.prevent_default()
        formats: dict[str, Format] = {"m": "markdown", "j": "json"}
        if event.key in formats:
            self.post_message(self.ExportRequested(exporting.id, formats[event.key]))
        self._say()

    def _say(self, text: str = "") -> None:
        foot = self.query_one("#foot", Static)
        foot.update(Content(text or KEYS))
        foot.set_class(bool(text), "notice")


def _order(one: Conversation) -> tuple[bool, float]:
    return (not one.pinned, -one.changed_s)


def _title(one: Conversation) -> str:
    title = " ".join(clean(one.title).split()) or "Untitled"
    return title if len(title) <= 17 else title[:16] + "…"
