"""Commands that begin with a slash: which there are, what a text means, and what may complete it. All of it is pure."""

import difflib
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from localinfer.types import Value
from tui.widgets.prompt.completion import Choice

_WORD = re.compile(r"/([A-Za-z][\w-]*)(?=\s|$)")
_TYPED = re.compile(r"/([\w-]*)$")
_MOST_CHOICES = 200

T = TypeVar("T")


class Command(Value, frozen=True):
    """A command of the owner. ``argument`` names what may follow it; empty: nothing does.

    ``choices`` gives what the argument may be, for what is typed of it so far; it is asked at each key and must be
    quick.
    """

    name: str
    summary: str
    argument: str = ""
    choices: Callable[[str], Sequence[str]] | None = None


class Given(Value, frozen=True):
    """The text is a command."""

    command: Command
    argument: str


class Unknown(Value, frozen=True):
    """The text begins like a command, but there is none of that name. ``near`` is one that is spelt alike, or empty."""

    word: str
    near: str


def meaning(text: str, commands: Sequence[Command]) -> Given | Unknown | None:
    """What ``text`` is; None is a message. ``/usr/bin is full`` is one, as its first word cannot name a command."""
    if not (match := _WORD.match(text)):
        return None
    word = match[1]
    for command in commands:
        if command.name == word.casefold():
            return Given(command=command, argument=text[match.end() :].strip())
    near = difflib.get_close_matches(word.casefold(), [command.name for command in commands], n=1)
    return Unknown(word=word, near=near[0] if near else "")


def escaped(message: str) -> str:
    """``message`` as it has to be typed: a slash that it begins with is doubled where it would be taken amiss."""
    return f"/{message}" if message.startswith("//") or _WORD.match(message) else message


def unescaped(text: str) -> str:
    """The message that ``text`` stands for."""
    return text[1:] if text.startswith("//") else text


def complete(before: str, commands: Sequence[Command]) -> tuple[list[Choice], int, Command | None]:
    """What may complete a first line that is ``before`` up to the cursor: the choices, best first, how many characters
    they replace, and the command whose argument is typed."""
    if match := _TYPED.match(before):
        typed = match[1].casefold()
        found = ranked(typed, commands, key=lambda command: command.name)
        return [_choice(command) for command in found], len(before), None
    given = meaning(before, commands)
    if not isinstance(given, Given) or not given.command.argument:
        return [], 0, None
    command = given.command
    typed = before[len(command.name) + 1 :].lstrip()
    options = command.choices(typed) if command.choices else ()
    likely = ranked(typed.casefold(), options, key=lambda option: option)[:_MOST_CHOICES]
    return [Choice(label=option, value=option, final=True) for option in likely], len(typed), command


def ranked(typed: str, things: Sequence[T], key: Callable[[T], str]) -> list[T]:
    """Those of ``things`` that ``typed`` may mean: those that begin with it, else that contain it, else that have its
    letters in order."""
    graded: list[tuple[int, T]] = []
    for thing in things:
        name = key(thing).casefold()
        if name.startswith(typed):
            graded.append((0, thing))
        elif typed in name:
            graded.append((1, thing))
        elif _in_order(typed, name):
            graded.append((2, thing))
    nearest = min((grade for grade, _ in graded), default=0)
    return [thing for grade, thing in graded if grade == nearest]


def _choice(command: Command) -> Choice:
    argument = f" {command.argument}" if command.argument else ""
    return Choice(
        label=f"/{command.name}",
        extra=argument,
        detail=command.summary,
        value=f"/{command.name}{' ' if argument else ''}",
        final=not argument,
    )


def _in_order(letters: str, name: str) -> bool:
    rest = iter(name)
    return all(letter in rest for letter in letters)
