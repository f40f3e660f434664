"""Where the view stands: at the end, or at the words that the person scrolled to, whatever comes and however wide."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.events import MouseScrollUp
from textual.strip import Strip

from tests.tui.transcript.stage import Stage, growing, shown, talk, until

SIZES = [(80, 24), (120, 36), (200, 50)]


@pytest.mark.parametrize("size", SIZES)
async def test_opens_at_the_end(size: tuple[int, int]) -> None:
    app = Stage(talk(40))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert "t40l5 alpha" in app.text()
        assert app.transcript.following


async def test_home_and_end_reach_the_first_and_the_last_line() -> None:
    app = Stage(talk(300))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("home")
        await pilot.pause()
        assert app.rows()[0].startswith("▎ you")
        assert "t1l0" in app.rows()[1]
        await pilot.press("end")
        await pilot.pause()
        assert "t300l5" in app.text()


async def test_pages_leave_no_line_out_and_come_back() -> None:
    app = Stage(talk(12))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.scroll_start()
        await pilot.pause()
        seen = [app.rows()]
        while "t12l5" not in app.text():
            app.transcript.scroll_page(1)
            await pilot.pause()
            assert app.rows()[0] == seen[-1][-1] or "t12l5" in app.text()
            seen.append(app.rows())
        everything = "\n".join(row for rows in seen for row in rows)
        assert all(f"t{turn}l{line} " in everything for turn in range(1, 13) for line in range(6))
        for _ in seen:
            app.transcript.scroll_page(-1)
        await pilot.pause()
        assert app.rows() == seen[0]


async def test_the_wheel_moves_by_the_same_rows_through_unmeasured_turns() -> None:
    texts = (
        "a-word-of-thirty-characters-in-a " * 20,
        "one\n\n\n\n\n" * 10,
        "中" * 400,
    )  # guessed too low, too high, right
    app = Stage([shown(id, f"{id}\n\n{texts[id % 3]}", reply=id % 3 == 1) for id in range(1, 60)])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        for _ in range(14):
            before = app.rows()
            await pilot._post_mouse_events([MouseScrollUp], widget=app.transcript, offset=(5, 5))
            await pilot.pause()
            assert app.rows()[round(app.scroll_sensitivity_y) :] == before[: -round(app.scroll_sensitivity_y)]


async def test_follows_the_end_while_text_comes() -> None:
    app = Stage(talk(10))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(11))
        for line in range(60):
            app.transcript.say(f"new{line} words\n\n")
        await until(pilot, lambda: "new59" in app.text())
        assert app.transcript.following


async def test_scrolled_up_the_screen_stays_as_it_is_while_text_comes() -> None:
    app = Stage(talk(10))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(11))
        app.transcript.say("first\n\n")
        await until(pilot, lambda: "first" in app.text())
        await pilot.press("pageup")
        await pilot.pause()
        before = app.rows()
        for line in range(30):
            app.transcript.say(f"new{line}\n\n")
        await until(pilot, lambda: "new lines · End" in app.text())
        await until(pilot, lambda: app.transcript._book.drawn(10).rows > 50)
        assert app.rows()[:-1] == before[:-1]
        await pilot.press("end")
        await pilot.pause()
        assert "new29" in app.text()
        assert "· End" not in app.text()


async def test_the_mark_counts_the_lines_that_came() -> None:
    app = Stage(talk(10))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("pageup")
        app.transcript.append(shown(11, "one\ntwo"))
        await pilot.pause()
        assert "↓ 4 new lines · End" in app.rows()[-1]  # head, two lines, a gap


@pytest.mark.parametrize("top", [2, 9])
async def test_resizing_keeps_the_words_on_top_and_comes_back_exactly(top: int) -> None:
    words = " ".join(f"w{number}" for number in range(500))
    app = Stage([shown(1, words), shown(2, f"{words}\n\n{words}", reply=True), shown(3, words)])
    async with app.run_test(size=(140, 20)) as pilot:
        app.transcript.scroll_start()
        app.transcript.scroll_rows(top + 20)
        await pilot.pause()
        before = app.rows()
        first = before[0].split()[1]
        for width in (90, 40, 61, 40):
            await pilot.resize_terminal(width, 20)
            await pilot.pause()
            assert first in app.rows()[0].split()
        await pilot.resize_terminal(140, 20)
        await pilot.pause()
        assert app.rows() == before


async def test_what_opens_above_the_view_moves_nothing_in_it() -> None:
    reply = shown(2, "".join(f"line {number}\n\n" for number in range(60)), reply=True, reasoning="because\n" * 15)
    app = Stage([shown(1, "q"), reply])
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("pageup")
        await pilot.pause()
        before = app.rows()
        height = app.transcript.virtual_size.height
        await pilot.press("enter")
        await pilot.pause()
        assert app.transcript.virtual_size.height == height + 16
        assert app.rows() == before


async def test_resizing_while_text_comes_loses_nothing_and_keeps_the_words_on_top() -> None:
    app = Stage(talk(20))
    async with app.run_test(size=(200, 30)) as pilot:
        app.transcript.begin_reply(growing(21))
        await pilot.press("pageup", "up", "up", "up")
        await pilot.pause()
        before = app.rows()
        for line, width in enumerate([200, 120, 40, 40, 77, 200] * 4):
            app.transcript.say(f"word{line} ")
            await pilot.resize_terminal(width, 30)
        await until(pilot, lambda: "word23" in app.transcript._book.sheet(20).source)
        await pilot.pause()
        assert app.rows()[:-1] == before[:-1]
        await pilot.press("end")
        await until(pilot, lambda: "word23" in app.text())
        assert all(f"word{line}" in app.text() for line in range(24))


async def test_another_height_keeps_the_top_or_the_end() -> None:
    app = Stage(talk(20))
    async with app.run_test(size=(80, 30)) as pilot:
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert "t20l5" in app.text()
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        before = app.rows()
        await pilot.resize_terminal(80, 30)
        await pilot.pause()
        assert app.rows()[:12] == before


async def test_a_reload_keeps_the_position_where_asked() -> None:
    app = Stage(talk(20))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("pageup", "pageup", "pageup")
        await pilot.pause()
        before = app.rows()
        app.transcript.show(talk(26), keep_position=True)
        await pilot.pause()
        assert app.rows() == before
        app.transcript.show(talk(26))
        await pilot.pause()
        assert "t26l5" in app.text()


async def test_nothing_to_show_shows_the_placeholder() -> None:
    app = Stage(placeholder="Ask something")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.rows()[11].strip() == "Ask something"
        app.transcript.append(shown(1, "hello"))
        await pilot.pause()
        assert "Ask something" not in app.text()
        assert app.rows()[1] == "▎ hello"


async def test_another_theme_is_painted_at_once() -> None:
    app = Stage(talk(2, lines=1))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        before, text = app.transcript.render_line(1), app.text()
        app.theme = "textual-light"
        await pilot.pause()
        assert app.text() == text
        colours = [[segment.style.bgcolor for segment in row if segment.style] for row in (before, _painted(app, 1))]
        assert colours[0][0] != colours[1][0]


def _painted(app: Stage, row: int) -> Strip:
    return app.screen._compositor.render_strips()[row]


async def test_what_changes_while_it_is_hidden_is_there_when_it_is_shown_again() -> None:
    app = Stage(talk(3, lines=1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(4))
        await pilot.pause()
        app.transcript.display = False
        await pilot.pause()
        app.transcript.say("while hidden")
        app.transcript.update(shown(1, "changed while hidden"))
        app.transcript.append(shown(5, "came while hidden"))
        await pilot.resize_terminal(100, 30)
        app.transcript.display = True
        await until(pilot, lambda: "▎ while hidden" in app.text())
        assert "changed while hidden" in app.text()
        assert "came while hidden" in app.text()


async def test_what_changes_while_there_is_no_room_is_there_when_there_is() -> None:
    app = Stage(talk(2, lines=1))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.transcript.styles.height = 0
        await pilot.pause()
        app.transcript.update(shown(1, "changed\nmeanwhile"))
        app.transcript.append(shown(3, "came meanwhile"))
        app.transcript.styles.height = "1fr"
        await until(pilot, lambda: "came meanwhile" in app.text())
        assert "changed\n▎ meanwhile" in app.text()


async def test_a_reply_grows_though_another_turn_came_after_it() -> None:
    app = Stage(talk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.begin_reply(growing(2))
        app.transcript.append(shown(3, "and this"))
        app.transcript.say("still going")
        await until(pilot, lambda: "still going" in app.text())
        rows = app.rows()
        assert rows.index("▎ still going") < rows.index("▎ and this")


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_what_is_painted_is_what_is_there(data: st.DataObject) -> None:
    """Only changed rows are painted again: after anything whatever, the screen is as if painted anew."""
    app = Stage(talk(12, lines=3))
    steps = st.sampled_from(
        ["up", "down", "pageup", "pagedown", "end", "home", "k", "j", "enter", "say", "think", "wide"]
    )
    async with app.run_test(size=(70, 20)) as pilot:
        app.transcript.begin_reply(growing(13))
        for step in data.draw(st.lists(steps, min_size=8, max_size=12)):
            if step == "say":
                app.transcript.say("more **words** to say\n\nand on ")
                app.transcript._draw_growth()
            elif step == "think":
                app.transcript.think("so it is\n")
                app.transcript._draw_growth()
            elif step == "wide":
                await pilot.resize_terminal(data.draw(st.integers(20, 120)), 20)
            else:
                await pilot.press(step)
            await pilot.pause()
            fresh = [
                app.transcript.render_line(row).text.rstrip() for row in range(app.transcript.scrollable_size.height)
            ]
            assert app.rows() == fresh
