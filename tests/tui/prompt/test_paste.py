"""Pastes: one insertion of any size that never sends."""

import time
from pathlib import Path

from textual import events

from localinfer.history.values import Attachment
from tests.tui.prompt.host import Host, running
from tui.widgets.prompt import Draft, Prompt


def paste(host: Host, text: str) -> None:
    host.post_message(events.Paste(text))


async def test_a_paste_of_lines_is_inserted_as_one_and_undone_as_one(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"<>", "left")
        paste(host, "one\r\ntwo\rthree\x1b[2J\x00\x9b\n/help\n")
        await host.until(lambda: host.prompt.text == "<one\ntwo\nthree␛[2J␀�\n/help\n>")
        assert host.posted == []
        await pilot.press("ctrl+z")
        assert host.prompt.text == "<>"


async def test_a_paste_replaces_what_is_selected(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"ab", "shift+left")
        paste(host, "x")
        await host.until(lambda: host.prompt.text == "ax")


async def test_a_large_paste_becomes_an_attachment_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        text = "\n".join(f"line {number}" for number in range(1_234))
        paste(host, text)
        await host.until(lambda: host.posted)
        added = host.posted[0]
        assert isinstance(added, Prompt.AttachmentAdded)
        assert added.attachment == Attachment(name="pasted text", text=text)
        await pilot.pause()
        assert "▤ pasted text · 1,234 lines · counting…" in host.screen_text
        host.prompt.counted(added.id, 3_100)
        paste(host, "x" * 1_000_000)
        began = time.monotonic()
        await pilot.press("y")
        assert time.monotonic() - began < 2
        await host.until(lambda: "1,234 lines · 3,100 tokens" in host.screen_text)
        assert "▤ pasted text 2 · 1 line · counting…" in host.screen_text
        assert host.prompt.text == "y"
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert [len(attachment.text) for attachment in host.sent[0].attachments] == [len(text), 1_000_000]
        assert host.chips.chips == ()


async def test_a_large_paste_can_be_put_into_the_text_or_taken_away(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"see: ")
        text = "\n".join(map(str, range(500)))
        paste(host, text)
        await host.until(lambda: host.chips.chips)
        assert host.status == "pasted text: 500 lines attached · Tab, then Enter puts them into the text"
        await pilot.press("tab")
        assert host.chips.has_focus
        await host.until(lambda: "› pasted text · 500 lines" in host.screen_text)
        assert host.status.startswith("Backspace removes it")
        await pilot.press("enter")
        await host.until(lambda: host.prompt.text == f"see: {text}")
        assert host.chips.chips == ()
        assert host.editor.has_focus
        host.prompt.draft = Draft(attachments=(Attachment(name="a", text=""), Attachment(name="b", text="")))
        await pilot.press("tab", "left", "backspace", "escape")
        assert [attachment.name for attachment in host.prompt.draft.attachments] == ["b"]
        await host.until(lambda: host.editor.has_focus)
        await pilot.press("backspace")  # at the very start of the text
        assert host.prompt.draft == Draft()


async def test_a_paste_while_the_chips_have_the_focus_goes_to_the_text(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.draft = Draft(attachments=(Attachment(name="a", text=""),))
        await pilot.press("tab")
        paste(host, "hello")
        await host.until(lambda: host.prompt.text == "hello" and host.editor.has_focus)


async def test_a_draft_can_be_kept_and_given_back(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"/mo", "escape")
        draft = Draft(text=host.prompt.text, attachments=(Attachment(name="a.txt", text="a"),))
        host.prompt.clear()
        assert host.prompt.draft == Draft()
        host.prompt.draft = draft
        assert host.prompt.draft == draft  # as it was typed: no slash is doubled
        await pilot.press("d")
        assert host.prompt.text == "/mod"
