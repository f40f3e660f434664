"""Every field of every screen: what is pasted into it never acts on the terminal, and what nobody changed stays."""

import os
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Input, TextArea

from localinfer import presets, settings
from localinfer.history.values import Parameters
from localinfer.presets import Preset
from localinfer.types import Sampling
from tests.tui.chat.conftest import Chatting, Open, chatting
from tui.screens.confirm import Ask
from tui.text.clean import clean, in_place
from tui.widgets.conversations import Conversations
from tui.widgets.entry import Entry
from tui.widgets.form import Choice, Lines, Row
from tui.widgets.prompt.area import Area

__all__ = ["chatting"]

# A title, colours, the clipboard, a reset, a charset, 8-bit controls, a link; bidi; what parts lines; a lone surrogate.
HOSTILE = (
    "A\x1b]0;title\x07B\x1b[31mC\x1b]52;c;cHdu\x07D\x1bcE\x1b(0F\x9b31mG\x9d0;x\x9cH\u202eI\u2066J\x7f\x08\x0b\x0c\x0e"
    "K\u2028L\x85M\ufeffN\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1cO [/b] [red]x[/red] \ud83d \x00."
)
JOINED = "Use 👨‍👩‍👧 and ❤️ and co\u00adop\u200b\u200e \U000e0041 end"
KEPT = f"  {JOINED}\twith \x1b[31m and \u202e and\u2028all  "  # as a file or another program may have stored it
SCREENS = {"chat": "", "models": "f2", "search": "f4", "parameters": "f5", "settings": "alt+s", "help": "f1"}
SCREENS |= {"palette": "ctrl+p", "list": "f3"}


def shown(app: App[None]) -> str:
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


def harmless(app: App[None]) -> bool:
    return clean(shown(app)) == shown(app)


def fields(chat: Chatting) -> list[Widget]:
    found = [*chat.app.screen.query(Input), *chat.app.screen.query(TextArea)]
    return [one for one in found if one.focusable and one.display and not one.disabled]


@pytest.mark.parametrize("screen", SCREENS)
async def test_what_is_pasted_into_a_field_never_acts(chatting: Open, screen: str) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        before = chat.app.screen
        if key := SCREENS[screen]:
            await chat.press(key)
        if screen == "list":
            await chat.until(lambda: bool(chat.app.screen.query(Conversations)))
            await chat.until(lambda: chat.screen.query_one(Conversations).highlighted is not None)
            await chat.press("r")
            await chat.until(lambda: isinstance(chat.app.focused, Input))
        elif key:
            await chat.until(lambda: chat.app.screen is not before and bool(fields(chat)))
        if screen == "parameters":
            await chat.pilot.click("#more")
            await chat.pilot.pause()
        assert fields(chat)
        asked = fields(chat)
        for field in asked[:1] if screen == "list" else asked:  # a name is left when another field is entered
            assert isinstance(field, Entry | Area)
            field.focus()
            await chat.until(lambda field=field: chat.app.focused is field)  # type: ignore[misc]
            chat.app.post_message(events.Paste(HOSTILE))
            await chat.until(lambda field=field: "title" in written(field))  # type: ignore[misc]
            await chat.pilot.pause()
            assert "␛" in written(field)
            assert harmless(chat.app)


def written(field: Widget) -> str:
    return field.value if isinstance(field, Input) else field.text if isinstance(field, TextArea) else ""


class Editing(App[None]):
    """Editors that are given ``text``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.given = text

    def compose(self) -> ComposeResult:
        yield Entry(self.given, compact=True)
        yield Lines(self.given)


@pytest.mark.parametrize("text", [HOSTILE, JOINED, KEPT, "\n\r\n\t\x0b\x85\u2029x"])
async def test_what_a_field_is_given_stays_and_never_acts(text: str) -> None:
    app = Editing(text)
    async with app.run_test() as pilot:
        for field in (app.query_one(Entry), app.query_one(Lines)):
            field.focus()
            await pilot.press("home", "end", "left", "shift+left")
            await pilot.pause()
            assert field.value == text
            assert harmless(app)


@given(st.text())
def test_what_is_drawn_has_a_character_for_each(text: str) -> None:
    assert len(in_place(text)) == len(text)
    kept = in_place(text).translate(dict.fromkeys((0x200D, 0xFE0F, *range(0x1F3FB, 0x1F400))))
    assert clean(kept) == kept


# What nobody changed


async def entered(chat: Chatting, key: str, until: Callable[[], bool] = lambda: True) -> None:
    """Open a screen, press Enter in it, and be back."""
    before = chat.app.screen
    await chat.press(key)
    await chat.until(lambda: chat.app.screen is not before and chat.app.screen.focused is not None and until())
    await chat.press("enter")
    await chat.until(lambda: chat.app.screen is before)


async def test_parameters_stay_as_they_are(chatting: Open) -> None:
    mine = Parameters(
        system=KEPT,
        sampling=Sampling(
            temperature=0.123456789012345, dry_sequence_breakers=(KEPT,), logit_bias={7: -1.1234567890123}
        ),
    )
    async with chatting() as chat:
        chat.screen.talk.parameters = mine
        await entered(chat, "f5")
        assert chat.screen.talk.parameters == mine


async def test_a_preset_brings_what_it_holds(chatting: Open) -> None:
    mine = Preset(name="a first one", sampling=Sampling(top_p=0.123456789012345), system=JOINED)
    presets.save(mine)
    async with chatting() as chat:
        before = chat.app.screen
        await chat.press("f5")
        await chat.until(lambda: chat.app.screen is not before and bool(chat.app.screen.query("#preset")))
        choice = chat.app.screen.query_one("#preset", Choice)
        choice.focus()
        for _ in range(50):
            if choice.value != mine.name:
                await chat.press("right")
                await chat.pilot.pause()
        assert choice.value == mine.name
        await chat.press("enter")
        await chat.until(lambda: chat.app.screen is before)
        now = chat.screen.talk.parameters
        assert (now.system, now.sampling) == (mine.system, mine.sampling)


async def test_settings_stay_as_they_are(chatting: Open) -> None:
    file = f"# {JOINED}\nmodel = {msgspec.json.encode(f'/m/{JOINED}.gguf').decode()}\ntheme = 'localinfer-dark'\n"
    settings.config_file().write_text(file, "utf-8")
    async with chatting() as chat:
        await entered(chat, "alt+s")
        assert settings.config_file().read_text("utf-8") == file
        await chat.press("alt+s")
        await chat.until(lambda: bool(chat.app.screen.query("#row-threads")))
        row = chat.app.screen.query_one("#row-threads", Row)
        row.editor.focus()
        await chat.press("3", "enter")
        await chat.until(lambda: not chat.app.screen.query(Row))
        assert settings.load().threads == 3
        assert file in settings.config_file().read_text("utf-8")


async def test_a_name_stays_as_it_is(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        talk = chat.screen.talk
        assert talk.conversation is not None
        id = talk.conversation.id
        title = talk.history.change(id, title=f"{JOINED} \x1b[31m \u202e").title
        assert "\ufe0f" in title
        await chat.press("f3")
        listed = chat.screen.query_one(Conversations)
        await chat.until(lambda: listed.highlighted is not None and listed.highlighted.title == title)
        await chat.press("r")
        await chat.until(lambda: isinstance(chat.app.focused, Entry))
        await chat.press("enter")
        await chat.until(lambda: not isinstance(chat.app.focused, Entry))
        await chat.pilot.pause()
        assert talk.history.conversation(id).title == title


async def test_an_answer_that_was_offered_stays_as_it_is() -> None:
    class Asking(App[None]):
        answer: str | None = ""

        def on_mount(self) -> None:
            self.push_screen(Ask("Name", KEPT), lambda answer: setattr(self, "answer", answer))

    app = Asking()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert harmless(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.answer == KEPT


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX's")
def test_in_a_real_terminal() -> None:
    from tests.tui.emulated import application

    with application("text=Hello.") as terminal:
        terminal.send("\x06")  # search
        terminal.see("Search all conversations")
        begun = len(terminal.screen)
        terminal.send(b"\x1b[200~" + HOSTILE.encode("utf-8", "replace") + b"\x1b[201~")
        terminal.see("␎K")
        sent = terminal.screen[begun:]
        assert [bad for bad in ("\x1b]", "\x1bc", "\x1b(0", "\x9b", "\x9d", "\u202e", "\u2066") if bad in sent] == []
