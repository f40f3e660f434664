"""A question with a few answers, each with what it means."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localinfer.types import Value
from tui.text.clean import clean


class Choice(Value, frozen=True):
    """One answer. ``reason`` says why it cannot be chosen; empty: it can."""

    id: str
    label: str
    detail: str
    reason: str = ""


class ChooseScreen(ModalScreen[str | None]):
    """Dismissed with the id of what was chosen, None when the person left."""

    DEFAULT_CSS = """
    ChooseScreen { align: center middle; }
    ChooseScreen > Vertical {
        width: 76; max-width: 94%; height: auto; max-height: 90%;
        background: $surface; border: round $primary; padding: 1 2;
    }
    ChooseScreen #title { text-style: bold; }
    ChooseScreen #text { color: $text-muted; margin-bottom: 1; }
    ChooseScreen OptionList, ChooseScreen OptionList:focus {
        height: auto; max-height: 14; background: $surface; background-tint: transparent; border: none; padding: 0;
        min-width: 8;
    }
    ChooseScreen #keys { color: $text-muted; margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", show=False)]

    def __init__(self, title: str, text: str, choices: tuple[Choice, ...]) -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content(clean(self._title)), id="title")
            yield Static(Content(clean(self._text)), id="text")
            yield OptionList(*map(_option, self._choices))
            yield Static("Enter chooses · Esc leaves everything as it is", id="keys", markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_leave(self) -> None:
        self.dismiss(None)


def _option(choice: Choice) -> Option:
    detail = choice.reason or choice.detail
    prompt = Content.assemble(clean(choice.label), "\n", (f"  {clean(detail)}", "dim"))
    return Option(prompt, id=choice.id, disabled=bool(choice.reason))
