"""An application with nothing but a prompt. Run with the path of a file, it writes each message that is sent there as a
line of JSON."""

import json
import sys
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Static

from tui.widgets.prompt import Prompt


class Typing(App[None]):
    """Shows how much was sent."""

    def __init__(self, sent: Path) -> None:
        super().__init__()
        self._file = sent
        self._count = 0

    def compose(self) -> ComposeResult:
        yield Static("sent 0")
        yield Prompt()

    def on_mount(self) -> None:
        self.query_one(Prompt).focus()

    def on_prompt_submitted(self, message: Prompt.Submitted) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps([message.text, *(attachment.text for attachment in message.attachments)]) + "\n")
        self._count += 1
        self.query_one(Static).update(f"sent {self._count}")


if __name__ == "__main__":
    Typing(Path(sys.argv[1])).run()
