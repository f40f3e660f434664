"""What Textual's reading of the terminal lacks for typing: Alt with a key, and pastes as they are.

Its parser goes through a paste character by character, which takes seconds for a megabyte, and takes an escape sequence
in it (tmux lets them through) for keys. Here a paste is cut out before the parser sees it. Without a keyboard protocol
Alt is an Esc before the key, and what it makes of that would be typed as text.
"""

import re
import string
from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._parser import Parser
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START
from textual.keys import Keys, _character_to_key
from textual.message import Message

_BEGUN = re.compile("\x1b\\[2(?:0(?:0)?)?$")  # no key ends like this; shorter, it may be one
_MODIFIERS = frozenset({"alt", "ctrl", "super", "hyper", "meta"})
_INTRODUCERS = frozenset("[]_^OPX")  # Esc with one of them begins a longer sequence
_SIGNS = frozenset(string.printable.strip() + " ") - _INTRODUCERS
_feed_parser = Parser.feed


class _Key(NamedTuple):
    """A key that Textual has no name of its own for."""

    value: str


def _parse(parser: Parser[Message], data: str) -> Iterator[Message]:
    """What Textual makes of ``data``, but that a key with a modifier is no text."""
    for message in _feed_parser(parser, data):
        if isinstance(message, events.Key) and not _MODIFIERS.isdisjoint(message.key.split("+")[:-1]):
            message.character = None
        yield message


class _Reading:
    """What is read so far: of a paste, and of the mark that may begin one."""

    def __init__(self) -> None:
        self.paste: list[str] | None = None
        self.held = ""


_readings: WeakKeyDictionary[Parser[Message], _Reading] = WeakKeyDictionary()


def _feed(parser: Parser[Message], data: str) -> Iterator[Message]:
    reading = _readings.setdefault(parser, _Reading())
    if not data:  # the end
        yield from _parse(parser, data)
        return
    data, reading.held = reading.held + data, ""
    while data:
        if reading.paste is None:
            before, begun, data = data.partition(BRACKETED_PASTE_START)
            if begun:
                reading.paste = []
            elif match := _BEGUN.search(before):
                before, reading.held = before[: match.start()], match[0]
            if before:
                yield from _parse(parser, before)
        else:
            tail = reading.paste.pop() if reading.paste else ""  # it may hold the first half of the mark
            text, ended, data = (tail + data).partition(BRACKETED_PASTE_END)
            cut = len(text) if ended else max(0, len(text) - len(BRACKETED_PASTE_END))
            reading.paste += [text[:cut], text[cut:]]
            if ended:
                yield events.Paste("".join(reading.paste))
                reading.paste = None


def prepare() -> None:
    """Teach Textual's parser all of it, in every driver, also one that is reading already. It may be called again."""
    Parser.feed = _feed  # type: ignore[assignment, method-assign]
    known: dict[str, tuple[Keys | _Key]] = ANSI_SEQUENCES_KEYS  # type: ignore[assignment]
    for sequence in ("\x1b\r", "\x1b\n"):  # Alt+Enter
        known[sequence] = (Keys.ControlJ,)
    for sign in _SIGNS:
        if not isinstance(known.get(f"\x1b{sign}"), tuple):
            name = sign.lower() if sign.isalnum() else _character_to_key(sign)
            known[f"\x1b{sign}"] = (_Key(f"alt+shift+{name}" if sign.isupper() else f"alt+{name}"),)
