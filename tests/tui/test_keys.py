"""The table of actions: no key twice, none that edits text, and keys that a person changes."""

import pytest
from textual.app import App, ComposeResult
from textual.binding import BindingsMap
from textual.screen import Screen
from textual.widgets import Footer, TextArea

from localinfer.errors import BadRequest
from tui import keys
from tui.keys import ACTIONS

MULTIPLEXERS = {"ctrl+a", "ctrl+b", "ctrl+s"}  # screen, tmux, flow control
TERMINALS = {"f11"}  # full screen in most of them


class Chat(Screen[None]):
    BINDINGS = keys.bindings("chat")

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def compose(self) -> ComposeResult:
        yield TextArea()
        yield Footer()

    def action_new(self) -> None:
        self.done.append("new")

    def action_models(self) -> None:
        self.done.append("models")


class Keyed(App[None]):
    def __init__(self, overrides: dict[str, str | tuple[str, ...]] | None = None) -> None:
        super().__init__()
        self.chat = Chat()
        self.helped = 0
        keys.bind(self, overrides or {})

    def on_mount(self) -> None:
        self.push_screen(self.chat)

    def action_help(self) -> None:
        self.helped += 1


def test_no_key_is_bound_twice_and_no_action_is_without_words() -> None:
    every = [key for action in ACTIONS for key in action.keys]
    assert len(every) == len(set(every))
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert all(action.label and action.help and action.keys for action in ACTIONS)
    assert all(not action.help.endswith(".") and len(action.help) <= 70 for action in ACTIONS)


def test_no_key_is_one_that_edits_text_or_that_something_between_takes() -> None:
    every = {key for action in ACTIONS for key in action.keys}
    assert every & keys.editing_keys() == keys.PASSED_ON
    assert set(BindingsMap(TextArea.BINDINGS).key_to_bindings) <= keys.editing_keys()
    assert not every & (MULTIPLEXERS | TERMINALS)


def test_what_is_in_the_footer_fits_80_columns() -> None:
    shown = [f" {keys.shown(action.keys[0])} {action.label} " for action in ACTIONS if action.footer]
    assert len("".join(shown)) <= 80


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("ctrl+o", "Ctrl+O"),
        ("f2", "F2"),
        ("alt+left", "Alt+←"),
        ("escape", "Esc"),
        ("p", "p"),
        ("slash", "/"),
        ("ctrl+pageup", "Ctrl+PgUp"),
    ],
)
def test_how_keys_are_written(key: str, shown: str) -> None:
    assert keys.shown(key) == shown


async def test_keys_reach_the_screen_and_the_application_from_the_prompt() -> None:
    app = Keyed()
    async with app.run_test() as pilot:
        await pilot.press("ctrl+n", "f2", "ctrl+o", "f1")
        assert app.chat.done == ["new", "models", "models"]
        assert app.helped == 1


async def test_a_person_changes_keys() -> None:
    app = Keyed({"models": ("alt+m", "ctrl+g"), "copy_reply": "f2", "help": "ctrl+l, f3", "conversations": "f1"})
    async with app.run_test() as pilot:
        await pilot.press("ctrl+o", "f2")
        assert app.chat.done == []
        await pilot.press("alt+m")
        assert app.chat.done == ["models"]
        await pilot.press("ctrl+g")
        assert app.chat.done == ["models", "models"]
        await pilot.press("f1", "ctrl+l", "f3")
        assert app.helped == 2
        await pilot.press("ctrl+n")
        assert app.chat.done == ["models", "models", "new"], "the others keep theirs"


def test_quit_and_the_palette_keep_their_keys() -> None:
    app = Keyed({"quit": "alt+q"})
    bound = {key for key, binding in app._bindings if binding.action == "quit"}
    assert bound >= {"ctrl+q", "f10", "alt+q"}


@pytest.mark.parametrize(
    ("overrides", "said", "hint"),
    [
        ({"modles": "f2"}, "“modles”", "Did you mean “models”?"),
        ({"xyz": "f2"}, "“xyz”", "The actions are: stop"),
        ({"models": "f42x"}, "“f42x”", "written like"),
        ({"models": "ctrl"}, "“ctrl”", "written like"),
        ({"models": "m"}, "“m”", "written like"),
        ({"models": "ctrl+ctrl+m"}, "“ctrl+ctrl+m”", "written like"),
        ({"models": "hyper+m"}, "“hyper+m”", "written like"),
        ({"models": "\x1b[31m"}, "there is not", "written like"),
        ({"models": " , "}, "no key", "Name one"),
        ({"models": "f1"}, "two actions, “models” and “help”", "another key"),
        ({"models": "alt+q", "search": "alt+q"}, "Alt+Q to two actions", "another key"),
        ({"models": "f10"}, "“models” and “quit”", "another key"),
        ({"models": "ctrl+w"}, "Ctrl+W, which edits text", "Free are F2, Ctrl with O, Alt with C D H"),
        ({"models": ("f2", "enter")}, "Enter, which edits text", "Free are Ctrl with O, Alt with C D H"),
        ({"models": "f6"}, "F6, which edits text", "Free are F2, Ctrl with O, Alt with C D H"),
        ({"search": "f7", "models": "alt+c"}, "F7, which edits text", "Free are F2, F4, Ctrl with F O, Alt with D H"),
    ],
)
def test_keys_that_cannot_be_are_refused_with_a_hint(
    overrides: dict[str, str | tuple[str, ...]], said: str, hint: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        keys.checked(overrides)
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.param == "keys"


def test_swapping_two_actions_is_no_clash() -> None:
    assert keys.checked({"models": "f1", "help": "f2"}) == {"models": ("f1",), "help": ("f2",)}


@pytest.mark.parametrize("chosen", [{}, {"models": "alt+c", "search": "ctrl+o, f2", "quit": "f4"}])
def test_keys_that_are_named_as_free_are(chosen: dict[str, str | tuple[str, ...]]) -> None:
    with pytest.raises(BadRequest) as caught:
        keys.checked({**chosen, "edit": "f6"})
    named = caught.value.hint.removeprefix("Free are ").rstrip(".").split(", ")
    parts = [one.partition(" with ") for one in named]
    free = [
        f"{first}+{key}".lower() if rest else first.lower() for first, _, rest in parts for key in rest.split() or [""]
    ]
    assert len(free) > 3
    for key in free:
        assert "edit" in keys.checked({**chosen, "edit": key})
