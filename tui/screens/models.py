"""The models: what is here, what fits, what the hub has; fetching, choosing and deleting them.

The screen asks its sources in threads and shows what they say. It loads nothing: it is dismissed with what was chosen.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, Static

from localinfer.errors import LocalInferError
from localinfer.types import LoadOptions, Value
from tui.aside import aside
from tui.screens.confirm import Confirm
from tui.text.clean import clean
from tui.widgets.bars import KeyLine
from tui.widgets.models import lines
from tui.widgets.models.detail import Detail, Shown
from tui.widgets.models.filter import Filter
from tui.widgets.models.lines import Line, Listing
from tui.widgets.models.listing import ModelList

if TYPE_CHECKING:
    from localinfer.advice import Advice, Planned
    from localinfer.downloads import Download, Downloads
    from localinfer.engines import Engines
    from localinfer.models.plan import Ask

WIDE = 110  # columns from which on the details stand beside the list
_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide"), (160, "-vast")]
SEARCH_FROM = 3  # characters
SEARCH_AFTER_S = 0.4
EXACT_AFTER_S = 0.3
POLL_S = 0.2

_KEYS = (
    *(("Enter", "load or fetch"), ("Tab", "details"), ("←→", "quantization"), ("Esc", "back")),
    *(("Del", "stop or delete"), ("^R", "look again"), ("↑↓", "model")),
)


class Chosen(Value, frozen=True):
    """A model that is here, to be loaded; ``force``: although it does not fit by its plan."""

    reference: str
    force: bool = False


class ModelsScreen(Screen["Chosen | None"]):
    """Dismissed with what is to be loaded; None when the person left. Downloads go on.

    ``advice`` looks at the machine; ``options`` say how models will be loaded, and so how they are planned.
    """

    DEFAULT_CSS = """
    ModelsScreen #top { height: 1; background: $panel; padding: 0 1; }
    ModelsScreen #top Static { width: auto; }
    ModelsScreen Filter { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    ModelsScreen ModelList { width: 1fr; height: 1fr; }
    ModelsScreen Detail { width: 43; height: 1fr; }
    ModelsScreen #note { height: 1; color: $text-muted; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    ModelsScreen.-vast Detail { width: 64; }
    ModelsScreen.-narrow Detail { display: none; }
    ModelsScreen.-narrow.-details Detail { display: block; width: 1fr; }
    ModelsScreen.-narrow.-details ModelList { display: none; }
    """
    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab,shift+tab", "details", "Details", show=False, priority=True),
        Binding("space", "details", show=False),
        Binding("escape", "back", "Back", show=False),
        Binding("enter", "pick", "Load or fetch", show=False),
        Binding("d,c,delete", "remove", "Stop or delete", show=False),
        Binding("ctrl+r,f5,r", "again", "Look again", show=False),
    ]

    def __init__(
        self,
        advice: "Callable[[], Advice]",
        downloads: "Downloads",
        engines: "Engines",
        *,
        options: LoadOptions | None = None,
        offline: bool = False,
        query: str = "",
    ) -> None:
        super().__init__()
        self._new_advice = advice
        self._downloads = downloads
        self._engines = engines
        self._options = options or LoadOptions(backend="llama.cpp", model="", name="")
        self._offline = offline
        self._query = query
        self._advice: Advice | None = None
        self._ask: Ask | None = None
        self._listing = Listing(lines=())
        self._frees = ""
        self._hub: tuple[Line, ...] = ()
        self._note = "looking at this machine…"
        self._hub_note = ""
        self._exact: dict[str, Line] = {}
        self._asked: set[tuple[str, int]] = set()
        self._busy: dict[str, str] = {}
        self._troubles: dict[str, str] = {}
        self._delays: dict[str, Timer] = {}
        self._last: tuple[Download, ...] = ()
        self._arrived: set[str] = set()
        self._wanted = ""

    def compose(self) -> ComposeResult:
        self._filter = Filter(value=self._query, placeholder="type to filter, and to search the hub", compact=True)
        self._list, self._detail = ModelList(id="models"), Detail(id="detail")
        self._told = Static("", id="note", markup=False)
        with Horizontal(id="top"):
            yield Static(Content.assemble(("Models", "bold $text-primary"), "  "), id="title")
            yield self._filter
        with Horizontal():
            yield self._list
            yield self._detail
        yield self._told
        yield KeyLine(_KEYS)

    def on_mount(self) -> None:
        """The screen is there at once; everything it shows comes from threads."""
        self._filter.focus()
        self._arrived = {one.reference for one in self._downloads.snapshot() if one.state == "done"}
        self._poll()
        self.set_interval(POLL_S, self._poll)
        self.action_again()

    # What is listed

    def action_again(self) -> None:
        """Look at the machine again."""
        self.run_worker(self._look(), group="look", exclusive=True)

    async def _look(self) -> None:
        self._note = "looking at this machine…"
        self._show_note()

        def look() -> "tuple[Advice, Ask, Listing, str]":
            from localinfer.models.plan import Ask

            options, advice = self._options, self._new_advice()
            ask = Ask(
                context=options.context,
                slots=options.slots,
                kv_type=options.kv_type,
                device=options.device,
                freed=self._engines.freed,
            )
            return advice, ask, lines.look(advice, ask), self._engines.frees

        try:
            self._advice, self._ask, self._listing, self._frees = await aside(look)
        except LocalInferError as error:
            self._note = f"{error.message} {error.hint}".strip()
        else:
            self._note = " ".join(self._listing.notices) or self._listing.machine
        self._exact.clear()
        self._asked.clear()
        self._relist()
        self._soon("exact", EXACT_AFTER_S, self._ask_exactly)

    def _relist(self) -> None:
        query = self._filter.value
        known = (*self._listing.lines, *self._hub)
        shown = [self._exact.get(line.key, line) for line in known]
        local = lines.matching([line for line in shown if line.section != "hub"], query)
        hub = [line for line in shown if line.section == "hub"]
        engine = self._engines.current
        current = lines.current(shown, engine.options.model if engine is not None else "")
        nothing = f"No model here or in the catalogue has “{query.strip()}” in it." if query.strip() else ""
        self._list.show((*lines.unlisted(self._last, shown), *local, *hub), current=current, nothing=nothing)
        self._show_note()
        self._show_detail()

    def _show_note(self) -> None:
        told = " · ".join(clean(note).replace("\n", " ") for note in (self._hub_note, self._note) if note)
        self._told.update(Content(told))

    # Filtering and the hub

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        query = event.value.strip()
        self._hub, self._hub_note = (), ""
        self.workers.cancel_group(self, "hub")
        if len(query) >= SEARCH_FROM:
            if self._offline:
                self._hub_note = "offline: the hub is not asked"
            else:
                self._hub_note = "asking the hub…"
                self._soon("hub", SEARCH_AFTER_S, lambda: self.run_worker(self._search(query), group="hub"))
        else:
            self._never("hub")
        self._relist()

    async def _search(self, query: str) -> None:
        try:
            self._hub = await aside(partial(lines.find, query, offline=self._offline))
            self._hub_note = "" if self._hub else "the hub has nothing of that name"
        except LocalInferError as error:
            self._hub_note = error.message
        self._relist()

    # The highlighted one

    @on(ModelList.Highlighted)
    def _highlighted(self) -> None:
        self._show_detail()
        self._soon("exact", EXACT_AFTER_S, self._ask_exactly)

    def _ask_exactly(self) -> None:
        line = self._list.highlighted
        if line is None or self._advice is None or line.section == "fetching":
            return
        question = (line.key, self._list.variant(line))
        if question not in self._asked:
            self.run_worker(self._look_exactly(line, question), group="exact", exclusive=True)

    async def _look_exactly(self, line: Line, question: tuple[str, int]) -> None:
        advice, ask = self._advice, self._ask
        assert advice is not None
        assert ask is not None
        if line.section == "hub" and not line.variants:
            self._busy[line.key] = "looking into the repository…"
            self._show_detail()
        work = partial(lines.exactly, line, question[1], advice, ask, offline=self._offline)
        try:
            self._exact[line.key] = await aside(work)
            self._troubles.pop(line.key, None)
            self._asked.add(question)
        except LocalInferError as error:
            if line.section == "hub":
                self._troubles[line.key] = f"{error.message} {error.hint}".strip()
        finally:
            self._busy.pop(line.key, None)
        self._relist()

    def _show_detail(self) -> None:
        line = self._list.highlighted
        if line is None:
            self._detail.show(None)
            return
        self._detail.show(
            Shown(
                line=line,
                variant=self._list.variant(line),
                frees=self._frees,
                current=line.key == self._list.current and self._list.variant(line) == line.usual,
                download=self._list.download_of(line),
                free_disk_bytes=self._listing.free_disk_bytes,
                busy=self._busy.get(line.key, ""),
                trouble=self._troubles.get(line.key, ""),
            )
        )

    # Keys

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._list.move(by)

    def action_page(self, direction: int) -> None:
        """Move the cursor by a page."""
        self._list.page(direction)

    def action_variant(self, by: int) -> None:
        """Choose another quantization of the highlighted model."""
        line = self._list.highlighted
        if line is not None and len(line.variants) > 1:
            self._list.set_variant(line.key, (self._list.variant(line) + by) % len(line.variants))
            self._highlighted()

    def action_details(self) -> None:
        """Go to the details, and back; where the terminal is narrow they take the place of the list."""
        details = not isinstance(self.focused, Detail)
        self.set_class(details, "-details")
        self.set_focus(self._detail if details else self._filter)

    def action_back(self) -> None:
        """One step back: from the details, from what was typed, from the screen."""
        if isinstance(self.focused, Detail):
            self.action_details()
        elif self._filter.value:
            self._filter.value = ""
        else:
            self.dismiss(None)

    @on(ModelList.Picked)
    def action_pick(self) -> None:
        """Load the model, or fetch it and then load it."""
        line = self._list.highlighted
        if line is None:
            return
        download = self._list.download_of(line)
        if download is not None and download.state != "done":
            self._fetch(download.reference, download.title, download.size_bytes)
        elif line.variants:
            self.run_worker(self._pick(line.variants[self._list.variant(line)]), group="pick", exclusive=True)
        else:
            self._ask_exactly()

    async def _pick(self, planned: "Planned") -> None:
        entry, plan = planned.entry, planned.plan
        if plan is None:
            self.notify(clean(planned.error), severity="error", markup=False)
            return
        if not plan.fits:
            yes = "Load it" if entry.here else "Fetch it"
            question = Confirm(f"{entry.title} does not fit. {yes} all the same?", plan.sentence, yes, "Leave it")
            if not await self.app.push_screen_wait(question):
                return
        name = lines.reference(entry)
        if entry.here:
            self.dismiss(Chosen(reference=name, force=not plan.fits))
        else:
            self._fetch(name, f"{entry.title} {entry.quantization}".strip(), entry.size_bytes)

    def _fetch(self, reference: str, title: str, size_bytes: int) -> None:
        self._wanted = reference
        self._downloads.start(reference, title, size_bytes)
        self._poll()

    def action_remove(self) -> None:
        """Stop the download of the highlighted model, or delete its files."""
        line = self._list.highlighted
        if line is None:
            return
        download = self._list.download_of(line)
        if download is not None and download.active:
            self._downloads.stop(download.reference)
            self._poll()
        else:
            self.run_worker(self._remove(line, download), group="remove", exclusive=True)

    async def _remove(self, line: Line, download: "Download | None") -> None:
        from tui.screens import removing

        if line.key == self._list.current:
            self.notify(clean(f"{line.title} is in use: load another model first."), severity="warning", markup=False)
            return
        try:
            gone = await removing.remove(self, line, self._list.variant(line), download, self._advice, self._downloads)
        except LocalInferError as error:
            self.notify(clean(f"{error.message}\n{error.hint}".strip()), severity="error", title="", markup=False)
            return
        if gone:
            self.notify(clean(gone), markup=False)
            self.action_again()

    # Downloads

    def _poll(self) -> None:
        now = self._downloads.snapshot()
        if now == self._last:
            return
        known = {one.reference: one.state for one in self._last}
        self._last = now
        self._list.set_downloads({one.reference: one for one in now if one.state != "done"})
        if {one.reference: one.state for one in now} != known:
            self._relist()
        self._show_detail()
        here = {one.reference for one in now if one.state == "done"}
        arrived, self._arrived = here - self._arrived, here
        if self._wanted in arrived and self.is_current and self._is_highlighted(self._wanted):
            self.dismiss(Chosen(reference=self._wanted))
        elif arrived:
            self.action_again()

    def _is_highlighted(self, reference: str) -> bool:
        """Whether the person still looks at it: who has gone on to another model is not torn away."""
        line = self._list.highlighted
        known = [lines.reference(one.entry) for one in line.variants] if line is not None else []
        return reference in known or (line is not None and line.key == reference)

    # Timers

    def _soon(self, name: str, after_s: float, what: Callable[[], object]) -> None:
        """Do it a little later, unless it is asked for again until then."""
        self._never(name)
        self._delays[name] = self.set_timer(after_s, lambda: what() and None)

    def _never(self, name: str) -> None:
        if timer := self._delays.pop(name, None):
            timer.stop()
