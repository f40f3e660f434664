"""The command palette: every action with its key, themes, recent conversations and models.

It knows Textual's palette and no screen: who fills it hands in sources of entries, which may be slow.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.app import ComposeResult
from textual.command import CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.fuzzy import Matcher
from textual.widgets import LoadingIndicator

from localinfer.history.values import Conversation
from tui import keys
from tui.text.clean import clean
from tui.widgets.entry import Entry as Typed

if TYPE_CHECKING:
    from textual.app import App

MOST_MATCHES = 50
_AROUND, _LEAST = 9, 3  # lines over, under and around the list, and of it
_WIDTH = 68  # cells of a line: what fits a terminal of 80 columns


class Query(CommandInput, Typed):
    """The palette's own input, for foreign text."""


class Palette(CommandPalette):
    """Textual's palette as one of our overlays: narrow, in one frame, a line for each entry."""

    DEFAULT_CSS = f"""
    Palette > #--container {{
        visibility: visible; width: {_WIDTH + 8}; max-width: 98%; height: auto; margin-top: 2;
        background: $surface; border: round $primary; padding: 0 1; overflow: hidden;
    }}
    Palette #--input, Palette #--input.--list-visible {{ border: none; height: 1; margin: 0 0 1 1; }}
    Palette CommandInput, Palette CommandInput:focus {{ border: none; height: 1; padding: 0; }}
    Palette #--results {{ overlay: none; height: auto; }}
    Palette CommandList, Palette CommandList:focus {{
        border: none; height: auto; visibility: visible; scrollbar-size-vertical: 1; min-width: 8;
    }}
    Palette CommandList > .option-list--option {{ padding: 0 1; text-style: none; }}
    Palette CommandList > .option-list--option-highlighted {{
        color: $block-cursor-foreground; background: $block-cursor-background;
    }}
    Palette LoadingIndicator {{ display: none; }}
    """

    def __init__(self, provider: type[Provider]) -> None:
        super().__init__([provider], placeholder="Find an action, a conversation, a model, a theme")

    def compose(self) -> ComposeResult:
        with Vertical(id="--container"):
            with Horizontal(id="--input"):
                yield Query(placeholder=self._placeholder, select_on_focus=False)
            with Vertical(id="--results"):
                yield CommandList()
                yield LoadingIndicator()

    def on_resize(self) -> None:
        """The list is as long as there is room for the frame around it."""
        for listed in self.query("CommandList"):
            listed.styles.max_height = max(_LEAST, self.size.height - _AROUND)


class Entry(NamedTuple):
    """One line of the palette. ``key`` is how else to get there; it may be empty. ``at_once``: it is offered before
    anything is typed."""

    title: str
    key: str
    run: Callable[[], object]
    at_once: bool = False


Source = Callable[[], Iterable[Entry]]


def provider(*sources: Source) -> type[Provider]:
    """A provider for ``App.COMMANDS`` of what ``sources`` give. They are asked in a thread when the palette opens, and
    one that fails offers nothing."""

    class Entries(Provider):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._entries: list[Entry] = []

        async def startup(self) -> None:
            for source in sources:
                try:
                    self._entries += await asyncio.to_thread(_read, source)
                except Exception:
                    self.app.log.error(f"{source} has nothing for the palette")

        async def discover(self) -> Hits:
            for entry in self._entries:
                if entry.at_once:
                    yield DiscoveryHit(_line(Content(entry.title), entry.key), entry.run, entry.title)

        async def search(self, query: str) -> Hits:
            matcher = self.matcher(query)
            scored = [(score, entry) for entry in self._entries if (score := matcher.match(entry.title)) > 0]
            for score, entry in sorted(scored, key=lambda pair: -pair[0])[:MOST_MATCHES]:
                yield Hit(score, _line(_marked(matcher, entry.title), entry.key), entry.run, entry.title)

    return Entries


def _read(source: Source) -> list[Entry]:
    return list(source())


def _line(title: Content, key: str) -> Content:
    """``title`` on the left, cut to what is left for it, and ``key`` on the right."""
    told = Content.styled(f"  {key}" if key else "", "dim")
    room = _WIDTH - told.cell_length
    cut = title.truncate(room, ellipsis=True)
    return cut.pad_right(room - cut.cell_length) + told


def _marked(matcher: Matcher, title: str) -> Content:
    """``title`` with what matched; ``Matcher.highlight`` would take it for markup."""
    content = Content(title)
    for offset in matcher.fuzzy_search.match(matcher.query, title)[1]:
        content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


def actions(app: "App[Any]", overrides: Mapping[str, str | tuple[str, ...]]) -> Source:
    """Every action of the table but the palette itself, run where it is: on the screen below, else on ``app``."""

    async def run(id: str) -> None:
        owner = "screen" if hasattr(app.screen, f"action_{id}") else "app"
        await app.run_action(f"{owner}.{id}")

    def source() -> Iterable[Entry]:
        for action in keys.ACTIONS:
            if action.id != "command_palette":
                shown = " or ".join(map(keys.shown, keys.keys_of(action, overrides)))
                yield Entry(action.help, shown, functools.partial(run, action.id), at_once=True)

    return source


def themes(app: "App[Any]", choose: Callable[[str], object]) -> Source:
    """Every theme that ``app`` knows; those that leave colours to the terminal are among them."""

    def source() -> Iterable[Entry]:
        for name in sorted(app.available_themes, key=lambda name: (not name.startswith("localinfer"), name)):
            yield Entry(f"Theme: {name}", "", functools.partial(choose, name))

    return source


def conversations(recent: Callable[[], Sequence[Conversation]], opened: Callable[[int], object]) -> Source:
    """Conversations by title."""

    def source() -> Iterable[Entry]:
        for one in recent():
            title = " ".join(clean(one.title).split()) or "Untitled"
            yield Entry(f"Open: {title}", "", functools.partial(opened, one.id))

    return source


def models(names: Callable[[], Sequence[str]], use: Callable[[str], object]) -> Source:
    """Models that are here, by the name to use them by."""

    def source() -> Iterable[Entry]:
        for name in names():
            yield Entry(f"Use model: {clean(name)}", "", functools.partial(use, name))

    return source
