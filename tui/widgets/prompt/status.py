"""The line under the editor: what was wrong, what may be typed, what is going on. The first of them is shown."""

from typing import Literal

from textual.content import Content
from textual.widgets import Static

from tui.text.clean import clean

Severity = Literal["information", "warning", "error"]
_SIGNS: dict[Severity, str] = {"information": "", "warning": "! ", "error": "✗ "}
_IN_CHIPS = {
    "file": "Backspace removes it · Esc goes back",
    "paste": "Backspace removes it · Enter puts it into the text · Esc goes back",
}


class Status(Static):
    """The line, not there while it is empty. Severity has a sign beside its colour.

    ``usage`` is of the command that is being typed, ``locked`` why Enter does not send, ``mode`` what the text is for;
    ``in_chips``: the keys go to a chip, which stands for a “file” or a “paste”. ``show`` shows a change of them.
    """

    DEFAULT_CSS = """
    Status {
        display: none; height: auto; max-height: 3; padding: 0 2; color: $text-muted;
        &.-warning { color: $text-warning; }
        &.-error { color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.text = ""
        self.usage = self.locked = self.mode = ""
        self.in_chips: Literal["", "file", "paste"] = ""
        self._hint, self._about = "", ""
        self._severity: Severity = "information"

    def hint(self, text: str, severity: Severity, about: str) -> None:
        """Say ``text`` as long as the prompt's text is ``about``."""
        self._hint, self._severity, self._about = text, severity, about
        self.show()

    def follow(self, prompt_text: str) -> None:
        """Forget a hint about another text."""
        if self._about != prompt_text:
            self._hint = ""

    def show(self) -> None:
        """Show what matters most."""
        severity: Severity = "information"
        if self.in_chips:
            text = _IN_CHIPS[self.in_chips]
        elif self._hint:
            text, severity = self._hint, self._severity
        elif self.usage:
            text = self.usage
        else:
            mode = f"{self.mode} · Esc to leave" if self.mode else ""
            text = " · ".join(part for part in (self.locked, mode) if part)
        text = f"{_SIGNS[severity]}{clean(text)}"
        if text != self.text:
            self.text = text
            self.set_class(severity == "warning", "-warning")
            self.set_class(severity == "error", "-error")
            self.display = bool(text)
            self.update(Content(text))
