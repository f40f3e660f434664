"""Text selected with the mouse: what is copied, what is marked, and that it stays while text comes."""

from textual.events import Click, MouseUp
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import SELECT_ALL, Selection

from tests.tui.transcript.stage import Stage, growing, shown, talk, until


async def _drag(pilot: Pilot[None], app: Stage, start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(app.transcript, offset=start)
    await pilot.hover(app.transcript, offset=end)
    await pilot._post_mouse_events([MouseUp, Click], widget=app.transcript, offset=end, button=1)
    await pilot.pause()


def _row(app: Stage, text: str) -> int:
    return next(row for row, shown in enumerate(app.rows()) if text in shown)


async def test_a_drag_selects_the_drawn_text_without_gutter_and_padding() -> None:
    app = Stage([shown(1, "one two three\n  four five\nsix")])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await _drag(pilot, app, (2 + 4, 1), (2 + 1, 3))
        assert app.screen.get_selected_text() == "two three\n  four five\nsi"
        assert app.transcript.selected_turn is None


async def test_a_drag_from_the_gutter_takes_whole_lines() -> None:
    app = Stage([shown(1, "one two three\nfour\nfive")])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await _drag(pilot, app, (0, 1), (40, 2))
        assert app.screen.get_selected_text() == "one two three\nfour"


async def test_wide_characters_are_selected_whole() -> None:
    app = Stage([shown(1, "你好，世界 and 中文")])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await _drag(pilot, app, (2 + 2, 1), (2 + 6, 1))
        assert app.screen.get_selected_text() == "好，世"
        painted = app.transcript.render_line(1)
        assert painted.cell_length == app.transcript.scrollable_size.width


async def test_selected_text_is_marked() -> None:
    app = Stage([shown(1, "one two three")])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await _drag(pilot, app, (2 + 4, 1), (2 + 6, 1))
        colour = app.screen.get_component_rich_style("screen--selection").bgcolor
        marked = [
            segment.text
            for segment in app.transcript.render_line(1)
            if segment.style and segment.style.bgcolor == colour
        ]
        assert marked == ["two"]


async def test_a_selection_stays_while_text_comes() -> None:
    app = Stage(talk(4, lines=2))
    async with app.run_test(size=(120, 30)) as pilot:
        app.transcript.begin_reply(growing(5))
        app.transcript.think("because\n" * 3)
        app.transcript.say("the answer begins ")
        await until(pilot, lambda: "the answer begins" in app.text())
        row = _row(app, "the answer")
        await _drag(pilot, app, (0, row), (2 + 9, row))
        assert app.screen.get_selected_text() == "the answer"
        for number in range(60):
            app.transcript.say(f"{number}\n\n")
        await until(pilot, lambda: "59" in app.text())
        assert app.screen.get_selected_text() == "the answer"
        await pilot.press("home")
        await pilot.pause()
        assert app.screen.get_selected_text() == "the answer"


async def test_a_selection_across_turns_is_in_their_order() -> None:
    app = Stage([shown(1, "question"), shown(2, "answer", reply=True)])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        head = app.rows()[3].removeprefix("▌ ")
        await _drag(pilot, app, (30, 4), (0, 1))
        assert app.screen.get_selected_text() == f"question\n\n{head}\nanswer"


async def test_selected_code_is_the_code_that_was_written() -> None:
    code = (
        "def f():\n    return 'a long line that has to be wrapped where the screen is narrow, more than once at least'"
    )
    app = Stage([shown(1, "q"), shown(2, f"See:\n\n```python\n{code}\n```\n\nDone.", reply=True)])
    async with app.run_test(size=(44, 30)) as pilot:
        await pilot.pause()
        await _drag(pilot, app, (0, _row(app, "def f")), (42, _row(app, "least")))
        assert app.screen.get_selected_text() == code
        await _drag(pilot, app, (0, _row(app, "return")), (42, _row(app, "least")))
        assert app.screen.get_selected_text() == code.split("\n")[1]


async def test_a_double_click_selects_what_was_said_in_a_turn() -> None:
    app = Stage([shown(1, "one\ntwo"), shown(2, "three", reply=True)])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await pilot.double_click(app.transcript, offset=(3, 2))
        await pilot.pause()
        assert app.screen.get_selected_text() == "one\ntwo"


async def test_other_turns_and_another_width_end_a_selection() -> None:
    app = Stage([shown(1, "one two three")])
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        await _drag(pilot, app, (2, 1), (6, 1))
        assert app.screen.get_selected_text()
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        assert app.screen.get_selected_text() is None
        await _drag(pilot, app, (2, 1), (6, 1))
        app.transcript.show([shown(1, "four")])
        assert app.screen.get_selected_text() is None


async def test_everything_selected_is_everything_said() -> None:
    app = Stage(talk(3, lines=1))
    async with app.run_test(size=(200, 30)) as pilot:
        await pilot.pause()
        everything = app.transcript.get_selection(SELECT_ALL)
        assert everything is not None
        assert [f"t{turn}l0" in everything[0] for turn in (1, 2, 3)] == [True] * 3
        assert app.transcript.get_selection(Selection(Offset(0, 0), Offset(0, 0))) == ("", "\n")
