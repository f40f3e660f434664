"""What keys and clicks do with turns, and the messages they send."""

from tests.tui.transcript.stage import Stage, growing, shown, talk
from tui.widgets.transcript import Transcript

CODE = "Two blocks:\n\n```python\nprint(1)\n```\n\nand\n\n```\nplain\ntext\n```\n"


async def test_turns_are_walked_and_marked_in_the_gutter() -> None:
    app = Stage(talk(10, lines=3))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        selected = app.transcript.selected_turn
        assert selected is not None
        assert selected.turn.id == 10
        assert [row for row in app.rows() if row.startswith("▌")][1].startswith("▌ t10l0")
        await pilot.press("k", "k", "alt+up")
        await pilot.pause()
        assert app.transcript.selected_turn is not None
        assert app.transcript.selected_turn.turn.id == 7
        assert any(row.startswith("▌ t7l0") for row in app.rows())
        await pilot.press("j")
        assert app.transcript.selected_turn.turn.id == 8
        await pilot.press("end")
        await pilot.pause()
        assert app.transcript.selected_turn is None
        assert "▌" not in app.text()


async def test_walking_stops_at_both_ends() -> None:
    app = Stage(talk(2, lines=1))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("k", "k", "k", "k")
        assert app.transcript.selected_turn is not None
        assert app.transcript.selected_turn.turn.id == 1
        await pilot.press("j", "j", "j")
        assert app.transcript.selected_turn is not None
        assert app.transcript.selected_turn.turn.id == 2


async def test_a_turn_higher_than_the_screen_shows_its_head() -> None:
    app = Stage([shown(1, "short"), shown(2, "line\n\n" * 60, reply=True), shown(3, "short")])
    async with app.run_test(size=(80, 24)) as pilot:
        app.transcript.select(2)
        await pilot.pause()
        assert app.rows()[0].startswith("▌ M · ")


async def test_copying_a_turn_asks_for_its_source() -> None:
    app = Stage([shown(1, "my **words**"), shown(2, "a **reply**", reply=True), shown(3, "more")])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("end", "c", "k", "c")
        await pilot.pause()
        copies = [(said.text, said.what) for said in app.said if isinstance(said, Transcript.CopyRequested)]
        assert copies == [("a **reply**", "the reply"), ("more", "your message")]


async def test_code_blocks_are_copied_one_after_the_other() -> None:
    app = Stage([shown(1, "q"), shown(2, CODE, reply=True), shown(3, "q"), shown(4, "no code", reply=True)])
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.press("y", "end", "y", "y", "y")
        await pilot.pause()
        copies = [(said.text, said.what) for said in app.said if isinstance(said, Transcript.CopyRequested)]
        assert copies == [
            ("plain\ntext", "code block 2 of 2"),
            ("print(1)", "code block 1 of 2 · python"),
            ("plain\ntext", "code block 2 of 2"),
        ]


async def test_branches_are_paged_at_the_marked_turn_or_the_last_that_has_any() -> None:
    app = Stage([shown(1, "q", branches=2), shown(2, "a", reply=True, branch=2, branches=3), shown(3, "q")])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("end", "left_square_bracket", "right")
        app.transcript.select(1)
        await pilot.press("right_square_bracket")
        app.transcript.select(3)
        await pilot.press("left")
        await pilot.pause()
        asked = [(said.turn_id, said.step) for said in app.said if isinstance(said, Transcript.BranchRequested)]
        assert asked == [(2, -1), (2, 1), (1, 1)]


async def test_retry_and_edit_mean_the_pair_that_is_marked() -> None:
    app = Stage(talk(6, lines=1))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r", "e")
        await pilot.press("end", "r", "e")  # nothing is marked
        app.transcript.edit()
        app.transcript.select(3)
        await pilot.press("r", "e")
        app.transcript.select(2)
        await pilot.press("r", "e")
        await pilot.pause()
        asked = [
            (type(said).__name__, said.turn_id)
            for said in app.said
            if isinstance(said, (Transcript.RetryRequested, Transcript.EditRequested))
        ]
        assert asked == [
            ("RetryRequested", 6),
            ("EditRequested", 5),
            ("EditRequested", 5),
            ("RetryRequested", 4),
            ("EditRequested", 3),
            ("RetryRequested", 2),
            ("EditRequested", 1),
        ]


async def test_keys_without_anything_to_act_on_do_nothing() -> None:
    app = Stage()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"kjcyre", "enter", "left", "right", "up", "down", "pageup", "pagedown", "home", "end")
        await pilot.pause()
        assert app.said == []


async def test_a_click_marks_a_turn_and_opens_its_thinking() -> None:
    app = Stage([shown(1, "q"), shown(2, "a", reply=True, reasoning="because", thought_s=1.0, branch=1, branches=2)])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        rows = app.rows()
        await pilot.click(app.transcript, offset=(4, rows.index("▌ ▸ thought for 1.0 s")))
        await pilot.pause()
        assert "because" in app.text()
        assert app.transcript.selected_turn is not None
        assert app.transcript.selected_turn.turn.id == 2
        head = next(row for row, text in enumerate(app.rows()) if "1/2" in text)
        await pilot.click(app.transcript, offset=(app.rows()[head].index("1/2") + 4, head))
        await pilot.pause()
        assert [(said.turn_id, said.step) for said in app.said if isinstance(said, Transcript.BranchRequested)] == [
            (2, 1)
        ]


async def test_a_click_on_the_mark_goes_to_the_end() -> None:
    app = Stage(talk(12))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("pageup")
        app.transcript.begin_reply(growing(13))
        await pilot.pause()
        assert "· End" in app.rows()[-1]
        await pilot.click(app.transcript, offset=(app.rows()[-1].index("End"), 23))
        await pilot.pause()
        assert app.transcript.following
        assert "· End" not in app.text()
