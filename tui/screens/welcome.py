"""The first start on a new machine: what it is, what to run on it, and a first model at once.

The machine is looked at in a thread; the screen is there before. It fetches the first model, loads it and is dismissed.
"""

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localinfer.errors import LocalInferError
from localinfer.types import LoadOptions, Value
from tui.aside import aside
from tui.text.clean import clean
from tui.widgets.bars import KeyLine
from tui.widgets.models import offer, words
from tui.widgets.models.offer import Model, Offer

if TYPE_CHECKING:
    from localinfer.advice import Advice
    from localinfer.downloads import Download, Downloads
    from localinfer.engines import Engines
    from tui.screens.models import Chosen

POLL_S = 0.2
_WIDTH = 84  # cells of what is said, its margins included
_CHOICES = 6  # lines of the choices at most
_NAME = 12  # cells for the name of a fact

_CHOOSING = (("Enter", "choose"), ("↑↓", "other choices"), ("Esc", "quit"))
_FETCHING = (("Esc", "stop; what has arrived is kept"),)
_FETCHING_PACKAGE = (("Esc", "stop"),)


class Welcomed(Value, frozen=True):
    """What was loaded, and what is being fetched meanwhile."""

    reference: str
    background: str | None = None


class WelcomeScreen(Screen["Welcomed | None"]):
    """Dismissed once a model is loaded; with None when the person wants to leave.

    ``advice`` looks at the machine; ``options`` say how the model is loaded.
    """

    DEFAULT_CSS = f"""
    WelcomeScreen {{ align: center middle; }}
    WelcomeScreen #all {{ width: {_WIDTH}; max-width: 100%; height: auto; }}
    WelcomeScreen #told {{ height: auto; padding: 0 2; scrollbar-size-vertical: 1; }}
    WelcomeScreen Static {{ width: 1fr; height: auto; margin-bottom: 1; }}
    WelcomeScreen.-tight Static {{ margin-bottom: 0; }}
    WelcomeScreen #status {{ padding: 0 2; }}
    WelcomeScreen OptionList, WelcomeScreen OptionList:focus {{
        height: auto; background: $background; background-tint: transparent; border: none; padding: 0 2;
        min-width: 8;
    }}
    WelcomeScreen .-none {{ display: none; }}
    WelcomeScreen KeyLine {{ dock: bottom; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Quit", show=False),
        Binding("pageup,ctrl+up", "scroll_told(-1)", show=False, priority=True),
        Binding("pagedown,ctrl+down", "scroll_told(1)", show=False, priority=True),
    ]

    def __init__(
        self,
        advice: "Callable[[], Advice]",
        downloads: "Downloads",
        engines: "Engines",
        *,
        options: LoadOptions | None = None,
        offline: bool = False,
    ) -> None:
        super().__init__()
        self._new_advice = advice
        self._downloads = downloads
        self._engines = engines
        self._options = options or LoadOptions(backend="llama.cpp", model="", name="")
        self._offline = offline
        self._offer: Offer | None = None
        self._target: Model | None = None  # what is loaded once it is here
        self._background: str | None = None
        self._force = False
        self._loading = False
        self._shown: Download | None = None
        self._status_lines = 0

    def compose(self) -> ComposeResult:
        title = Content.assemble(
            ("localinfer", "bold $text-primary"), ("  language models on your own machine", "$text-muted")
        )
        with Vertical(id="all"):
            with VerticalScroll(id="told", can_focus=False):
                yield Static(title)
                yield Static("Looking at this machine…", id="facts", markup=False)
                yield Static("", id="trouble", classes="-none", markup=False)
                yield Static("", id="best", classes="-none", markup=False)
            yield Static("", id="status", classes="-none", markup=False)
            yield OptionList(id="choices")
        yield KeyLine(_CHOOSING)

    def on_mount(self) -> None:
        """Look at the machine behind the first paint."""
        self.query_one(OptionList).focus()
        self.set_interval(POLL_S, self._poll)
        self._look()

    def _look(self) -> None:
        self.run_worker(self._fill_in(), group="look", exclusive=True)

    async def _fill_in(self) -> None:
        try:
            self._offer = await aside(lambda: offer.look(self._new_advice()))
        except LocalInferError as error:
            self._say(f"{error.message}\n{error.hint}".strip(), trouble=True)
            self._choose((("again", "Look again", ""), ("quit", "Quit", "")))
            return
        self._draw()
        self._say("")
        self._choose(choices(self._offer, offline=self._offline))

    def on_resize(self) -> None:
        """Lines and the bar of progress are as long as there is room."""
        self._draw()
        self._shown = None
        self._poll()

    def _draw(self) -> None:
        made, width = self._offer, self._width()
        if made is None:
            return
        told = (_facts(made, width), _troubles(made, width), _best(made, width, offline=self._offline))
        for name, content in zip(("#facts", "#trouble", "#best"), told, strict=True):
            part = self.query_one(name, Static)
            part.update(content)
            part.set_class(not content.plain, "-none")
        self._fit(sum(content.plain.count("\n") + 1 for content in told if content.plain) + 1)

    def _fit(self, lines: int) -> None:
        """Where the terminal is low, first the blank lines go; then what is told scrolls, and the choices stay."""
        below = self._status_lines + (_CHOICES if self._target is None else 1)
        room = self.size.height - 1
        self.set_class(lines + 4 + below > room, "-tight")
        self.query_one("#told").styles.max_height = max(3, room - below)

    def action_scroll_told(self, direction: int) -> None:
        """Scroll what is told by half of what is seen."""
        told = self.query_one("#told")
        told.scroll_relative(y=direction * max(1, told.size.height // 2), animate=False)

    # What is offered

    def _choose(self, offered: tuple[tuple[str, str, str], ...]) -> None:
        listed = self.query_one(OptionList)
        listed.clear_options()
        for id, label, detail in offered:
            text = clean(label) if not detail else f"{clean(label)}\n{clean(detail)}"
            listed.add_option(Option(Content(text), id=id))
        listed.highlighted = 0
        listed.display = True
        listed.focus()
        self.query_one(KeyLine).show(_CHOOSING)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        made = self._offer
        match event.option_id:
            case "quit":
                self.dismiss(None)
            case "again":
                self._look()
            case "other":
                self._other()
            case "wait" if made is not None and made.best is not None:
                self._background = None
                self._fetch(made.best)
            case "both" if made is not None and made.best is not None:
                self._fetch(made.starter)
                self._background = made.best.reference
                self._downloads.start(made.best.reference, made.best.title, made.best.size_bytes)
            case "starter" if made is not None:
                self._background = None
                self._fetch(made.starter)
            case _:
                pass

    def _other(self) -> None:
        from tui.screens.models import ModelsScreen

        screen = ModelsScreen(
            self._new_advice, self._downloads, self._engines, options=self._options, offline=self._offline
        )
        self.app.push_screen(screen, self._taken)

    def _taken(self, chosen: "Chosen | None") -> None:
        if chosen is not None:
            self._force, self._background = chosen.force, None
            name = chosen.reference
            self._load(Model(reference=name, title=name, size="", size_bytes=0))

    # Fetching and loading

    def _fetch(self, model: Model) -> None:
        self._target, self._shown = model, None
        self._downloads.start(model.reference, model.title, model.size_bytes)
        self.query_one(OptionList).display = False
        self.query_one(KeyLine).show(_FETCHING if model.resumes else _FETCHING_PACKAGE)
        self._poll()

    def _poll(self) -> None:
        """Show how far the first model is, and load it when it is here."""
        if self._target is None or self._loading:
            return
        download = self._downloads.get(self._target.reference)
        if download is None or download == self._shown:
            return
        self._shown = download
        if download.state == "done":
            self._load(self._target)
        elif download.state == "failed":
            self._failed(download.message, download.hint)
        elif download.state == "stopped":
            self._back("Stopped. What has arrived is kept." if self._target.resumes else "Stopped.")
        else:
            self._say_content(_progress(download, self._width()))

    def _load(self, model: Model) -> None:
        self._target, self._loading = model, True
        self.query_one(OptionList).display = False
        self._say(f"Loading {model.title}…")
        self.run_worker(self._switch(model), group="load", exclusive=True)

    async def _switch(self, model: Model) -> None:
        def load() -> None:
            prospect = self._engines.prepare(model.reference, self._options, force=self._force)
            self._engines.switch(prospect)

        try:
            await aside(load)
        except LocalInferError as error:
            self._failed(error.message, error.hint)
            return
        self.dismiss(Welcomed(reference=model.reference, background=self._background))

    def _failed(self, message: str, hint: str) -> None:
        """Say why, and offer to go on."""
        self._back(f"{message}\n{hint}".strip(), trouble=True)

    def _back(self, text: str, *, trouble: bool = False) -> None:
        self._target, self._loading, self._force = None, False, False
        self._say(text, trouble=trouble)
        made = self._offer
        if made is None:
            self._choose((("again", "Look again", ""), ("quit", "Quit", "")))
            return
        offered = choices(made, offline=self._offline)
        if made.best is not None and trouble and not made.best.lacks and not self._offline:
            offered = (("wait", f"Fetch {made.best.sized} and begin with it", ""), *offered)
        self._choose(offered)

    def action_leave(self) -> None:
        """Stop what is being fetched, else leave."""
        if self._loading:
            return
        if self._target is None:
            self.dismiss(None)
            return
        if self._background is not None:
            self._downloads.stop(self._background)
            self._background = None
        self._downloads.stop(self._target.reference)
        self._poll()

    def _width(self) -> int:
        return max(20, min(_WIDTH, self.size.width) - 5)

    def _say(self, text: str, *, trouble: bool = False) -> None:
        self._say_content(Content.styled(clean(text), "$text-error" if trouble else "$foreground"))

    def _say_content(self, content: Content) -> None:
        status = self.query_one("#status", Static)
        status.update(content)
        status.set_class(not content.plain, "-none")
        lines = content.plain.count("\n") + 2 if content.plain else 0
        if lines != self._status_lines:
            self._status_lines = lines
            self._draw()


def choices(made: Offer, *, offline: bool) -> tuple[tuple[str, str, str], ...]:
    """What can be chosen: an id, what it is, and what it means. The first is what most want."""
    starter, best = made.starter, made.best
    offered: list[tuple[str, str, str]] = []
    if made.starter_here or not (offline or starter.lacks):
        begin = starter.title if made.starter_here else starter.sized
        if best is not None and not best.lacks and not offline:
            meanwhile = f"and fetch {best.sized} in the background"
            offered.append(("both", f"Start now with {begin},", meanwhile))
            offered.append(("starter", f"Only {begin}", ""))
        else:
            offered.append(("starter", f"Start with {begin}", ""))
    offered.append(("other", "Choose another model…", ""))
    if not offered[1:]:
        offered.append(("again", "Look again", ""))
    offered.append(("quit", "Quit", ""))
    return tuple(offered)


def _facts(made: Offer, width: int) -> Content:
    told = [Content.styled("This machine", "bold")]
    for name, fact in made.facts:
        first, *more = textwrap.wrap(clean(fact), max(20, width - _NAME)) or [""]
        told.append(Content.assemble((name.ljust(_NAME), "$text-muted"), first))
        told += [Content(" " * _NAME + line) for line in more]
    return Content("\n").join(told)


def _troubles(made: Offer, width: int) -> Content:
    told: list[Content] = []
    for trouble in made.troubles:
        told += _indented(f"! {trouble.message}", width, "$text-warning")
        missing = trouble.command and trouble.command not in trouble.fix
        fix = f"{trouble.fix} {trouble.command}".strip() if missing else trouble.fix
        told += _indented(f"  {fix}", width, "$foreground")
    return Content("\n").join(told)


def _best(made: Offer, width: int, *, offline: bool) -> Content:
    """What is recommended, why, and what stands in the way."""
    starter, model = made.starter, made.best
    told: list[Content] = []
    if model is not None:
        told.append(Content.styled("Recommended for it", "bold"))
        figures = " · ".join(part for part in (model.size, model.speed) if part)
        told.append(Content.assemble(("★ ", "$text-accent"), (clean(model.title), "bold"), f"  {clean(figures)}"))
        told += _indented(f"  {model.about}", width, "$text-muted")
        told += _indented(f"  {model.reason}", width, "$text-muted")
    else:
        nothing = f"Nothing of the catalogue answers better on this machine than {starter.title}."
        told += _indented(nothing, width, "$text-muted")
    if offline:
        cannot = "localinfer is offline: nothing can be fetched. A .gguf file on this machine will do too."
        told += _indented(cannot, width, "$text-warning")
        return Content("\n").join(told)
    for one in (None if made.starter_here else starter, model):
        if one is not None and one.lacks:
            told += _indented(one.lacks, width, "$text-warning")
    return Content("\n").join(told)


def _indented(text: str, width: int, style: str) -> list[Content]:
    """``text`` in lines that begin where it begins."""
    lines = textwrap.wrap(clean(text), width, subsequent_indent="  " if text[:2] in ("  ", "! ") else "")
    return [Content.styled(line, style) for line in lines]


def _progress(download: "Download", width: int) -> Content:
    told = [Content(f"Fetching {clean(download.title)}")]
    if download.fraction is not None:
        told.append(words.bar(download.fraction, width))
    told.append(Content.styled(words.download(download), "$text-muted"))
    if download.notice:
        told += _indented(download.notice, width, "$text-muted")
    return Content("\n").join(told)
