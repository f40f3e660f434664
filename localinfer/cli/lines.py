"""Reading what a person types, in any terminal: pasted lines, blocks between triple quotes, recall of earlier texts.

It knows terminals and pipes, and nothing of what the text is for.
"""

import contextlib
import io
import json
import os
import re
import select
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from localinfer import settings
from localinfer.cli import console
from localinfer.errors import StorageUnavailable

PASTE_GAP_S = 0.05  # lines that come closer than this were pasted, not typed
BLOCK = '"""'
RECALLED = 1000  # texts that the arrow keys bring back
RECALLED_LENGTH = 10_000  # characters; nobody edits a longer text in one line

_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_NOT_TEXT = re.compile("[\ud800-\udfff]")  # what Python makes of bytes that are not in the terminal's encoding


class Entry(msgspec.Struct, frozen=True):
    """What was typed. ``verbatim``: it was pasted or quoted, so it is no command whatever it looks like.

    ``damaged``: bytes in it were not text; each is U+FFFD now.
    """

    text: str
    verbatim: bool = False
    damaged: bool = False


class LineReader:
    """Entries from standard input: from a terminal with editing and recall where there is readline, else line by line.

    ``interactive``: a person types.
    """

    def __init__(self) -> None:
        self.interactive = sys.stdin is not None and sys.stdin.isatty()
        self._edits = self.interactive and sys.stdout.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding=None if self.interactive else "utf-8", errors="surrogateescape")
        self._remember = _recall() if self._edits else lambda _: None

    def read(self, prompt: str) -> Entry | None:
        """The next entry; None at the end of input. Raises ``KeyboardInterrupt`` on Ctrl-C."""
        typed: list[str] = []
        try:
            return self._read(prompt, typed)
        except KeyboardInterrupt:
            self._remember("\n".join(typed))
            raise

    def _read(self, prompt: str, typed: list[str]) -> Entry | None:
        self._take_lines(prompt, typed)
        if not typed:
            return None
        pasted = len(typed) > 1 or "\n" in typed[0]
        text = "\n".join(typed)
        inner = text.strip().removeprefix(BLOCK)
        quoted = inner != text.strip()
        if quoted and BLOCK not in inner:
            self._take_block(typed)
            inner = "\n".join(typed).strip().removeprefix(BLOCK)
        elif quoted and inner.index(BLOCK) < len(inner) - len(BLOCK):
            quoted = False  # a text with quotes of its own
        text, damaged = _NOT_TEXT.subn("\ufffd", inner.removesuffix(BLOCK).strip("\n") if quoted else text)
        self._remember(text)
        return Entry(text, verbatim=quoted or pasted, damaged=damaged > 0)

    def _take_lines(self, prompt: str, typed: list[str]) -> None:
        """A typed line, or all lines of a paste; nothing at the end of input."""
        inside = False
        while not typed or (self.interactive and (inside or _more_waits())):
            line = self._line("" if typed else prompt)
            if line is None:
                return
            begins, ends = line.rfind(_PASTE_BEGINS), line.rfind(_PASTE_ENDS)
            inside = begins > ends if begins != ends else inside
            typed.append(line.replace(_PASTE_BEGINS, "").replace(_PASTE_ENDS, ""))

    def _take_block(self, typed: list[str]) -> None:
        """What follows up to a line that ends with the quotes, or to the end of input."""
        while (line := self._line("... ")) is not None:
            typed.append(line)
            if line.rstrip().endswith(BLOCK):
                return

    def _line(self, prompt: str) -> str | None:
        if self._edits:
            with contextlib.suppress(EOFError):
                return input(prompt)
            return None
        if sys.stdin is None:
            return None
        if self.interactive and prompt:
            console.ask(prompt)
        line = sys.stdin.readline()
        return line.removesuffix("\n").removesuffix("\r") if line else None


def _more_waits() -> bool:
    """Whether more input follows at once."""
    if os.name == "nt":
        import msvcrt

        return bool(getattr(msvcrt, "kbhit")())  # noqa: B009  the module exists on Windows only
    return bool(select.select([sys.stdin], [], [], PASTE_GAP_S)[0])


def _recall() -> Callable[[str], None]:
    """Let the arrow keys bring back what was typed before. The result keeps one more text, also for the next run."""
    try:
        import readline
    except ImportError:  # Windows: the console recalls lines itself
        return lambda _: None
    readline.set_auto_history(False)  # a paste of many lines is one text
    if "libedit" not in (readline.__doc__ or ""):
        readline.parse_and_bind(f"set enable-bracketed-paste {'off' if console.dumb() else 'on'}")
        readline.parse_and_bind("set enable-active-region off")  # no colours of its own
    file = settings.state_dir() / "chat-input"
    for text in _remembered(file):
        with contextlib.suppress(ValueError):  # a character that this terminal's encoding lacks
            readline.add_history(text)

    def remember(text: str) -> None:
        last = readline.get_history_item(readline.get_current_history_length())
        if not text.strip() or text == last or len(text) > RECALLED_LENGTH:
            return
        with contextlib.suppress(ValueError):
            readline.add_history(text)
        with contextlib.suppress(OSError, StorageUnavailable):
            settings.make_folder(file.parent)
            _write(file, os.O_APPEND, [text])

    return remember


def _remembered(file: Path) -> list[str]:
    """The newest texts of the file, which holds one JSON string per line and is cut when it has become long."""
    texts: list[str] = []
    with contextlib.suppress(OSError):
        for line in file.read_bytes().splitlines():
            with contextlib.suppress(msgspec.DecodeError):  # not ours
                texts.append(msgspec.json.decode(line, type=str))
        if len(texts) > 2 * RECALLED:
            _write(file, os.O_TRUNC, texts[-RECALLED:])
    return texts[-RECALLED:]


def _write(file: Path, flag: int, texts: list[str]) -> None:
    """Only its owner may read what was typed."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | flag, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write("".join(json.dumps(text) + "\n" for text in texts))
