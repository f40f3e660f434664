"""Reading what a person types, line by line, in any terminal: recall, pasted lines, blocks between triple quotes."""

import contextlib
import os
import select
import sys
from collections.abc import Callable

from localinfer import settings

PASTE_GAP_S = 0.05  # lines that come closer than this were pasted, not typed
BLOCK = '"""'


class LineReader:
    """Turns of a conversation from standard input. ``recall`` keeps typed turns for the arrow keys, where there is
    readline."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.isatty()
        self._save: Callable[[], None] = lambda: None
        if self._terminal:
            self._recall()

    def read(self, prompt: str) -> str | None:
        """The next turn; None at the end of input. Raises ``KeyboardInterrupt`` on Ctrl-C."""
        line = self._line(prompt)
        if line is None:
            return None
        if line.strip().startswith(BLOCK):
            return self._block(line)
        lines = [line]
        while self._terminal and _waiting() and (more := self._line("")) is not None:
            lines.append(more)
        return "\n".join(lines)

    def close(self) -> None:
        """Keep what was typed for the next time."""
        self._save()

    def _line(self, prompt: str) -> str | None:
        try:
            return input(prompt if self._terminal else "")
        except EOFError:
            return None
        except UnicodeDecodeError:
            return ""

    def _block(self, first: str) -> str:
        lines = [first.strip().removeprefix(BLOCK)]
        while not lines[-1].rstrip().endswith(BLOCK):
            line = self._line("… ")
            if line is None:
                break
            lines.append(line)
        lines[-1] = lines[-1].rstrip().removesuffix(BLOCK)
        return "\n".join(lines).strip("\n")

    def _recall(self) -> None:
        try:
            import readline
        except ImportError:  # Windows: the console recalls lines itself
            return
        file = settings.state_dir() / "chat-input"
        with contextlib.suppress(OSError):
            readline.read_history_file(file)

        def save() -> None:
            with contextlib.suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                readline.set_history_length(1000)
                readline.write_history_file(file)

        self._save = save


def _waiting() -> bool:
    """Whether more input follows at once."""
    if os.name == "nt":
        import msvcrt

        return bool(getattr(msvcrt, "kbhit")())  # noqa: B009  the module exists on Windows only
    return bool(select.select([sys.stdin], [], [], PASTE_GAP_S)[0])
