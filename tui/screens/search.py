"""Searching all conversations as one types: the newest query wins, and what matched is marked."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.style import Style
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localinfer.errors import LocalInferError
from localinfer.history.values import Hit
from tui.text.clean import clean
from tui.widgets.conversation_rows import when
from tui.widgets.entry import Entry

DEBOUNCE_S = 0.12

Found = tuple[int, int | None]
Search = Callable[[str], Sequence[Hit]]


class SearchScreen(ModalScreen[Found | None]):
    """``search`` is called in a thread, with what was typed; nothing typed asks it for recent conversations. Dismissed
    with (conversation id, turn id or None for a match in the title), None when the person left."""

    DEFAULT_CSS = """
    SearchScreen { align: center middle; }
    SearchScreen > Vertical {
        width: 92; max-width: 96%; height: 80%; min-height: 16; max-height: 96%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    SearchScreen Input.-textual-compact { padding: 0 1; background: $panel; margin-bottom: 1; }
    SearchScreen Input.-textual-compact:focus { background: $surface-active; }
    SearchScreen Input > .input--placeholder { color: $text-muted; }
    SearchScreen OptionList {
        height: 1fr; background: $surface; border: none; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis; min-width: 8;
    }
    SearchScreen OptionList:focus { border: none; }
    SearchScreen OptionList > .option-list--option-highlighted {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: none;
    }
    SearchScreen:nocolor OptionList > .option-list--option-highlighted { text-style: reverse; }
    SearchScreen #state { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("down", "move('cursor_down')", show=False),
        Binding("up", "move('cursor_up')", show=False),
        Binding("pagedown", "move('page_down')", show=False),
        Binding("pageup", "move('page_up')", show=False),
    ]

    def __init__(self, search: Search, query: str = "", *, now: Callable[[], datetime] = datetime.now) -> None:
        super().__init__()
        self._search = search
        self._query = query
        self._now = now
        self._hits: tuple[Hit, ...] = ()
        self._shown: str | None = None  # the query whose hits are shown
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Entry(self._query, placeholder="Search all conversations", compact=True)
            yield OptionList(markup=False)
            yield Static("", id="state", markup=False)

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.can_focus = False  # the query keeps the focus; ↑ and ↓ move from it
        self._look()

    @on(Input.Changed)
    def _typed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(DEBOUNCE_S, self._look)

    def _look(self) -> None:
        self.run_worker(self._find(self.query_one(Input).value.strip()), exclusive=True, exit_on_error=False)

    async def _find(self, query: str) -> None:
        """Show what ``query`` finds. A newer query ends this, and what its thread still finds is dropped."""
        if query == self._shown:
            return
        try:
            hits = tuple(await asyncio.to_thread(self._search, query))
        except LocalInferError as error:
            self._show(query, ())
            self.query_one("#state", Static).update(Content(clean(f"▲ {error.message} {error.hint}")))
            return
        self._show(query, hits)

    def _show(self, query: str, hits: tuple[Hit, ...]) -> None:
        self._hits, self._shown = hits, query
        options = self.query_one(OptionList)
        options.clear_options()
        marked = Style(bold=True, underline=True)
        options.add_options(Option(_drawn(hit, marked, self._now())) for hit in hits)
        if hits:
            options.highlighted = 0
        count = f"{len(hits):,} found" if query else "recent conversations"
        nothing = f"Nothing has “{clean(query)}” in it" if query else "No conversations yet"
        keys = "↑ ↓ choose · Enter opens · Esc leaves" if hits else "Esc leaves"
        self.query_one("#state", Static).update(Content(f"{count if hits else nothing} · {keys}"))

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        """Open what is chosen; if what is typed has not been looked for yet, that first."""
        event.stop()
        if self._timer is not None:
            self._timer.stop()
        self.workers.cancel_node(self)
        await self._find(event.value.strip())
        self._open(self.query_one(OptionList).highlighted)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self._open(event.option_index)

    def _open(self, index: int | None) -> None:
        if index is not None and index < len(self._hits):
            hit = self._hits[index]
            self.dismiss((hit.conversation.id, hit.turn))

    def action_move(self, how: str) -> None:
        getattr(self.query_one(OptionList), f"action_{how}")()

    def action_leave(self) -> None:
        self.dismiss(None)


def _drawn(hit: Hit, marked: Style, now: datetime) -> Content:
    title = " ".join(clean(hit.conversation.title).split()) or "Untitled"
    about = " · ".join(filter(None, (when(hit.conversation.changed_s, now), clean(hit.conversation.model))))
    pin = "★ " if hit.conversation.pinned else ""
    lines = [Content.assemble(pin, (title, "bold"), (f"  {about}", "dim"))]
    if hit.excerpt:
        lines.append(Content.assemble("  ", _excerpt(hit, marked)))
    return Content("\n").join(lines)


def _excerpt(hit: Hit, marked: Style) -> Content:
    """The text around the match. It is cleaned piece by piece, so that marks stay where they are."""
    parts: list[Content] = []
    at = 0
    for start, end in sorted(hit.marks):
        start, end = max(at, start), max(at, end)
        parts += [Content(_flat(hit.excerpt[at:start])), Content(_flat(hit.excerpt[start:end])).stylize(marked)]
        at = end
    return Content("").join([*parts, Content(_flat(hit.excerpt[at:]))])


def _flat(text: str) -> str:
    return clean(text).replace("\n", " ").replace("\t", " ")
