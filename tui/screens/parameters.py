"""The parameters of a conversation: edited in place, explained one by one, kept as presets."""

import asyncio
import functools
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import DescendantFocus, Key
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea

from localinfer import presets, settings
from localinfer.errors import LocalInferError
from localinfer.history.values import Parameters
from localinfer.presets import Preset
from tui import parameters as fields
from tui.parameters import DRAFTERS, FIELDS, RELOADS, Field, Group, ModelFacts
from tui.screens.confirm import Ask, Confirm
from tui.text.clean import clean
from tui.widgets.form import Choice, Editor, Fields, Lines, Row, line

CUSTOM = ""
_TITLES: dict[Group, str] = {
    "sampling": "Sampling",
    "speculation": "Speculation",
    "model": "Model",
    "more": "More sampling",
}


class ParametersScreen(ModalScreen[Parameters | None]):
    """Dismissed with the parameters to apply, None when the person left. It changes nothing itself but presets."""

    DEFAULT_CSS = """
    ParametersScreen { align: center middle; }
    ParametersScreen > Vertical {
        width: 84; max-width: 98%; height: 32; max-height: 96%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    ParametersScreen .title { text-style: bold; }
    ParametersScreen #presets { height: 1; margin-bottom: 1; }
    ParametersScreen #presets .label { width: 22; color: $text-muted; }
    ParametersScreen Button { min-width: 0; margin-left: 1; background: $panel; color: $text; }
    ParametersScreen Button:focus { background: $block-cursor-background; color: $block-cursor-foreground; }
    ParametersScreen #presets Button:disabled { border: none !important; }
    ParametersScreen Fields { height: 1fr; }
    ParametersScreen .group { text-style: bold; color: $primary; margin-top: 1; }
    ParametersScreen #more { margin: 1 0 0 0; color: $primary; text-style: bold; background: $surface; }
    ParametersScreen #more:focus { background: $block-cursor-background; color: $block-cursor-foreground; }
    ParametersScreen #rest { height: auto; display: none; }
    ParametersScreen #rest.open { display: block; }
    ParametersScreen #meaning { height: 3; border-top: solid $border-blurred; }
    ParametersScreen #state { color: $text-muted; height: 1; }
    ParametersScreen #state.wrong { color: $error; }
    ParametersScreen #state.reload { color: $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("f2", "save_preset", "Save preset", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, parameters: Parameters, facts: ModelFacts | None = None) -> None:
        super().__init__()
        self._given = parameters
        self._facts = facts or ModelFacts()
        self._presets: tuple[Preset, ...] = presets.BUILT_IN

    def compose(self) -> ComposeResult:
        texts = fields.texts(self._given)
        with Vertical():
            yield Static("Parameters of this conversation", classes="title", markup=False)
            with Horizontal(id="presets"):
                yield Static("Preset", classes="label", markup=False)
                yield Choice([(CUSTOM, "–")], CUSTOM, id="preset")
                yield Button("Save as…", id="save", compact=True)
                yield Button("Delete", id="delete", compact=True)
            with Fields():
                for group in ("answer", "sampling", "model", "speculation"):
                    if title := _TITLES.get(group):
                        yield Static(title, classes="group", markup=False)
                    yield from (self._row(field, texts[field.name]) for field in FIELDS if field.group == group)
                yield Button("▸ More sampling", id="more", compact=True)
                yield Vertical(id="rest")
            yield Static("", id="meaning", markup=False)
            yield Static("", id="state", markup=False)

    async def on_mount(self) -> None:
        if any(fields.texts(self._given)[field.name] for field in FIELDS if field.group == "more"):
            self._open_more()
        self.query_one("#row-temperature Input").focus()
        await self._read_presets()
        self._judge()

    def _row(self, field: Field, text: str) -> Row:
        return Row(field.name, field.label, self._editor(field, text), field.meaning)

    def _editor(self, field: Field, text: str) -> Editor:
        if field.name == "system":
            return Lines(text)
        if field.name == "kv_type":
            now = f" ({self._facts.kv_type})" if self._facts.kv_type else ""
            return Choice([("", f"as set{now}"), *((kind, kind) for kind in settings.KV_TYPES)], text)
        if field.name == "drafter":
            usual = fields.default("drafter")
            return Choice([("" if kind == usual else kind, label) for kind, label in DRAFTERS.items()], text)
        return line(text, fields.placeholder(field, self._facts))

    @property
    def _texts(self) -> dict[str, str]:
        """What is in the form; what is not shown is the default."""
        return {row.field: row.text for row in self.query(Row)}

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _judge(self) -> None:
        """Say what is wrong, what differs from the defaults, which preset it is, and what applying will do."""
        texts = self._texts
        problems = fields.problems(texts)
        doubts = fields.cautions(texts, self._facts)
        for row in self.query(Row):
            row.judge(problems.get(row.field), changed=bool(texts[row.field].strip()), doubt=doubts.get(row.field))
        self._say_state(texts, problems)
        if not problems:
            self._show_preset(fields.parameters(texts))

    def _say_state(self, texts: dict[str, str], problems: dict[str, str]) -> None:
        """What keys do, on what has the focus."""
        state = self.query_one("#state", Static)
        reloads = [] if problems else self._reloads(fields.parameters(texts))
        state.set_class(bool(problems), "wrong")
        state.set_class(bool(reloads), "reload")
        if problems:
            count = len(problems)
            state.update(f"▲ {count} value{'s' * (count > 1)} to correct before this can be applied · Esc leaves")
        elif reloads:
            applies = "Applying" if isinstance(self.focused, Button) else "Enter applies and"
            state.update(f"↻ {applies} loads the model again ({', '.join(reloads)}) · Esc leaves")
        elif isinstance(self.focused, Button):
            state.update("Enter does it · F2 keeps a preset · Esc leaves")
        elif isinstance(self.focused, Lines):
            state.update("Enter applies · Ctrl+J begins a new line · empty is none · Esc leaves")
        else:
            state.update("Enter applies · empty is the default · F2 keeps a preset · Esc leaves")

    def _reloads(self, wanted: Parameters) -> list[str]:
        labels = {field.name: field.label for field in FIELDS}
        return [labels[name] for name in RELOADS if getattr(wanted, name) != getattr(self._given, name)]

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        row = next((node for node in event.widget.ancestors if isinstance(node, Row)), None)
        self.query_one("#meaning", Static).update(Content(self._meaning(row)) if row else "")
        texts = self._texts
        self._say_state(texts, fields.problems(texts))

    def _meaning(self, row: Row) -> str:
        trained = self._facts.trained_context
        more = f" This one was trained for {trained:,}." if row.field == "context" and trained else ""
        more += " A change loads the model again." if row.field in RELOADS else ""
        usual = fields.default(row.field)
        numbers = isinstance(usual, int | float) and not isinstance(usual, bool)
        return f"{row.meaning}{more}" + (f" Default {usual:g}." if numbers else "")

    # Presets

    async def _read_presets(self) -> None:
        self._presets = await asyncio.to_thread(presets.presets)

    def _show_preset(self, now: Parameters) -> None:
        fitting = [one for one in self._presets if one.sampling == now.sampling and one.system in (None, now.system)]
        name = max(fitting, key=lambda one: one.system is not None).name if fitting else CUSTOM
        options = [(one.name, one.name) for one in self._presets]
        self.query_one("#preset", Choice).offer(options if fitting else [(CUSTOM, "–"), *options], name)
        self.query_one("#delete", Button).disabled = not fitting or presets.is_built_in(name)

    @on(Choice.Changed, "#preset")
    def _use_preset(self, event: Choice.Changed) -> None:
        event.stop()
        preset = next((one for one in self._presets if one.name == event.value), None)
        if preset is None:
            return
        wanted = fields.sampling_texts(preset.sampling)
        if preset.system is not None:
            wanted["system"] = preset.system
        if any(wanted[field.name] for field in FIELDS if field.group == "more"):
            self._open_more()
        with self.prevent(Input.Changed, TextArea.Changed):  # judged once, below
            for row in self.query(Row):
                if row.field in wanted:
                    row.show(wanted[row.field])
        self._judge()

    @on(Choice.Changed)
    def _chosen(self) -> None:
        self._judge()

    @on(Button.Pressed, "#save")
    def action_save_preset(self) -> None:
        """Keep what is in the form as a preset, under a name that is asked for."""
        if fields.problems(self._texts):
            self.app.bell()
            return
        self.app.push_screen(Ask("Name of the preset", check=presets.check_name), self._save_preset)

    async def _save_preset(self, name: str | None) -> None:
        if name is not None:
            now = fields.parameters(self._texts)
            await self._change_presets(
                functools.partial(presets.save, Preset(name=name, sampling=now.sampling, system=now.system or None))
            )

    @on(Button.Pressed, "#delete")
    def _delete(self) -> None:
        name = self.query_one("#preset", Choice).value

        async def delete(yes: bool | None) -> None:
            if yes:
                await self._change_presets(functools.partial(presets.delete, name))
                self.query_one("#preset", Choice).focus()

        self.app.push_screen(Confirm(f"Delete the preset “{name}”?", yes_label="Delete", no_label="Keep"), delete)

    async def _change_presets(self, change: "functools.partial[None]") -> None:
        try:
            await asyncio.to_thread(change)
        except LocalInferError as error:
            self.notify(clean(f"{error.message} {error.hint}"), severity="error", markup=False)
        await self._read_presets()
        self._judge()

    # Leaving

    @on(Button.Pressed, "#more")
    def _toggle_more(self) -> None:
        self._open_more(not self.query_one("#rest").has_class("open"))

    def _open_more(self, opened: bool = True) -> None:
        rest = self.query_one("#rest")
        if opened and not rest.children:  # the half of all rows, which most people never see
            texts = fields.texts(self._given)
            rest.mount_all(self._row(field, texts[field.name]) for field in FIELDS if field.group == "more")
        rest.set_class(opened, "open")
        self.query_one("#more", Button).label = Content("▾ More sampling" if opened else "▸ More sampling")

    @on(Input.Submitted)
    @on(Lines.Submitted)
    def action_apply(self) -> None:
        """Leave with what is in the form, unless something in it is wrong."""
        problems = fields.problems(self._texts)
        if not problems:
            self.dismiss(fields.parameters(self._texts))
            return
        first = next(row for row in self.query(Row) if row.field in problems)
        if any(field.name == first.field and field.group == "more" for field in FIELDS):
            self._open_more()
        first.editor.focus()
        self.app.bell()

    def on_key(self, event: Key) -> None:
        if event.key == "enter" and isinstance(self.focused, Choice):
            event.stop()
            self.action_apply()

    def action_leave(self) -> None:
        self.dismiss(None)
