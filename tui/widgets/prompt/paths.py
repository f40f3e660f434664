"""What files and folders may complete a path that is being typed."""

import os
from pathlib import Path

from localinfer.types import Value
from tui.widgets.prompt.completion import Choice
from tui.widgets.prompt.files import printable, resolve
from tui.widgets.prompt.sizes import size

MOST_SHOWN = 200


class Listing(Value, frozen=True):
    """What may complete ``token``, folders first; ``left_off`` more do not fit into the list."""

    token: str
    choices: tuple[Choice, ...] = ()
    left_off: int = 0


def listing(token: str, folder: Path) -> Listing:
    """The files and folders that begin with, or else contain, what ``token`` ends with. Hidden ones are found when it
    ends with a dot and more. It blocks, for a network drive long."""
    quoted, typed = token.startswith('"'), token.removeprefix('"')
    parent, start = _split(typed)
    wanted = start.casefold()
    found: list[tuple[bool, bool, str, str, os.DirEntry[str]]] = []
    try:
        with os.scandir(resolve(parent, folder) if parent else folder) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(".") and not start.startswith("."):
                    continue
                folded = name.casefold()
                if wanted in folded:
                    found.append((not folded.startswith(wanted), not _is_folder(entry), folded, name, entry))
    except (OSError, ValueError):
        return Listing(token=token)
    found.sort(key=lambda item: item[:4])
    shown = [_choice(entry, parent, is_file, quoted) for _, is_file, _, _, entry in found[:MOST_SHOWN]]
    return Listing(token=token, choices=tuple(shown), left_off=max(0, len(found) - MOST_SHOWN))


def _split(typed: str) -> tuple[str, str]:
    """The folder of ``typed`` with its separator, and what is typed of a name in it."""
    if typed == "~":
        return "~/", ""
    cut = max(typed.rfind(separator) for separator in ("/", os.sep)) + 1
    return typed[:cut], typed[cut:]


def _choice(entry: os.DirEntry[str], parent: str, is_file: bool, quoted: bool) -> Choice:
    value = parent + entry.name + ("" if is_file else "/")
    if quoted or " " in value:
        value = f'"{value}' + ('"' if is_file else "")
    return Choice(
        label=printable(entry.name) + ("" if is_file else "/"),
        detail=_size(entry) if is_file else "folder",
        value=printable(value),
        final=is_file,
        path=entry.path,
    )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _size(entry: os.DirEntry[str]) -> str:
    try:
        return size(entry.stat().st_size)
    except OSError:
        return "–"
