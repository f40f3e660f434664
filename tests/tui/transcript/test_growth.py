"""A reply that grows: what it waits for, its thinking, its text, and how it ends."""

import pytest

from tests.tui.transcript.stage import Stage, growing, shown, talk, until
from tui.widgets.transcript import ShownTurn


async def test_a_reply_says_what_it_waits_for_until_text_comes() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.status("loading the model 43 %")
        await until(pilot, lambda: "loading the model 43 %" in app.text())
        app.transcript.status("reading the prompt 1,200 of 3,000 tokens")
        await until(pilot, lambda: "reading the prompt" in app.text())
        assert "43 %" not in app.text()
        app.transcript.say("Hello")
        await until(pilot, lambda: "Hello" in app.text())
        assert "reading the prompt" not in app.text()


async def test_thinking_is_open_while_it_streams_and_folds_when_the_answer_begins() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        for _ in range(10):
            app.transcript.think("because of this\n", tokens=3)
        await until(pilot, lambda: "▾ thinking 0." in app.text())
        assert "30 tokens" in app.text()
        assert app.text().count("because of this") == 10
        app.transcript.say("So it is.")
        await until(pilot, lambda: "So it is." in app.text())
        assert "▸ thought for 0." in app.text()
        assert "because of this" not in app.text()
        await pilot.press("j", "enter")
        await pilot.pause()
        assert "▾ thought for 0." in app.text()
        assert app.text().count("because of this") == 10
        await pilot.press("enter")
        await pilot.pause()
        assert "because of this" not in app.text()


async def test_thinking_that_is_being_read_stays_open() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.think("".join(f"thought {number}\n" for number in range(80)))
        await until(pilot, lambda: "thought 79" in app.text())
        await pilot.press("pageup")
        await pilot.pause()
        before = app.rows()
        app.transcript.say("So it is.")
        await until(pilot, lambda: "· End" in app.text())
        assert app.rows()[:-1] == before[:-1]


async def test_the_figures_of_thinking_are_those_of_the_turn_in_the_end() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.think("hm")
        app.transcript.say("yes")
        app.transcript.end_reply(
            shown(
                2,
                "yes",
                reply=True,
                reasoning="hm",
                thought_s=4.2,
                thought_tokens=1310,
                figures="TTFT 0.2 s · 90 tok/s",
            )
        )
        await pilot.pause()
        rows = app.rows()
        answer = rows.index("▎ yes")
        assert rows[answer - 1] == "▎ ▸ thought for 4.2 s · 1,310 tokens"
        assert rows[answer + 1] == "▎ TTFT 0.2 s · 90 tok/s"


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (shown(2, "half a", reply=True, state="stopped"), "■ stopped · kept as far as it came"),
        (
            shown(2, "half a", reply=True, state="cut", note="at the end of the context"),
            "✂ cut at the end of the context",
        ),
        (shown(2, "half a", reply=True, state="cut"), "✂ cut at the limit"),
        (
            shown(2, "half a", reply=True, state="failed", note="The model stopped working."),
            "✗ The model stopped working.",
        ),
        (shown(2, "", reply=True, state="cut", reasoning="hm"), "before the answer began"),
        (shown(2, "", reply=True), "the model answered nothing"),
    ],
)
async def test_how_a_reply_ended_is_said(end: ShownTurn, line: str) -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.say("half a")
        await until(pilot, lambda: "half a" in app.text())
        app.transcript.end_reply(end)
        await pilot.pause()
        assert line in app.text()
        assert ("half a" in app.text()) == bool(end.turn.content)


async def test_what_is_kept_counts_where_it_differs_from_what_streamed() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.say("one two")
        await until(pilot, lambda: "one two" in app.text())
        app.transcript.end_reply(shown(2, "one two three", reply=True))
        await pilot.pause()
        assert "one two three" in app.text()


async def test_a_changed_turn_is_drawn_anew_and_one_that_is_not_here_is_left_alone() -> None:
    app = Stage(talk(2))
    async with app.run_test(size=(80, 40)) as pilot:
        app.transcript.update(shown(1, "other words", branch=2, branches=3))
        app.transcript.update(shown(99, "not here"))
        await pilot.pause()
        assert "other words" in app.text()
        assert "‹ 2/3 ›" in app.text()
        assert "not here" not in app.text()


async def test_many_pieces_are_drawn_in_few_frames() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        frames = 0
        draw = app.transcript._pace._draw

        def count() -> None:
            nonlocal frames
            frames += 1
            draw()

        app.transcript._pace._draw = count
        for piece in range(500):
            app.transcript.say(f"{piece} ")
        await until(pilot, lambda: "499" in app.text())
        assert frames <= 2


async def test_without_a_growing_reply_pieces_change_nothing() -> None:
    app = Stage(talk(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        before = app.rows()
        app.transcript.say("lost")
        app.transcript.think("lost")
        app.transcript.status("lost")
        app.transcript.end_reply(shown(99, "lost", reply=True))
        await pilot.pause()
        assert app.rows() == before


async def test_what_has_grown_since_the_last_frame_is_not_painted_by_halves() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        await pilot.pause()
        before = app.rows()
        app.transcript.say("one\n\ntwo")
        app.transcript.refresh()
        assert app.rows() == before
        await until(pilot, lambda: "two" in app.text())
