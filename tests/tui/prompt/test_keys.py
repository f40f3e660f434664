"""Typing, sending and going back."""

from pathlib import Path

from textual import events

from localinfer.history.values import Attachment
from tests.tui.prompt.host import Host, running
from tui.widgets.prompt import Draft, Prompt


def type_at_once(host: Host, *keys: str) -> None:
    """As a terminal without bracketed paste gives a paste: all keys of one read."""
    for key in keys:
        host.post_message(events.Key(key, "\r" if key == "enter" else key))


async def test_enter_sends_what_was_typed_and_empties_the_prompt(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("hello [b]you")
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        message = host.sent[0]
        assert (message.text, message.attachments, message.mode) == ("hello [b]you", (), "")
        assert host.prompt.text == ""
        await pilot.press("enter", "space", "enter")
        assert len(host.posted) == 1  # nothing is no message


async def test_keys_that_begin_a_new_line(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"ab", "left")
        keys = ("ctrl+j", "shift+enter", "alt+enter", "ctrl+enter", "shift+\r", "alt+\r")
        for lines, key in enumerate(keys, 1):
            host.post_message(events.Key(key, None))
            await host.until(lambda lines=lines: host.prompt.text == "a" + "\n" * lines + "b")  # type: ignore[misc]
        await host.until(lambda: host.editor.size.height == 1 + len(keys))
        assert host.posted == []


async def test_it_grows_with_the_text_to_ten_rows_and_two_fifths_of_the_screen(tmp_path: Path) -> None:
    for height, most in ((24, 9), (50, 10)):
        async with running(tmp_path, (80, height)) as (host, pilot):
            assert host.editor.size.height == 1
            host.prompt.draft = Draft(text="\n".join(map(str, range(30))))
            await host.until(lambda host=host, most=most: host.editor.size.height == most)  # type: ignore[misc]
            await pilot.pause()
            assert host.editor.region.bottom == height
            assert "29" in host.screen_text  # the cursor is in view


async def test_a_burst_of_keys_with_enter_in_it_is_no_line_by_line_sending(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        type_at_once(host, *"one", "enter", *"two", "enter", "enter", *"three", "enter")
        await host.until(lambda: host.prompt.text == "one\ntwo\n\nthree\n")
        await pilot.pause()
        assert host.posted == []
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert host.sent[0].text == "one\ntwo\n\nthree"


async def test_a_short_burst_that_ends_with_enter_sends(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, _):
        type_at_once(host, *"yes", "enter")  # typed fast over a slow line
        await host.until(lambda: host.sent)
        assert host.sent[0].text == "yes"


async def test_a_long_line_pasted_with_its_end_is_not_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        type_at_once(host, *"a line of some length", "enter")
        await host.until(lambda: host.prompt.text == "a line of some length\n")
        await pilot.pause()
        assert host.posted == []


async def test_up_and_down_go_through_earlier_messages_and_keep_the_draft(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.remember(["first", "second\nwith two lines", "/usr", "/help me"])
        host.prompt.insert("draft")
        await pilot.press("up")
        assert host.prompt.text == "//help me"  # else it would be a command
        await pilot.press("up", "up")
        assert host.prompt.text == "second\nwith two lines"
        await pilot.press(*"!", "up")
        assert host.prompt.text == "first"
        await pilot.press("up")
        assert host.prompt.text == "first"
        await pilot.press("down")
        assert host.prompt.text == "second!\nwith two lines"  # what was changed on the way is kept
        await pilot.press("down", "down", "down")
        assert host.prompt.text == "draft"
        await pilot.press("down")
        assert host.prompt.text == "draft"
        assert not host.completion.is_open


async def test_a_recalled_message_can_be_changed_and_sent_and_is_then_the_last(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.remember(["question"])
        await pilot.press("up", *"s", "enter")
        await host.until(lambda: host.sent)
        assert host.sent[0].text == "questions"
        await pilot.press("up")
        assert host.prompt.text == "questions"
        await pilot.press("ctrl+z")
        assert host.prompt.text == ""


async def test_up_moves_in_a_text_of_several_rows_first(tmp_path: Path) -> None:
    async with running(tmp_path, (20, 24)) as (host, pilot):
        host.prompt.remember(["earlier"])
        host.prompt.draft = Draft(text="a text so long that it is wrapped")
        await host.until(lambda: host.editor.size.height == 3)
        await pilot.press("up", "up")
        assert host.prompt.text.startswith("a text")
        await pilot.press("up")
        assert host.prompt.text == "earlier"


async def test_locked_it_takes_text_and_commands_but_sends_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.lock_sending("loading the model [1]")
        await pilot.press(*"hi", "enter")
        assert host.posted == []
        assert host.prompt.text == "hi"
        assert host.status == "loading the model [1]"
        assert "loading the model [1]" in host.screen_text
        host.prompt.clear()
        host.prompt.insert("/help")
        await pilot.press("enter")
        await host.until(lambda: host.given == [("help", "")])
        host.prompt.unlock_sending()
        assert host.status == ""
        await pilot.press(*"hi", "enter")
        await host.until(lambda: host.sent)


async def test_a_mode_is_shown_and_left_with_esc_which_brings_the_draft_back(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        files = (Attachment(name="a.txt", text="a"),)
        host.prompt.draft = Draft(text="draft", attachments=files)
        host.prompt.set_text("/help was asked", mode="editing")
        await pilot.pause()
        assert host.status == "editing · Esc to leave"
        assert host.prompt.draft == Draft(text="//help was asked")
        await pilot.press("escape")
        assert host.prompt.draft == Draft(text="draft", attachments=files)
        assert host.prompt.mode == ""
        await host.until(lambda: isinstance(host.posted[-1], Prompt.ModeLeft))
        await pilot.press("escape")
        await host.until(lambda: isinstance(host.posted[-1], Prompt.Escaped))


async def test_a_message_sent_in_a_mode_says_so_and_the_draft_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("draft")
        host.prompt.set_text("/help was asked", mode="editing")
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert (host.sent[0].text, host.sent[0].mode) == ("/help was asked", "editing")
        assert host.prompt.text == "draft"


async def test_keys_of_readline_and_of_the_conversation(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("one two three")
        await pilot.press("ctrl+w")
        assert host.prompt.text == "one two "
        await pilot.press("ctrl+a", *"x", "ctrl+e", *"y")
        assert host.prompt.text == "xone two y"
        await pilot.press("ctrl+u")
        assert host.prompt.text == ""
        await pilot.press("ctrl+z")
        assert host.prompt.text == "xone two y"
        await pilot.press("shift+left", "shift+left", "ctrl+x")
        assert (host.prompt.text, host.clipboard) == ("xone two", " y")
        await pilot.press("ctrl+v", "pageup")
        assert host.prompt.text == "xone two y"
        assert host.pages == 1


async def test_what_the_owner_inserts_replaces_the_selection_and_is_harmless(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"ab", "shift+left")
        host.prompt.insert("c\x1b[31m\r\nd")
        assert host.prompt.text == "ac␛[31m\nd"
        await host.until(lambda: host.changes)


async def test_a_hint_stays_until_the_text_changes(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.hint("the model has gone\x1b]52;c;x\a", "error")
        assert host.status == "✗ the model has gone␛]52;c;x␇"
        await pilot.press("left")
        assert host.status
        await pilot.press("x")
        assert not host.status
