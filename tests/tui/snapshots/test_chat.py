"""The chat screen, as it looks."""

from localinfer.history.store import History
from localinfer.types import Prefilled, Queued, Text
from tests.tui.snapshots import SIZES, check, stage, talks, until
from tests.tui.snapshots.replies import decode, done, full, idle, prefill
from tui.screens.choose import ChooseScreen

QUEUED = Queued(prompt_tokens=2310, ahead=0, at_ns=0)
READING = Prefilled(prompt_tokens=2310, cached_tokens=1024, done_tokens=1600, admitted_ns=0, started_ns=0, at_ns=0)


async def test_empty() -> None:
    engine = stage.engine()
    with stage.fixed(idle(engine)):
        async with stage.opened(engine) as (_, pilot):
            await check("chat-empty", pilot, "Ask anything.", "qwen3.5-4b", "RTX 4060", "F2 Models")


async def test_a_rich_conversation() -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            id = talks.rich(history, times)
        async with stage.opened(engine, id) as (app, pilot):
            await check("chat-end", pilot, "A larger context would:", "✗ The worker died", "stopped")
            app.chat.action_scroll_home()
            await check("chat-start", pilot, "What is a token?", "left out; the model sees this summary", "notes.md")
            app.chat.transcript.select(app.chat.talk.path[3].id)
            await check("chat-reply", pilot, "2/3", "thought for 4.2 s · 310 tokens", "プリフィル", "📦")


async def test_the_list_is_open() -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times)
            id = talks.short(history, times)
        async with stage.opened(engine, id) as (_, pilot):
            await pilot.press("f3")
            await check("chat-list", pilot, "Pinned", "House rules", "Today", "Yesterday", "東京の天気", "[/b] markup")


async def test_a_prompt_is_being_read() -> None:
    engine = stage.engine([QUEUED, READING])
    with stage.fixed(prefill(engine)):
        async with stage.opened(engine) as (_, pilot):
            await pilot.press(*"Why?", "enter")
            await check("chat-prefill", pilot, "reading the prompt · 1,600 of 2,310 tokens", "Why?")


async def test_a_reply_is_being_written() -> None:
    said = "Decode reads every weight for **one** token.\n\n```python\nfor token in reply:\n    print(token"
    engine = stage.engine([QUEUED, READING, Text(text=said, tokens=24, at_ns=0)])
    with stage.fixed(decode(engine)):
        async with stage.opened(engine) as (_, pilot):
            await pilot.press(*"Why?", "enter")
            await check("chat-decode", pilot, "Decode reads every weight", "for token in reply", "94 tok/s")


async def test_commands_are_completed() -> None:
    engine = stage.engine()
    with stage.fixed(idle(engine)):
        async with stage.opened(engine) as (_, pilot):
            await pilot.press("slash")
            await check("chat-commands", pilot, "/model NAME", "/system TEXT")
            await pilot.press("e")
            await check("chat-commands-e", pilot, "/export", "/edit")


async def test_a_conversation_no_longer_fits() -> None:
    engine = stage.engine([Queued(prompt_tokens=2000, ahead=0, at_ns=0)], context=2048)
    engine.characters = 1
    with stage.fixed(full(engine)) as times:
        with History() as history:
            id = talks.rich(history, times)
        async with stage.opened(engine, id) as (app, pilot):
            await pilot.press(*"Go on", "enter")
            await check("chat-full", pilot, "This conversation no longer fits", "Leave out the", "tokens of context")
            assert isinstance(app.screen, ChooseScreen)


async def test_the_column_in_a_narrow_terminal() -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            id = talks.short(history, times)
        async with stage.opened(engine, id) as (_, pilot):
            await pilot.press("slash", *"stats", "enter", "down", "down", "down")
            await check("chat-figures", pilot, "▸▒ cached 1,024", "instead of computed", sizes=SIZES[:1])


async def test_the_figures_of_a_reply() -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            id = talks.short(history, times)
        async with stage.opened(engine, id) as (app, pilot):
            await pilot.resize_terminal(*SIZES[1])  # in a narrow terminal it is the column that is shown
            assert await until(pilot, lambda: app.chat.has_class("-wide"))
            await pilot.press("slash", *"stats", "enter")
            await check("stats", pilot, "The figures of the last reply", "TTFT 0.21 s", "1,386 tok/s", "ITL p99")
