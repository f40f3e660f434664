"""Two small questions: one with yes or no, one with a line of text."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from localinfer.errors import BadRequest
from tui.text.clean import clean
from tui.widgets.entry import Entry

_CSS = """
align: center middle;
& > Vertical {
    width: 64; max-width: 94%; height: auto; max-height: 90%;
    background: $surface; border: round $primary; padding: 1 2;
}
.question { text-style: bold; }
.detail { color: $text-muted; margin-top: 1; }
.problem { color: $error; display: none; }
.problem.shown { display: block; }
.keys { color: $text-muted; margin-top: 1; }
Horizontal { height: auto; margin-top: 1; }
Button { margin-right: 2; min-width: 12; background: $panel; color: $text; }
Button:focus { background: $block-cursor-background; color: $block-cursor-foreground; }
Input.-textual-compact { margin-top: 1; padding: 0 1; background: $panel; }
Input.-textual-compact:focus { background: $surface-active; }
"""


class Confirm(ModalScreen[bool]):
    """Dismissed with the answer; False when the person leaves. The answer that changes nothing has the focus.

    ``y`` and ``n`` answer as well.
    """

    DEFAULT_CSS = f"Confirm {{ {_CSS} }}"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", show=False),
        Binding("n,escape", "answer(False)", "No", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, detail: str = "", yes_label: str = "Yes", no_label: str = "No") -> None:
        super().__init__()
        self._question = question
        self._detail = detail
        self._labels = (no_label, yes_label)

    def compose(self) -> ComposeResult:
        no, yes = self._labels
        with Vertical():
            yield Static(Content(clean(self._question)), classes="question")
            if self._detail:
                yield Static(Content(clean(self._detail)), classes="detail")
            with Horizontal():
                yield Button(Content(clean(no)), id="no", compact=True)
                yield Button(Content(clean(yes)), id="yes", compact=True)
            yield Static("Y yes · N no · ← → Enter choose · Esc leaves", classes="keys", markup=False)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Ask(ModalScreen[str | None]):
    """Asks for a line of text: dismissed with it, stripped if it was changed, or None when the person leaves.

    ``check`` raises ``BadRequest`` for a text that will not do, which is said under the line.
    """

    DEFAULT_CSS = f"Ask {{ {_CSS} }}"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", show=False)]

    def __init__(self, prompt: str, value: str = "", check: Callable[[str], None] = lambda text: None) -> None:
        super().__init__()
        self._prompt = prompt
        self._value = value
        self._check = check

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(clean(self._prompt)), classes="question")
            yield Entry(self._value, compact=True, select_on_focus=False)
            yield Static("", classes="problem", markup=False)
            yield Static("Enter accepts · Esc leaves", classes="keys", markup=False)

    def on_input_changed(self) -> None:
        self.query_one(".problem", Static).remove_class("shown")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value if event.value == self._value else event.value.strip()
        try:
            self._check(text)
        except BadRequest as error:
            problem = self.query_one(".problem", Static)
            problem.update(Content(clean(f"{error.message} {error.hint}".strip())))
            problem.add_class("shown")
            return
        self.dismiss(text)

    def action_leave(self) -> None:
        self.dismiss(None)
