"""Help: keys, commands, what the figures mean and where files are, on one page that one can search."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from localinfer import settings
from tui import keys
from tui.text.clean import clean
from tui.widgets.entry import Entry

Line = tuple[str, str]


class HelpScreen(ModalScreen[None]):
    """``commands`` are (name, summary) of the prompt's; ``overrides`` the keys a person chose; ``widgets`` the bindings
    of what has keys of its own while it has the focus, by its name."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical {
        width: 96; max-width: 98%; height: 92%; background: $surface; border: round $primary; padding: 0 1;
    }
    HelpScreen Input.-textual-compact { padding: 0 1; background: $panel; margin-bottom: 1; }
    HelpScreen Input.-textual-compact:focus { background: $surface-active; }
    HelpScreen Input > .input--placeholder { color: $text-muted; }
    HelpScreen VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    HelpScreen .heading { color: $primary; text-style: bold; }
    HelpScreen .lines { margin-bottom: 1; }
    HelpScreen #state { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1", "dismiss", "Leave", show=False),
        Binding("up", "scroll('scroll_up')", show=False),
        Binding("down", "scroll('scroll_down')", show=False),
        Binding("pageup", "scroll('scroll_page_up')", show=False),
        Binding("pagedown", "scroll('scroll_page_down')", show=False),
        Binding("ctrl+home", "scroll('scroll_home')", show=False),
        Binding("ctrl+end", "scroll('scroll_end')", show=False),
    ]

    def __init__(
        self,
        commands: Sequence[Line] = (),
        overrides: Mapping[str, str | tuple[str, ...]] | None = None,
        widgets: Mapping[str, Sequence[BindingType]] | None = None,
    ) -> None:
        super().__init__()
        self._sections = _sections(commands, overrides or {}, widgets or {})

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Entry(placeholder="Help · type to search", compact=True)
            with VerticalScroll(can_focus=False):
                for index, (heading, _) in enumerate(self._sections):
                    yield Static(heading, classes="heading", id=f"heading-{index}", markup=False)
                    yield Static(classes="lines", id=f"lines-{index}", markup=False)
            yield Static("↑ ↓ PgUp PgDn scroll · Esc leaves", id="state", markup=False)

    def on_mount(self) -> None:
        self._filter("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._filter(event.value)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _filter(self, query: str) -> None:
        words = query.casefold().split()
        for index, (heading, lines) in enumerate(self._sections):
            found = [pair for pair in lines if all(word in f"{heading} {' '.join(pair)}".casefold() for word in words)]
            self.query_one(f"#heading-{index}").display = bool(found)
            shown = self.query_one(f"#lines-{index}", Static)
            shown.display = bool(found)
            shown.update(_table(found))

    def action_scroll(self, how: str) -> None:
        getattr(self.query_one(VerticalScroll), how)(animate=False)


def _table(lines: Sequence[Line]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(width=26)  # the longest key or command
    table.add_column(ratio=1)
    for left, right in lines:
        table.add_row(Text(clean(left), style="bold"), Text(clean(right)))
    return table


def _sections(
    commands: Sequence[Line],
    overrides: Mapping[str, str | tuple[str, ...]],
    widgets: Mapping[str, Sequence[BindingType]],
) -> list[tuple[str, list[Line]]]:
    from tui.widgets.readout.explanations import EXPLANATIONS

    everywhere = [("  ".join(map(keys.shown, keys.keys_of(action, overrides))), action.help) for action in keys.ACTIONS]
    sections = [("Keys everywhere", everywhere), ("In the prompt", list(keys.PROMPT))]
    if commands:
        sections.append(("Commands of the prompt", list(commands)))
    sections += [(name, _lines(bindings)) for name, bindings in widgets.items()]
    sections.append(("Figures", [(one.name, one.meaning) for one in EXPLANATIONS.values()]))
    files = (
        ("Settings and keys", settings.config_file()),
        ("Conversations", settings.history_file()),
        ("Models", settings.models_dir()),
        ("What is remembered", settings.state_dir()),
        ("Logs", settings.log_dir()),
    )
    sections.append(("Files", [(name, str(path)) for name, path in files]))
    return sections


def _lines(bindings: Sequence[BindingType]) -> list[Line]:
    """What bindings say, those of one action together; those without a description are nobody's business."""
    found: dict[str, list[str]] = {}
    for key, bound in BindingsMap(bindings).key_to_bindings.items():
        for binding in bound:
            if binding.description:
                found.setdefault(binding.description, []).append(keys.shown(key))
    return [("  ".join(shown), description) for description, shown in found.items()]
