"""A line of text: keys that come all at once do what they do in their order."""

import re
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import Input

from tests.tui.waiting import until
from tui.widgets import entry
from tui.widgets.entry import Entry

KEYS = {"a": "a", "b": "b", " ": "space", "<": "backspace", "!": "delete", "^": "home", "$": "end", "-": "left"}
KEYS |= {"u": "ctrl+u", "w": "ctrl+w", "k": "ctrl+k"}


class Typing(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.submitted = ""

    def compose(self) -> ComposeResult:
        yield Entry()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.submitted = event.value


def burst(app: App[None], *keys: str) -> None:
    """Press keys faster than any of them is dealt with."""
    for key in keys:
        character = key if len(key) == 1 else " " if key == "space" else None
        app.post_message(events.Key(key, character))


def edited(signs: str) -> str:
    """What is left of keys that are dealt with one after the other."""
    text, at = "", 0
    for sign in signs:
        match KEYS[sign]:
            case "backspace":
                text, at = text[: max(0, at - 1)] + text[at:], max(0, at - 1)
            case "delete":
                text = text[:at] + text[at + 1 :]
            case "home":
                at = 0
            case "end":
                at = len(text)
            case "left":
                at = max(0, at - 1)
            case "ctrl+u":
                text, at = text[at:], 0
            case "ctrl+k":
                text = text[:at]
            case "ctrl+w":
                start = len(text[:at].rstrip(" "))
                while start and text[start - 1] != " ":
                    start -= 1
                text, at = text[:start] + text[at:], start
            case _:
                text, at = text[:at] + sign + text[at:], at + 1
    return text


@pytest.mark.parametrize("signs", ["aaaaaaaaaaaaaaaa<<<<<<<<bbbbbbbb", "ab^b$a", "a bwa", "abu", "aaa---kb", "bb^!a"])
async def test_a_burst_of_keys_is_in_order(signs: str) -> None:
    app = Typing()
    async with app.run_test() as pilot:
        burst(app, *(KEYS[sign] for sign in signs), "enter", "a")
        await until(pilot, lambda: app.submitted != "" or not edited(signs))
        assert app.submitted == edited(signs)
        await until(pilot, lambda: app.query_one(Input).value != app.submitted)


def test_every_line_that_is_typed_is_one() -> None:
    ours = Path(entry.__file__)
    files = [file for file in ours.parents[1].rglob("*.py") if file != ours]
    assert len(files) > 50
    assert [file.name for file in files if re.search(r"\bInput\(|class \w+\(Input\)", file.read_text())] == []


def test_every_field_of_several_lines_is_one() -> None:
    from tui.widgets.prompt import area

    ours = Path(area.__file__)
    files = [file for file in ours.parents[2].rglob("*.py") if file != ours]
    assert len(files) > 50
    assert [file.name for file in files if re.search(r"\bTextArea\(|class \w+\(TextArea\)", file.read_text())] == []
