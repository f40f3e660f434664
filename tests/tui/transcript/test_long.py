"""A very long turn is drawn a bit at a time, and one that is too long as it was written: keys never wait for it."""

import time

import pytest

from tests.tui.transcript.stage import Stage, growing, shown, until
from tui.text.markdown import Look, MarkdownText, warm
from tui.widgets.transcript import words
from tui.widgets.transcript.sheet import MOST_MARKDOWN, Part, Sheet

CODE = "```python\n" + "".join(f"x = {{'a': [{line}]}}  # c\n" for line in range(3_000)) + "```\n\nThe **end**.\n"
LIST = "".join(f"- item **{item}**\n" for item in range(3_000))
LONGEST_S = 0.25  # of one draw; without a limit these take more than half a second


@pytest.mark.parametrize("source", [CODE, LIST], ids=["code", "list"])
def test_pieces_of_the_work_come_to_the_same_lines(source: str) -> None:
    warm()
    at_once = [strip.text for strip in MarkdownText(source).lines(60, Look())]
    text = MarkdownText(source)
    calls, longest_s = 0, 0.0
    while not calls or not text.complete:
        start_s = time.thread_time()
        lines = text.lines(60, Look(), 0.01)
        longest_s = max(longest_s, time.thread_time() - start_s)
        calls += 1
        assert "".join(strip.text for strip in lines[-40:]).strip()
    assert calls > 3
    assert longest_s < LONGEST_S
    assert [strip.text for strip in lines] == at_once
    assert text.lines(60, Look(), 0.01) is lines


def test_what_is_usual_is_drawn_at_once() -> None:
    text = MarkdownText("**bold** text\n\n" * 400)
    assert "**" not in "".join(strip.text for strip in text.lines(60, Look(), 0.0))
    assert text.complete


async def test_the_end_of_a_long_reply_is_seen_at_once_and_then_as_markdown() -> None:
    warm()
    app = Stage([shown(1, "go"), shown(2, CODE, reply=True)])
    async with app.run_test(size=(80, 24)) as pilot:
        book = app.transcript._book
        assert any("The" in row and "end" in row for row in app.rows())
        await until(pilot, lambda: book.unfinished() is None)
        assert any("The end." in row for row in app.rows())
        await pilot.resize_terminal(50, 20)
        await until(pilot, lambda: book.unfinished() is None and "The end." in app.text())
        assert book.layout.total == sum(book.drawn(turn).rows for turn in range(2))


async def test_the_words_on_top_stay_there_while_it_is_drawn_anew() -> None:
    warm()
    app = Stage([shown(1, "go"), shown(2, CODE, reply=True)])
    async with app.run_test(size=(80, 24)) as pilot:
        book = app.transcript._book
        await until(pilot, lambda: book.unfinished() is None)
        app.transcript.scroll_rows(-1_000)
        await pilot.pause()
        top = app.rows()[0]
        assert "x = {'a': [" in top
        await pilot.resize_terminal(60, 24)
        await until(pilot, lambda: book.unfinished() is None)
        assert app.rows()[0] == top


async def test_a_reply_that_comes_faster_than_it_is_drawn() -> None:
    warm()
    app = Stage([shown(1, "go")])
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.say(CODE)
        await until(pilot, lambda: app.transcript._book.sheet(1).unfinished)
        app.transcript.end_reply(shown(2, CODE, reply=True))
        await until(pilot, lambda: app.transcript._book.unfinished() is None and "The end." in app.text())


async def test_megabytes_are_shown_as_they_were_written() -> None:
    source = "Some **words** of many.\n\n" * 240_000
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        start_s = time.thread_time()
        app.transcript.show([shown(1, "go"), shown(2, source, reply=True), shown(3, source)])
        app.rows()
        app.transcript.scroll_start()
        await pilot.pause()
        assert words.HUGE in app.text()
        assert "Some **words** of many." in app.text()
        await pilot.resize_terminal(60, 20)
        app.rows()
        assert time.thread_time() - start_s < 2.0
        assert app.transcript._book.unfinished() is None


async def test_a_growing_reply_becomes_too_long_for_markdown() -> None:
    app = Stage([shown(1, "go")])
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.say("```\ncode\n```\n\n" + "**a** b\n\n" * (MOST_MARKDOWN // 9 - 10))
        await until(pilot, lambda: bool(app.transcript._book.sheet(1).code()))
        app.transcript.say("**c** d\n\n" * 20)
        await until(pilot, lambda: "**c** d" in app.text())
        sheet: Sheet = app.transcript._book.sheet(1)
        await until(pilot, lambda: not sheet.unfinished)
        assert sheet.drawn is not None
        assert sheet.drawn.parts[Part.BODY][0].text == words.HUGE
        assert not sheet.code()
