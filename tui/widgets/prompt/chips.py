"""What goes with the message, as a row of chips under the editor. It keeps the attachments; it reads no files."""

import itertools
from typing import ClassVar, Literal

import msgspec
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from localinfer.history.values import Attachment
from localinfer.types import Value
from tui.text.cells import shortened
from tui.widgets.prompt.files import printable
from tui.widgets.prompt.sizes import count, size

_MOST_NAME_CELLS = 40
_GAP = "  "
_SIGN, _CHOSEN_SIGN = "▤", "\u203a"


class Chip(Value, frozen=True):
    """An attachment and what it measures; ``tokens`` is None until they are counted. ``pasted`` came without a file."""

    id: int
    attachment: Attachment
    tokens: int | None = None
    pasted: bool = False

    @property
    def label(self) -> str:
        """What is shown of it."""
        name = printable(self.attachment.name)
        if len(name) > _MOST_NAME_CELLS:
            name = "…" + name[1 - _MOST_NAME_CELLS :]
        text = self.attachment.text
        measure = count(text.count("\n") + 1, "line") if self.pasted else size(self.attachment.size_bytes)
        tokens = "counting…" if self.tokens is None else count(self.tokens, "token")
        return f"{_SIGN} {name} · {measure} · {tokens}"


class Chips(Widget, can_focus=True):
    """The row. With the focus one chip is meant; Backspace takes it away, Enter puts a pasted one into the text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Previous", show=False),
        Binding("right", "move(1)", "Next", show=False),
        Binding("backspace,delete", "remove", "Remove", show=False),
        Binding("enter", "expand", "Put into the text", show=False),
        Binding("escape,up", "leave", "Back", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"chips--chip", "chips--chosen"}
    DEFAULT_CSS = """
    Chips {
        display: none; height: auto; padding: 0 2;
        & > .chips--chip { color: $text-muted; }
        & > .chips--chosen { color: $block-cursor-foreground; background: $block-cursor-background; text-style: bold; }
    }
    """

    class Changed(Message):
        """There are other attachments, or others are meant."""

    class Expanded(Message):
        """The person wants what was pasted in the text."""

        def __init__(self, chip: Chip) -> None:
            super().__init__()
            self.chip = chip

    class Left(Message):
        """The person is done with the chips."""

    chips: reactive[tuple[Chip, ...]] = reactive((), layout=True)
    chosen: reactive[int] = reactive(0)

    def __init__(self) -> None:
        super().__init__()
        self._ids = itertools.count(1)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The attachments in their order."""
        return tuple(chip.attachment for chip in self.chips)

    def add(self, attachment: Attachment, *, pasted: bool = False) -> Chip:
        """Add an attachment. It takes the place of one of the same name: the file as it is now."""
        if pasted:
            taken = {chip.attachment.name for chip in self.chips}
            names = (f"{attachment.name} {number}" for number in itertools.count(2))
            while attachment.name in taken:
                attachment = msgspec.structs.replace(attachment, name=next(names))
        chip = Chip(id=next(self._ids), attachment=attachment, pasted=pasted)
        kept = [other for other in self.chips if other.attachment.name != attachment.name]
        self.chips = (*kept, chip)
        return chip

    def counted(self, id: int, tokens: int) -> None:
        """Show how many tokens an attachment has."""
        self.chips = tuple(
            msgspec.structs.replace(chip, tokens=tokens) if chip.id == id else chip for chip in self.chips
        )

    def drop(self, chip: Chip) -> None:
        """Take one away."""
        self.chips = tuple(other for other in self.chips if other.id != chip.id)

    def clear(self) -> None:
        """Take all away."""
        self.chips = ()

    def watch_chips(self) -> None:
        self.display = bool(self.chips)
        self.chosen = min(self.chosen, max(0, len(self.chips) - 1))
        if not self.chips and self.has_focus:
            self.post_message(self.Left())
        self.post_message(self.Changed())

    def watch_chosen(self) -> None:
        self.post_message(self.Changed())

    @property
    def in_use(self) -> Literal["", "file", "paste"]:
        """What the chip stands for that the keys go to."""
        if not self.has_focus or not self.chips:
            return ""
        return "paste" if self.chips[self.chosen].pasted else "file"

    def on_focus(self) -> None:
        self.chosen = len(self.chips) - 1
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def action_move(self, by: int) -> None:
        self.chosen = max(0, min(len(self.chips) - 1, self.chosen + by))

    def action_remove(self) -> None:
        self.drop(self.chips[self.chosen])

    def action_expand(self) -> None:
        chip = self.chips[self.chosen]
        if chip.pasted:
            self.post_message(self.Expanded(chip))

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return len(self._rows(width))

    def render(self) -> Text:
        plain, chosen = (self.get_component_rich_style(f"chips--{name}") for name in ("chip", "chosen"))
        rows = Text(no_wrap=True)
        for number, row in enumerate(self._rows(self.content_size.width)):
            rows.append("\n" if number else "")
            for position, (index, label) in enumerate(row):
                rows.append(_GAP if position else "")
                if self.has_focus and index == self.chosen:
                    rows.append(label.replace(_SIGN, _CHOSEN_SIGN, 1), chosen)
                else:
                    rows.append(label, plain)
        return rows

    def _rows(self, width: int) -> list[list[tuple[int, str]]]:
        """The labels by rows of at most ``width`` cells, each with its number."""
        rows: list[list[tuple[int, str]]] = [[]]
        used = 0
        for index, chip in enumerate(self.chips):
            label = shortened(chip.label, max(1, width))
            cells = Text(label).cell_len
            if rows[-1] and used + len(_GAP) + cells > width:
                rows.append([])
                used = 0
            used += cells + (len(_GAP) if rows[-1] else 0)
            rows[-1].append((index, label))
        return rows
