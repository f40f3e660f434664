"""Every action of the application, in one table: its name, its keys, what it is called and where it is.

Bindings, footer, help and palette are made of this table; a person changes keys in ``[keys]`` of the settings file. A
key that not every terminal sends (Alt, some function keys) is never the only way: the palette has every action. Kept
free: what edits text in the prompt, Ctrl+A and Ctrl+B (prefixes of screen and tmux), Ctrl+S (flow control), F6 and F7
(they select text), F11 (full screen). It knows nothing of what the actions do.
"""

import difflib
import string
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from textual.binding import Binding, BindingType

from localinfer.errors import BadRequest
from localinfer.models.names import printable
from localinfer.types import Value

if TYPE_CHECKING:
    from typing import Any

    from textual.app import App

Where = Literal["app", "chat"]


class Action(Value, frozen=True):
    """One thing a person can do. ``id`` names the method ``action_<id>`` of the application or, where ``where`` is
    ``chat``, of the chat screen. ``label`` is for the footer, ``help`` a sentence for help and palette. ``always`` is a
    binding that keeps its keys, so that nobody locks himself in."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    where: Where = "chat"
    footer: bool = False
    always: bool = False


ACTIONS: tuple[Action, ...] = (
    Action(id="stop", keys=("escape",), label="Stop", help="Stop the reply; what there is of it is kept"),
    Action(id="new", keys=("ctrl+n",), label="New", help="Begin a new conversation", footer=True),
    Action(id="models", keys=("f2", "ctrl+o"), label="Models", help="Find, fetch and switch models", footer=True),
    Action(id="conversations", keys=("f3", "ctrl+l"), label="List", help="Show or hide the conversations", footer=True),
    Action(id="search", keys=("f4", "ctrl+f"), label="Search", help="Search all conversations", footer=True),
    Action(
        id="parameters",
        keys=("f5", "ctrl+t"),
        label="Parameters",
        help="System prompt, sampling, context and presets",
        footer=True,
    ),
    Action(id="retry", keys=("ctrl+r",), label="Retry", help="Answer the last message again, in a new branch"),
    Action(id="edit", keys=("f8", "alt+e"), label="Edit", help="Edit the last message, in a new branch"),
    Action(id="copy_reply", keys=("ctrl+g", "f9"), label="Copy", help="Copy the last reply"),
    Action(id="copy_code", keys=("f12", "alt+g"), label="Copy code", help="Copy the last code block"),
    Action(id="branch_previous", keys=("alt+left",), label="Branch ‹", help="Go to the branch before this one"),
    Action(id="branch_next", keys=("alt+right",), label="Branch ›", help="Go to the branch after this one"),
    Action(id="turn_previous", keys=("alt+up",), label="Message ↑", help="Go to the message before"),
    Action(id="turn_next", keys=("alt+down",), label="Message ↓", help="Go to the message after"),
    Action(id="scroll_up", keys=("pageup",), label="Page up", help="Scroll the conversation a page up"),
    Action(id="scroll_down", keys=("pagedown",), label="Page down", help="Scroll the conversation a page down"),
    Action(id="scroll_home", keys=("ctrl+home",), label="Start", help="Scroll to the start of the conversation"),
    Action(id="scroll_end", keys=("ctrl+end",), label="End", help="Scroll to the end and follow the reply"),
    Action(id="readout", keys=("alt+r",), label="Figures", help="Show or hide the figures"),
    Action(
        id="activity", keys=("alt+a",), label="Activity", help="What the engine is doing, and for whom", where="app"
    ),
    Action(id="settings", keys=("alt+s",), label="Settings", help="See and change the settings", where="app"),
    Action(id="theme", keys=("alt+t",), label="Theme", help="Choose a theme", where="app"),
    Action(id="help", keys=("f1",), label="Help", help="Keys, commands and what the figures mean", where="app"),
    Action(
        id="command_palette",
        keys=("ctrl+p",),
        label="All",
        help="Every action, by name",
        where="app",
        footer=True,
        always=True,
    ),
    Action(id="quit", keys=("ctrl+q", "f10"), label="Quit", help="Leave localinfer", where="app", always=True),
)

# What the prompt's own keys do. They are part of it and stay.
PROMPT: tuple[tuple[str, str], ...] = (
    ("Enter", "Send"),
    ("Ctrl+J", "New line; Shift+Enter and Alt+Enter where they are sent"),
    ("↑ ↓", "On the first or last line: earlier messages"),
    ("/", "At the start: commands"),
    ("@", "Attach a text file"),
    ("Ctrl+A Ctrl+E", "Start and end of the line"),
    ("Ctrl+W Ctrl+U Ctrl+K", "Delete the word before, to the start, to the end"),
    ("Ctrl+Z Ctrl+Y", "Undo and redo"),
    ("Ctrl+C Ctrl+X Ctrl+V", "Copy, cut and paste"),
)

_NAMES = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "insert": "Ins",
    "delete": "Del",
    "backspace": "Backspace",
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}
_MODIFIERS = ("ctrl", "alt", "shift", "super")


def shown(key: str) -> str:
    """How a key is written: ``ctrl+o`` as Ctrl+O, ``alt+left`` as Alt+←."""
    *modifiers, last = key.split("+")
    plain = _NAMES.get(last) or (last.upper() if modifiers or last[1:].isdigit() else last)
    return "+".join([*(modifier.capitalize() for modifier in modifiers), plain])


def keys_of(action: Action, overrides: Mapping[str, str | tuple[str, ...]] | None = None) -> tuple[str, ...]:
    """The keys of an action, as a person may have changed them."""
    value = (overrides or {}).get(action.id)
    if value is None:
        return action.keys
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(dict.fromkeys(part.strip().lower() for part in parts if part.strip()))


def bindings(where: Where) -> list[BindingType]:
    """The bindings of the application or of the chat screen, for its ``BINDINGS``; ``bind`` changes their keys."""
    return [
        Binding(
            key=",".join(action.keys),
            action=action.id,
            description=action.label,
            show=action.footer,
            key_display=shown(action.keys[0]),
            tooltip=action.help,
            id=action.id,
        )
        for action in ACTIONS
        if action.where == where
    ]


def bind(app: "App[Any]", overrides: Mapping[str, str | tuple[str, ...]]) -> None:
    """Give ``app`` its keys, and every screen with ``bindings`` the keys a person chose. Raises ``BadRequest``."""
    keymap = checked(overrides)
    for action in ACTIONS:
        if action.where == "app":
            keys = keymap.get(action.id, action.keys)
            keys = tuple(dict.fromkeys([*action.keys, *keys])) if action.always else keys
            app.bind(
                ",".join(keys),
                action.id,
                description=action.label,
                show=action.footer,
                key_display=shown(keys[0]),
            )
    app.set_keymap({id: ",".join(keys) for id, keys in keymap.items()})


def checked(overrides: Mapping[str, str | tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The keys a person chose, for the actions that got some. Raises ``BadRequest`` for an action or a key that there
    is not, a key of two actions, and one that edits text in the prompt."""
    ids = {action.id: action for action in ACTIONS}
    for id in overrides:
        if id not in ids:
            near = difflib.get_close_matches(id, ids, n=1)
            hint = f"Did you mean “{near[0]}”?" if near else f"The actions are: {', '.join(ids)}."
            raise BadRequest(
                f"[keys] in the settings file names an unknown action “{printable(id, 40)}”.", hint, param="keys"
            )
    chosen = {id: keys_of(ids[id], overrides) for id in overrides}
    taken: dict[str, str] = {}
    for id, action in ids.items():
        keys = chosen.get(id, action.keys)
        if not keys:
            raise BadRequest(
                f"[keys] in the settings file gives “{id}” no key.", "Name one, or remove that line.", param="keys"
            )
        for key in {*keys, *action.keys} if action.always else keys:
            _check(key, id, taken, chosen)
            taken[key] = id
    return chosen


def _check(key: str, id: str, taken: Mapping[str, str], chosen: Mapping[str, tuple[str, ...]]) -> None:
    if (other := taken.get(key)) is not None:
        raise BadRequest(
            f"[keys] in the settings file gives {shown(key)} to two actions, “{other}” and “{id}”.",
            "Give one of them another key.",
            param="keys",
        )
    if id not in chosen:
        return
    if not _known(key):
        raise BadRequest(
            f"[keys] in the settings file gives “{id}” a key that there is not: “{printable(key, 40)}”.",
            "A key is written like “f5”, “ctrl+t”, “alt+left” or “pageup”.",
            param="keys",
        )
    if key in editing_keys() and key not in PASSED_ON:
        raise BadRequest(
            f"[keys] in the settings file gives “{id}” the key {shown(key)}, which edits text in the prompt.",
            _free(chosen),
            param="keys",
        )


def _free(chosen: Mapping[str, tuple[str, ...]]) -> str:
    """Which keys no action has, and nothing else needs."""
    used = {key for action in ACTIONS for key in chosen.get(action.id, action.keys)} | editing_keys() | ELSEWHERE
    used |= {key for action in ACTIONS if action.always for key in action.keys}
    free = [f"F{number}" for number in range(1, 13) if f"f{number}" not in used]
    for modifier in ("ctrl", "alt"):
        letters = [letter.upper() for letter in string.ascii_lowercase if f"{modifier}+{letter}" not in used]
        if letters:
            free.append(f"{modifier.capitalize()} with {' '.join(letters)}")
    return f"Free are {', '.join(free)}."


PASSED_ON = frozenset({"pageup", "pagedown"})  # the prompt leaves them to the conversation
ELSEWHERE = frozenset({"ctrl+b", "ctrl+s", "f11", "alt+b", "alt+f"})  # what is between takes or rewrites them


def editing_keys() -> frozenset[str]:
    """The keys that edit text or move in it, in the prompt."""
    from textual.binding import BindingsMap
    from textual.widgets import TextArea

    plain = ("enter", "shift+enter", "alt+enter", "ctrl+j", "ctrl+m", "ctrl+h", "tab", "shift+tab", "ctrl+i", "space")
    return frozenset([*BindingsMap(TextArea.BINDINGS).key_to_bindings, *plain])


def _known(key: str) -> bool:
    """Whether a terminal can send ``key`` and nobody types it as text."""
    from textual.keys import Keys

    *modifiers, last = key.split("+")
    if len(set(modifiers)) != len(modifiers) or not set(modifiers) <= set(_MODIFIERS):
        return False
    named = {str(one.value) for one in Keys if "+" not in one.value and "<" not in one.value}
    if last in named:
        return True
    return bool({"ctrl", "alt", "super"} & set(modifiers)) and len(last) == 1 and last.isalnum() and last.isascii()
