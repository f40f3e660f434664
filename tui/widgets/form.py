"""Rows of a form: a label, an editor of one line or a choice, a quiet note, and what is wrong with it right under it.

It knows how values are edited and nothing of what they mean.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click, Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from tui.text.clean import clean
from tui.widgets.entry import Entry
from tui.widgets.prompt.area import Area


class Choice(Widget, can_focus=True):
    """One of a few values, changed with ← and →. ``options`` are (value, label)."""

    DEFAULT_CSS = """
    Choice { height: 1; width: 1fr; padding: 0 1; }
    Choice:focus { background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold; }
    Choice:disabled { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Before", show=False),
        Binding("right,space", "step(1)", "Next", show=False),
    ]

    class Changed(Message):
        """The person chose another value."""

        def __init__(self, choice: "Choice", value: str) -> None:
            super().__init__()
            self.choice = choice
            self.value = value

        @property
        def control(self) -> "Choice":
            return self.choice

    def __init__(self, options: Sequence[tuple[str, str]], value: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._options = tuple(options)
        self._index = self._find(value)

    @property
    def value(self) -> str:
        return self._options[self._index][0]

    def offer(self, options: Sequence[tuple[str, str]], value: str) -> None:
        """Replace what can be chosen, without a message."""
        self._options = tuple(options)
        self.show(value)

    def show(self, value: str) -> None:
        """Choose ``value`` without a message."""
        self._index = self._find(value)
        self.refresh()

    def render(self) -> Content:
        label = clean(self._options[self._index][1])
        width = max(cell_len(clean(text)) for _, text in self._options)
        padded = label + " " * (width - cell_len(label))
        place = f"  {self._index + 1} of {len(self._options)}"
        if not self.has_focus or width + cell_len(place) + 4 > self.content_size.width:
            place = ""
        return Content.assemble(("‹ ", "dim"), padded, (" ›", "dim"), (place, "not bold"))

    def action_step(self, by: int) -> None:
        self._index = (self._index + by) % len(self._options)
        self.refresh()
        self.post_message(self.Changed(self, self.value))

    def on_click(self, event: Click) -> None:
        self.action_step(-1 if event.x < 2 else 1)

    def _find(self, value: str) -> int:
        return next((index for index, (one, _) in enumerate(self._options) if one == value), 0)


def line(value: str, placeholder: str = "") -> Entry:
    """An editor of one line. Empty, it shows ``placeholder``: what holds then."""
    return Entry(value, placeholder=clean(placeholder), compact=True, select_on_focus=False)


class Lines(Area):
    """An editor of several lines. Enter is the form's, as everywhere in it; Ctrl+J begins a new line, and Shift+Enter
    and Alt+Enter where they are sent."""

    class Submitted(Message):
        """Enter was pressed."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._given, self._loaded = text, self.text

    @property
    def value(self) -> str:
        """What is written. Lines end in more ways than the editor keeps: what was not changed is as it was given."""
        return self._given if self.text == self._loaded else self.text

    def show(self, text: str) -> None:
        """Edit another text."""
        self.load_text(text)
        self._given, self._loaded = text, self.text

    async def on_key(self, event: Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted())


Editor = Entry | Lines | Choice


class Fields(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Rows below each other. It scrolls to the one in use, and leaves the keys to it and to the screen."""

    DEFAULT_CSS = "Fields { scrollbar-size-vertical: 1; }"


class Row(Vertical):
    """A labelled editor. ``name`` is the field; ``meaning`` is shown elsewhere while the editor has the focus."""

    DEFAULT_CSS = """
    Row { height: auto; }
    Row > Horizontal { height: auto; }
    Row .label { width: 22; color: $text-muted; }
    Row.changed .label { color: $text; text-style: bold; }
    Row .note { width: auto; max-width: 34; color: $text-muted; padding-left: 1; }
    Row .problem { display: none; color: $text-warning; padding-left: 23; }
    Row.doubtful .problem { display: block; }
    Row.wrong .problem { display: block; color: $error; }
    Row.wrong .label { color: $error; }
    Row Input.-textual-compact { width: 1fr; padding: 0 1; background: $panel; color: $text; }
    Row Input.-textual-compact:focus { background: $surface-active; background-tint: $foreground 0%; }
    Row Input.-textual-compact > .input--placeholder { color: $text-muted; }
    Row TextArea { width: 1fr; height: 4; border: none; padding: 0 1; background: $panel; }
    Row TextArea:focus { background: $surface-active; border: none; }
    """

    def __init__(self, field: str, label: str, editor: Editor, meaning: str = "", note: str = "") -> None:
        super().__init__(id=f"row-{field}")
        self.field = field
        self.meaning = meaning
        self.editor = editor
        self._label = label
        self._note = note
        self._problem = Static("", classes="problem", markup=False)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(Content(self._label), classes="label")
            yield self.editor
            if self._note:
                yield Static(Content(clean(self._note)), classes="note")
        yield self._problem

    @property
    def text(self) -> str:
        """What is in the editor."""
        return self.editor.value

    def show(self, text: str) -> None:
        """Put ``text`` into the editor."""
        if isinstance(self.editor, Entry):
            self.editor.value = text
        else:
            self.editor.show(text)

    def judge(self, problem: str | None, *, changed: bool, doubt: str | None = None) -> None:
        """Say what is wrong, if anything, else what may disappoint, and whether the value differs from the default."""
        self.set_class(problem is not None, "wrong")
        self.set_class(problem is None and doubt is not None, "doubtful")
        self.set_class(changed, "changed")
        if told := problem or doubt:
            self._problem.update(Content(f"{'▲' if problem else '△'} {clean(told)}"))
