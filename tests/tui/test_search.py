"""Searching as one types: the newest query wins, and nothing that was found is obeyed."""

import threading
from collections.abc import Callable, Sequence

from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from localinfer.errors import StorageUnavailable
from localinfer.history.values import Conversation, Hit
from tests.tui.waiting import until
from tui.screens.search import SearchScreen

HOSTILE = "[/b] [@click=app.quit]x[/] \x1b]52;c;eA==\x07"


def hit(id: int, title: str, excerpt: str = "", mark: str = "") -> Hit:
    at = excerpt.find(mark)
    marks = ((at, at + len(mark)),) if mark else ()
    return Hit(
        conversation=Conversation(id=id, title=title, created_s=0, changed_s=0),
        turn=id * 10 if excerpt else None,
        excerpt=excerpt,
        marks=marks,
    )


class Searching(App[None]):
    def __init__(self, search: Callable[[str], Sequence[Hit]]) -> None:
        super().__init__()
        self.search = search
        self.result: list[tuple[int, int | None] | None] = []

    def on_mount(self) -> None:
        self.push_screen(SearchScreen(self.search), self.result.append)


def options(pilot: Pilot[None]) -> list[str]:
    found = pilot.app.screen.query_one(OptionList)
    return [str(found.get_option_at_index(index).prompt) for index in range(found.option_count)]


async def test_nothing_typed_shows_what_is_recent_and_enter_opens_it() -> None:
    app = Searching(lambda query: [] if query else [hit(1, "first"), hit(2, "second")])
    async with app.run_test() as pilot:
        await until(pilot, lambda: len(options(pilot)) == 2)
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.result == [(2, None)])


async def test_what_matched_is_marked_without_colour_and_opens_at_its_turn() -> None:
    app = Searching(lambda query: [hit(3, "title", f"before {query} after", query)] if query else [])
    async with app.run_test() as pilot:
        await pilot.press(*"rain")
        await until(pilot, lambda: any("before rain after" in text for text in options(pilot)))
        prompt = app.screen.query_one(OptionList).get_option_at_index(0).prompt
        spans = [span for span in prompt.spans if "underline" in str(span.style)]  # type: ignore[union-attr]
        assert [str(prompt)[span.start : span.end] for span in spans] == ["rain"]
        await pilot.press("enter")
        await until(pilot, lambda: app.result == [(3, 30)])


async def test_the_newest_query_wins_whatever_answers_first() -> None:
    begun, gate, over = threading.Event(), threading.Event(), threading.Event()

    def search(query: str) -> list[Hit]:
        if query == "a":
            begun.set()
            gate.wait(5)
            over.set()
        return [hit(1, f"for {query}")]

    app = Searching(search)
    async with app.run_test() as pilot:
        await until(pilot, lambda: options(pilot) != [])
        await pilot.press("a")
        await until(pilot, begun.is_set)
        await pilot.press("b")
        await until(pilot, lambda: any("for ab" in text for text in options(pilot)))
        gate.set()
        await until(pilot, over.is_set)
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "for ab" in options(pilot)[0]


async def test_a_quick_enter_opens_what_was_typed_not_what_is_shown() -> None:
    app = Searching(lambda query: [hit(len(query), f"for {query}")])
    async with app.run_test() as pilot:
        await until(pilot, lambda: options(pilot) != [])
        await pilot.press(*"abc", "enter")
        await until(pilot, lambda: app.result != [])
        assert app.result == [(3, None)]


async def test_keys_typed_quickly_ask_once() -> None:
    asked: list[str] = []

    def search(query: str) -> list[Hit]:
        asked.append(query)
        return []

    app = Searching(search)
    async with app.run_test() as pilot:
        await until(pilot, lambda: asked == [""])
        box = app.screen.query_one(Input)
        for length in range(len("weather") + 1):
            box.value = "weather"[:length]
        await until(pilot, lambda: asked == ["", "weather"])
        state = app.screen.query_one("#state", Static)
        await until(pilot, lambda: "Nothing has “weather” in it" in str(state.render()))
        await pilot.press("enter")
        assert app.result == []
        await pilot.press("escape")
        await until(pilot, lambda: app.result == [None])


async def test_hostile_titles_and_excerpts_are_text() -> None:
    app = Searching(lambda query: [hit(1, HOSTILE, HOSTILE, "click")])
    async with app.run_test() as pilot:
        await until(pilot, lambda: options(pilot) != [])
        (text,) = options(pilot)
        assert text.count("[@click=app.quit]") == 2
        assert "\x1b" not in text
        assert "\x07" not in text


async def test_a_store_that_fails_is_said() -> None:
    def search(query: str) -> list[Hit]:
        raise StorageUnavailable("The history cannot be read [x].", "Make room.")

    app = Searching(search)
    async with app.run_test() as pilot:
        state = app.screen.query_one("#state", Static)
        await until(pilot, lambda: "cannot be read [x]. Make room." in str(state.render()))
