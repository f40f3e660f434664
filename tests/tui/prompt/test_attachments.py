"""``@path``: from the list, and in a message that is sent."""

import os
from pathlib import Path

from textual import events

from localinfer.history.values import Attachment
from tests.tui.prompt.host import running
from tui.widgets.prompt import Prompt


async def test_a_file_from_the_list_becomes_a_chip(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main[b].py").write_text("print(1)\n")
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"see @")
        await host.until(lambda: host.completion.is_open)
        await pilot.press("down", "enter")
        assert host.prompt.text == "see @src/"
        await host.until(lambda: host.completion.is_open and host.completion.first.label == "main[b].py")
        await pilot.press("tab")
        await host.until(lambda: host.posted)
        assert host.prompt.text == "see "
        added = host.posted[0]
        assert isinstance(added, Prompt.AttachmentAdded)
        assert added.attachment == Attachment(name="src/main[b].py", text="print(1)\n")
        await host.until(lambda: "▤ src/main[b].py · 9 B · counting…" in host.screen_text)
        host.prompt.counted(added.id, 1)
        await host.until(lambda: "9 B · 1 token" in host.screen_text)
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert (host.sent[0].text, host.sent[0].attachments) == ("see", (added.attachment,))


async def test_a_file_that_is_no_text_is_refused_inline(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\0\0\0")
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"@mod")
        await host.until(lambda: host.completion.is_open)
        await pilot.press("enter")
        await host.until(lambda: host.status)
        assert host.status == "✗ model.gguf is not a text file. Only text can be attached."
        assert host.chips.chips == ()
        assert host.prompt.text == "@model.gguf"


async def test_a_file_named_in_a_message_goes_with_it_and_a_name_stays_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("is @a.py right? @someone me@a.py")
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        message = host.sent[0]
        assert message.text == "is @a.py right? @someone me@a.py"
        assert message.attachments == (Attachment(name="a.py", text="a"),)
        (tmp_path / "a.py").write_text("b")
        host.prompt.set_text(message.text, message.attachments)
        await pilot.press("enter")
        await host.until(lambda: len(host.sent) == 2)
        assert host.sent[1].attachments == (Attachment(name="a.py", text="b"),)  # as it is now, and once


async def test_a_message_that_names_a_pipe_is_kept_and_sent_by_the_second_enter(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("read @pipe")
        await pilot.press("escape", "enter")
        await host.until(lambda: host.status.startswith("✗ pipe is a pipe."))
        assert host.prompt.text == "read @pipe"
        assert host.sent == []
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert host.sent[0].attachments == ()


async def test_typing_while_files_are_read_keeps_the_message(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("see @a now")
        host.editor._offer("enter")
        host.prompt.insert("!")  # before the file has been read
        await host.workers.wait_for_complete()
        await pilot.pause()
        assert host.prompt.text == "see @a now!"
        assert host.sent == []


async def test_the_list_closes_without_a_match_and_follows_what_is_typed(tmp_path: Path) -> None:
    (tmp_path / "one.txt").touch()
    (tmp_path / "two.txt").touch()
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"@t")
        await host.until(lambda: host.completion.is_open and host.completion.first.label == "two.txt")
        await pilot.press("z")
        await host.until(lambda: not host.completion.is_open)
        await pilot.press("backspace", "backspace", "o")
        await host.until(lambda: host.completion.is_open and host.completion.first.label == "one.txt")
        await pilot.press("space")
        await host.until(lambda: not host.completion.is_open)
        assert host.prompt.text == "@o "


async def test_a_long_list_scrolls_and_stays_on_a_small_screen(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"file{number:02}").touch()
    async with running(tmp_path, (40, 9)) as (host, pilot):
        await pilot.press("@")
        await host.until(lambda: host.completion.is_open)
        await pilot.press("up")
        chosen = host.completion.chosen
        assert chosen is not None
        assert chosen.label == "file29"
        await pilot.pause()
        assert "› file29" in host.screen_text
        assert host.screen.region.contains_region(host.completion.region)
        assert "30 choices" in host.screen_text


async def test_one_file_after_the_other_is_chosen_at_the_same_place(tmp_path: Path) -> None:
    for name in ("one.md", "two.md"):
        (tmp_path / name).write_text(name)
    async with running(tmp_path) as (host, pilot):
        for name in ("one", "two"):
            await pilot.press("@", *name)
            await host.until(lambda: host.completion.is_open)
            await pilot.press("tab")
            await host.until(lambda: host.prompt.text == "")
        assert [chip.attachment.name for chip in host.chips.chips] == ["one.md", "two.md"]
        assert host.editor.has_focus


async def test_what_is_said_of_a_chip_is_about_that_chip(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("one")
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"@one", "tab")
        await host.until(lambda: host.chips.chips)
        host.post_message(events.Paste("line\n" * 500))
        await host.until(lambda: len(host.chips.chips) == 2)
        await pilot.press("tab")
        await host.until(lambda: "Enter puts it into the text" in host.status)
        await pilot.press("left")
        await host.until(lambda: "Enter" not in host.status and "Backspace removes it" in host.status)
        await pilot.press("right")
        await host.until(lambda: "Enter puts it into the text" in host.status)
        await pilot.press("backspace")
        await host.until(lambda: "Enter" not in host.status and "Backspace removes it" in host.status)
