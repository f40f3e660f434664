"""What the palette offers beside actions: every command, this conversation, presets. And every screen in any theme."""

from pathlib import Path

import pytest
from textual.widgets import Input

from localinfer import presets
from tests.tui.chat.conftest import Chatting, Open
from tui import keys
from tui.palette import Palette
from tui.screens.chat.commands import COMMANDS
from tui.screens.chat.offered import ACTIONS, Offered
from tui.screens.choose import ChooseScreen
from tui.screens.confirm import Ask, Confirm
from tui.screens.note import NoteScreen


async def choose(chat: Chatting, words: str) -> None:
    """Choose the entry of the palette that ``words`` find first."""
    await chat.press("ctrl+p")
    await chat.until(lambda: isinstance(chat.app.screen, Palette))
    chat.app.screen.query_one(Input).value = words
    await chat.pilot.pause()
    await chat.app.workers.wait_for_complete()
    await chat.pilot.pause()
    await chat.press("enter")
    await chat.until(lambda: not isinstance(chat.app.screen, Palette))


async def answer(chat: Chatting, text: str) -> None:
    """Answer the question that is asked."""
    await chat.until(lambda: isinstance(chat.app.screen, Ask))
    chat.app.screen.query_one(Input).value = text
    await chat.press("enter")
    await chat.until(lambda: not isinstance(chat.app.screen, Ask))


async def test_every_command_is_an_action_or_offered_beside_them(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("hello")
        offered = {entry.key.partition(" ")[0] for entry in Offered(chat.screen)()}
        ids = {action.id for action in keys.ACTIONS}
        assert set(ACTIONS.values()) <= ids
        for command in COMMANDS:
            assert (command.name in ACTIONS) != (f"/{command.name}" in offered), command.name


async def test_what_needs_something_asks_for_it(
    chatting: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with chatting() as chat:
        await chat.say("hello")
        await choose(chat, "last reply to a file")
        await answer(chat, "said.md")
        await chat.until(lambda: (tmp_path / "said.md").exists())
        assert "An answer." in (tmp_path / "said.md").read_text()
        for form, name in (("JSON", "whole.json"), ("Markdown", "whole.md")):
            await choose(chat, f"conversation as {form}")
            await answer(chat, name)
            await chat.until(lambda name=name: (tmp_path / name).exists())  # type: ignore[misc]
        await choose(chat, "another context")
        await answer(chat, "no number")
        await chat.until(lambda: "takes a number of tokens" in chat.text)
        await choose(chat, "every figure of")
        await chat.until(lambda: isinstance(chat.app.screen, NoteScreen))


async def test_this_conversation_is_renamed_pinned_deleted_and_brought_back(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("hello")
        talk, history = chat.screen.talk, chat.app.history
        assert talk.conversation is not None
        id = talk.conversation.id
        await choose(chat, "rename this")
        await answer(chat, "[b]Mine")
        await chat.until(lambda: history.conversation(id).title == "[b]Mine")
        await choose(chat, "pin this")
        await chat.until(lambda: history.conversation(id).pinned)
        assert talk.conversation == history.conversation(id)
        await choose(chat, "unpin this")
        await chat.until(lambda: not history.conversation(id).pinned)
        await choose(chat, "delete this")
        await chat.until(lambda: talk.conversation is None)
        assert history.conversations() == ()
        await choose(chat, "bring back")
        await chat.until(lambda: talk.conversation is not None and talk.conversation.id == id)


async def test_a_preset_is_used(chatting: Open) -> None:
    async with chatting() as chat:
        await choose(chat, "preset: precise")
        wanted = next(one for one in presets.BUILT_IN if one.name == "precise")
        await chat.until(lambda: chat.screen.talk.parameters.sampling == wanted.sampling)


@pytest.mark.parametrize("theme", ["ansi-dark", "localinfer-light"])
async def test_every_screen_opens_in_a_theme_of_each_kind(theme: str, chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("hello")
        app = chat.app
        app.theme = theme
        await chat.pilot.pause()
        for id in ("help", "settings", "activity", "parameters", "search", "models", "command_palette"):
            action = next(one for one in keys.ACTIONS if one.id == id)
            await app.run_action(f"{'screen' if action.where == 'chat' else 'app'}.{id}")
            await chat.until(lambda: app.screen is not chat.screen)
            await chat.pilot.pause()
            app.pop_screen()
            await chat.until(lambda: app.screen is chat.screen)
        for screen in (Ask("?"), Confirm("?"), ChooseScreen("?", "", ()), NoteScreen("?", ())):
            app.push_screen(screen)
            await chat.until(lambda: app.screen is not chat.screen)
            await chat.pilot.pause()
            app.pop_screen()
        assert app.failure is None
