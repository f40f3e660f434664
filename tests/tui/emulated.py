"""The real application in a real pseudo-terminal, seen through a terminal emulator."""

import contextlib
import time
from collections.abc import Callable, Iterator

import pyte

from tests.cli.terminal import Terminal

DEADLINE_S = 40.0
MODES = ("1049", "25", "1000", "1003", "1006", "2004")  # alternate screen, cursor, mouse, bracketed paste


class Emulated(Terminal):
    """``shown`` is what can be read on the screen now, a line each."""

    def __init__(self, *arguments: str, columns: int = 100, rows: int = 30, **extra: str) -> None:
        super().__init__(*arguments, NO_COLOR="", COLORTERM="truecolor", **extra)
        self._emulator = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._emulator)
        self._fed = 0
        self.window(columns, rows)

    def window(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self._emulator.resize(rows, columns)
        self.resize(columns, rows)

    @property
    def shown(self) -> list[str]:
        """The screen."""
        self._stream.feed(self.screen[self._fed :])
        self._fed = len(self.screen)
        return [line.rstrip() for line in self._emulator.display]

    def until(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the screen is so."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition(self.shown):
            assert self._pump(b"", deadline) is not None, "\n".join(self.shown)
        return self.shown

    def see(self, text: str) -> list[str]:
        """Wait until ``text`` is on the screen."""
        return self.until(lambda lines: any(text in line for line in lines))

    def clean(self) -> bool:
        """Whether everything that was switched on is off again, the cursor is there, and lines are lines."""
        states = {}
        for mode in MODES:
            on, off = self.screen.rfind(f"\x1b[?{mode}h"), self.screen.rfind(f"\x1b[?{mode}l")
            states[mode] = on > off
        return states == {mode: mode == "25" for mode in MODES} and self.cooked()


@contextlib.contextmanager
def application(script: str, *arguments: str, **named: object) -> Iterator[Emulated]:
    """``localinfer tui`` on the scripted backend, ready to answer."""
    with Emulated("tui", "--backend", "scripted", "--temperature", "0", script, *arguments, **named) as terminal:  # type: ignore[arg-type]
        terminal.see("without a device")
        yield terminal
