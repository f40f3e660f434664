"""The list of conversations: what a person does with it, and that it stays cheap however long it is."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input

from localinfer.history.values import Conversation
from tui.widgets.conversation_rows import ConversationRows
from tui.widgets.conversations import PAGE, Conversations

NOW = datetime(2026, 3, 18, 15, 0)  # a Wednesday
HOSTILE = "[/b] [red]x[/red] \x1b]52;c;eA==\x07\nsecond\u202eline"


def conversation(id: int, title: str, *, hours: float = 0, pinned: bool = False, model: str = "") -> Conversation:
    at = (NOW - timedelta(hours=hours)).timestamp()
    return Conversation(id=id, title=title, created_s=at, changed_s=at, pinned=pinned, model=model)


FEW = [
    conversation(1, "pinned one", hours=500, pinned=True, model="SmolLM2"),
    conversation(2, "of today", hours=1, model="SmolLM2"),
    conversation(3, HOSTILE, hours=2, model=HOSTILE),
    conversation(4, "of yesterday", hours=20),
    conversation(5, "of monday", hours=50),
    conversation(6, "世界の天気を教えてください、そして明日の天気も", hours=24 * 30),
    conversation(7, "long ago", hours=24 * 365),
]


class Listing(App[None]):
    def __init__(self, given: Sequence[Conversation]) -> None:
        super().__init__()
        self.given = list(given)
        self.asked: list[tuple[int, int]] = []
        self.told: list[Message] = []

    def compose(self) -> ComposeResult:
        yield Conversations(self.source, now=lambda: NOW)

    def source(self, limit: int, offset: int) -> Sequence[Conversation]:
        self.asked.append((limit, offset))
        return self.given[offset : offset + limit]

    @on(Conversations.Wanted)
    @on(Conversations.NewRequested)
    @on(Conversations.SearchRequested)
    @on(Conversations.Failed)
    def _tell(self, message: Message) -> None:
        self.told.append(message)


async def ready(pilot: Pilot[None]) -> tuple[Conversations, ConversationRows]:
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    widget = pilot.app.query_one(Conversations)
    widget.focus()
    await pilot.pause()
    return widget, pilot.app.query_one(ConversationRows)


def drawn(rows: ConversationRows) -> list[str]:
    return [rows.render_line(y).text.rstrip() for y in range(rows.size.height)]


async def test_pinned_first_then_by_day() -> None:
    app = Listing(FEW)
    async with app.run_test(size=(80, 40)) as pilot:
        _, rows = await ready(pilot)
        lines = drawn(rows)
        assert lines[:6] == [" ★ Pinned", " pinned one", " SmolLM2 · 25 Feb", " Today", " of today", " SmolLM2 · 14:00"]
        headings = [line for line in lines if line in {" Yesterday", " This week", " February", " March 2025"}]
        assert headings == [" Yesterday", " This week", " February", " March 2025"]
        assert all(rows.render_line(y).cell_length == rows.size.width for y in range(rows.size.height))
        assert not any("\x1b" in line or "\x07" in line or "\u202e" in line for line in lines)
        assert any("[/b] [red]x[/red]" in line for line in lines)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["enter"], Conversations.Opened(1)),
        (["down", "enter"], Conversations.Opened(2)),
        (["end", "enter"], Conversations.Opened(7)),
        (["down", "p"], Conversations.Pinned(2, True)),
        (["p"], Conversations.Pinned(1, False)),
        (["delete"], Conversations.Deleted(1)),
        (["n"], Conversations.NewRequested()),
        (["slash"], Conversations.SearchRequested()),
        (["down", "x", "m"], Conversations.ExportRequested(2, "markdown")),
        (["down", "x", "j"], Conversations.ExportRequested(2, "json")),
    ],
)
async def test_each_key_says_what_is_wanted(keys: list[str], expected: Message) -> None:
    app = Listing(FEW)
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press(*keys)
        await pilot.pause()
        (told,) = app.told
        assert type(told) is type(expected)
        for name in ("id", "pinned", "format"):
            assert getattr(told, name, None) == getattr(expected, name, None)


async def test_renaming_in_place() -> None:
    app = Listing(FEW)
    async with app.run_test() as pilot:
        _, rows = await ready(pilot)
        await pilot.press("down", "r")
        box = app.query_one(Input)
        assert box.has_focus
        assert box.region.y == rows.region.y + (rows.cursor_line or 0)
        await pilot.press("!", "p", "enter")
        (told,) = app.told
        assert isinstance(told, Conversations.Renamed)
        assert (told.id, told.title) == (2, "of today!p")
        assert " of today!p" in drawn(rows)
        assert rows.has_focus
        await pilot.press("r", "x", "escape", "r", *["backspace"] * 20, "enter", "r", "enter")
        assert len(app.told) == 1, "left, emptied, unchanged: nothing to do"


async def test_a_deleted_one_comes_back_where_it_was() -> None:
    app = Listing(FEW)
    async with app.run_test(size=(80, 40)) as pilot:
        _, rows = await ready(pilot)
        before = drawn(rows)
        await pilot.press("down", "down", "delete")
        assert not any("[red]" in line for line in drawn(rows))
        assert "u takes it back" in str(app.query_one("#foot").render())
        await pilot.press("u", "u")
        await pilot.pause()
        assert drawn(rows) == before
        assert [(type(told), told.id) for told in app.told if isinstance(told, Conversations.Wanted)] == [
            (Conversations.Deleted, 3),
            (Conversations.Restored, 3),
        ]


async def test_another_key_leaves_an_export() -> None:
    app = Listing(FEW)
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("x", "escape", "m", "x", "enter")
        assert app.told == []


async def test_the_open_one_is_marked_and_a_changed_one_moves() -> None:
    app = Listing(FEW)
    async with app.run_test(size=(80, 40)) as pilot:
        widget, rows = await ready(pilot)
        widget.current = 4
        assert "▎of yesterday" in drawn(rows)
        await pilot.press("end")
        widget.show(conversation(4, "of yesterday", hours=0))
        assert drawn(rows)[4] == "▎of yesterday"
        assert widget.highlighted == FEW[-1], "the cursor stays where the person put it"
        widget.show(conversation(9, "new"))
        assert len(rows.conversations) == 8
        app.given = app.given[:2]
        widget.refresh_list()
        await ready(pilot)
        assert len(rows.conversations) == 2
        assert widget.highlighted == FEW[1]


async def test_nothing_yet() -> None:
    app = Listing([])
    async with app.run_test() as pilot:
        _, rows = await ready(pilot)
        assert "No conversations yet" in drawn(rows)[1]
        await pilot.press("enter", "p", "delete", "u", "r", "x", "down", "end")
        assert app.told == []


async def test_a_list_that_cannot_be_read_is_told() -> None:
    class Broken(Listing):
        def source(self, limit: int, offset: int) -> Sequence[Conversation]:
            raise OSError("gone")

    app = Broken([])
    async with app.run_test() as pilot:
        await ready(pilot)
        assert isinstance(app.told[0], Conversations.Failed)


async def test_a_hundred_thousand_are_read_page_by_page_as_one_goes_down() -> None:
    app = Listing([conversation(id, f"title {id}", hours=id / 7, model="m") for id in range(100_000)])
    async with app.run_test(size=(80, 24)) as pilot:
        widget, rows = await ready(pilot)
        assert app.asked == [(PAGE, 0)]
        for _ in range(3):
            await pilot.press("end")
            await ready(pilot)
        assert app.asked == [(PAGE, offset * PAGE) for offset in range(4)]
        assert widget.highlighted == app.given[3 * PAGE - 1]
        begun = time.perf_counter()
        rows.put(app.given)
        for _ in range(50):
            rows.action_page(1)
            drawn(rows)
        assert time.perf_counter() - begun < 2, "made for 100,000; usually a tenth of this"


async def test_a_click_opens() -> None:
    app = Listing(FEW)
    async with app.run_test(size=(80, 40)) as pilot:
        await ready(pilot)
        await pilot.click(ConversationRows, offset=(3, 4))
        await pilot.click(ConversationRows, offset=(3, 3))
        assert [told.id for told in app.told if isinstance(told, Conversations.Opened)] == [2]


async def test_the_bar_is_where_the_list_is_whatever_the_size_was() -> None:
    app = Listing([conversation(id, f"title {id}", hours=30 * id) for id in range(8)])
    async with app.run_test(size=(80, 12)) as pilot:
        _, rows = await ready(pilot)
        await pilot.press("end")
        for height in (40, 20, 12, 30, 14):
            await pilot.resize_terminal(80, height)
            await pilot.pause()
            assert rows.vertical_scrollbar.position == rows.scroll_y
            assert rows.cursor_line is not None
            assert 0 <= rows.cursor_line < rows.size.height
