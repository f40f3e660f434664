"""The settings: what is set and from where, changed in the settings file, with themes shown as one chooses."""

import asyncio
import os
from typing import Any, ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import DescendantFocus, Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from localinfer import configure, decoding, settings
from localinfer.errors import LocalInferError
from localinfer.settings import Settings
from tui import theme
from tui.text.clean import clean
from tui.widgets.form import Choice, Editor, Fields, Row, line

_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("theme", "Theme", "Colours. Chosen here, they are shown at once.", ""),
    (
        "model",
        "Model",
        "The model that is loaded when none is named: a name, a file or a hub reference.",
        "the usual one",
    ),
    ("offline", "Offline", "No use of the network at all, not even to look for models.", ""),
    ("device", "Device", "Where models run: cpu, or the name or number of a graphics card.", "the best one there is"),
    ("context", "Context", "Tokens that a model can see at once.", "what model and memory allow"),
    ("kv_type", "KV cache", "Precision of the KV cache. Smaller types save memory, at a loss.", ""),
    ("draft", "Draft", "What drafts tokens for the model to check: auto, lookup, off, or a smaller model.", ""),
    ("threads", "Threads", "Processor threads of a model.", "as many as are free"),
    ("model_folders", "Model folders", f"Folders with models of your own, separated by “{os.pathsep}”.", "none"),
)
_TYPES: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Settings)}


class SettingsScreen(ModalScreen[Settings | None]):
    """Dismissed with the settings now in force, None when the person left. Making one raises ``LocalInferError`` where
    the settings cannot be read. ``field`` is the row to begin at."""

    DEFAULT_CSS = """
    SettingsScreen { align: center middle; }
    SettingsScreen > Vertical {
        width: 92; max-width: 98%; height: auto; max-height: 96%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    SettingsScreen .title { text-style: bold; margin-bottom: 1; }
    SettingsScreen Fields { height: auto; max-height: 16; }
    SettingsScreen Row .label { width: 16; }
    SettingsScreen Row .problem { padding-left: 16; }
    SettingsScreen Row .note { width: 25; }
    SettingsScreen .files { color: $text-muted; margin-top: 1; }
    SettingsScreen #meaning { height: auto; min-height: 2; border-top: solid $border-blurred; margin-top: 1; }
    SettingsScreen #state { color: $text-muted; height: auto; }
    SettingsScreen #state.wrong { color: $error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, field: str = "theme") -> None:
        super().__init__()
        self._settings = settings.load()
        self._origins = settings.origins()
        self._field = field
        self._before: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        self._theme = self.app.theme
        with Vertical():
            yield Static("Settings", classes="title", markup=False)
            with Fields():
                for name, label, meaning, otherwise in _ROWS:
                    editor = self._editor(name, otherwise)
                    editor.disabled = self._origins[name] == "environment"
                    yield Row(name, label, editor, meaning, self._note(name))
                    self._before[name] = self._written(name)
                keys = ", ".join(self._settings.keys) or "none"
                yield Static(
                    Content(clean(f"Keys changed: {keys} · [keys] in the file\n{settings.config_file()}")),
                    classes="files",
                )
            yield Static("", id="meaning", markup=False)
            yield Static("", id="state", markup=False)

    def on_mount(self) -> None:
        row = self.query_one(f"#row-{self._field}", Row)
        (row.editor if not row.editor.disabled else self.screen.query_one("Row Input")).focus()
        self._judge()

    def _editor(self, name: str, otherwise: str) -> Editor:
        value = self._written(name)
        if name == "theme":
            ours = [one.name for one in theme.OURS]
            others = sorted(set(self.app.available_themes) - set(ours))
            return Choice([(one, one) for one in (*ours, *others)], value)
        if name == "offline":
            return Choice([("false", "no"), ("true", "yes")], value)
        if name == "kv_type":
            return Choice([(kind, kind) for kind in settings.KV_TYPES], value)
        return line(value, otherwise)

    def _note(self, name: str) -> str:
        match self._origins[name]:
            case "environment":
                return settings.variable(name)
            case "file":
                return "config.toml"
        return "default"

    def _written(self, name: str) -> str:
        value = getattr(self._settings, name)
        if name == "theme":
            return value if value in self.app.available_themes else theme.DARK.name
        if isinstance(value, bool):
            return str(value).lower()
        return os.pathsep.join(value) if isinstance(value, tuple) else "" if value is None else str(value)

    # Changing

    @on(Input.Changed)
    def _judge(self) -> None:
        problems = self._problems()
        for row in self.query(Row):
            row.judge(problems.get(row.field), changed=row.text != self._before[row.field])
        state = self.query_one("#state", Static)
        state.set_class(bool(problems), "wrong")
        if problems:
            count = len(problems)
            state.update(f"▲ {count} value{'s' * (count > 1)} to correct · Esc leaves")
        else:
            state.update("Enter saves · ↑ ↓ move · ← → choose · Esc leaves everything as it was")

    @on(Choice.Changed)
    def _chosen(self, event: Choice.Changed) -> None:
        if event.choice is self.query_one("#row-theme", Row).editor:
            self.app.theme = event.value
        self._judge()

    def _changed(self) -> dict[str, str]:
        return {row.field: row.text.strip() for row in self.query(Row) if row.text != self._before[row.field]}

    def _problems(self) -> dict[str, str]:
        found = {}
        for name, text in self._changed().items():
            try:
                _value(name, text)
            except msgspec.ValidationError:
                found[name] = f"{name} must be a whole number of 1 or more, not {text[:40]}."
        return found

    @on(Input.Submitted)
    async def action_apply(self) -> None:
        """Write what was changed and leave; what cannot be written is said, and stays to be corrected."""
        if problems := self._problems():
            next(row for row in self.query(Row) if row.field in problems).editor.focus()
            self.app.bell()
            return
        values = {name: _value(name, text) for name, text in self._changed().items()}
        try:
            if values:
                await asyncio.to_thread(configure.change, values)
            self.dismiss(settings.load())
        except LocalInferError as error:
            state = self.query_one("#state", Static)
            state.update(Content(clean(f"▲ {error.message} {error.hint}")))
            state.add_class("wrong")

    async def on_key(self, event: Key) -> None:
        if event.key == "enter" and isinstance(self.focused, Choice):
            event.stop()
            await self.action_apply()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        row = next((node for node in event.widget.ancestors if isinstance(node, Row)), None)
        self.query_one("#meaning", Static).update(Content(row.meaning) if row else "")

    def action_leave(self) -> None:
        self.app.theme = self._theme
        self.dismiss(None)


def _value(name: str, text: str) -> object:
    """What ``text`` says, None for the default. Raises ``msgspec.ValidationError``."""
    if name == "model_folders":
        return tuple(part for part in text.split(os.pathsep) if part) or None
    if not text:
        return None
    value: object = decoding.convert(text, _TYPES[name], strict=False)
    return value
