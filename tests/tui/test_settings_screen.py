"""Settings, help and the two small questions."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App
from textual.screen import Screen
from textual.widgets import Input, Static

from localinfer import settings
from localinfer.errors import BadRequest
from localinfer.settings import Settings
from tests.tui.waiting import until
from tui import keys, theme
from tui.screens.confirm import Ask, Confirm
from tui.screens.help import HelpScreen
from tui.screens.settings import SettingsScreen
from tui.widgets.conversations import Conversations
from tui.widgets.form import Choice, Row


class Showing(App[None]):
    def __init__(self, make: Callable[[], Screen[Any]]) -> None:
        super().__init__()
        self.make = make
        self.result: list[object] = []
        for one in theme.OURS:
            self.register_theme(one)
        self.theme = theme.chosen(None)

    def on_mount(self) -> None:
        self.push_screen(self.make(), self.result.append)


def row(app: App[None], name: str) -> Row:
    return app.screen.query_one(f"#row-{name}", Row)


def note(app: App[None], name: str) -> str:
    return said(app, f"#row-{name} .note")


def said(app: App[None], selector: str) -> str:
    return str(app.screen.query_one(selector, Static).render())


class TestSettings:
    async def test_what_is_set_and_from_where(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings.config_file().write_text('model = "[b]x[/b]"\n[keys]\nmodels = "f2"\n', "utf-8")
        monkeypatch.setenv("LOCALINFER_THREADS", "3")
        app = Showing(SettingsScreen)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert row(app, "model").text == "[b]x[/b]"
            assert (note(app, "model"), note(app, "offline")) == ("config.toml", "default")
            assert note(app, "threads") == "LOCALINFER_THREADS"
            assert row(app, "threads").editor.disabled
            assert not row(app, "context").editor.disabled
            assert "Keys changed: models" in said(app, ".files")
            assert str(settings.config_file().name) in said(app, ".files").replace("\n", "")

    async def test_a_theme_is_seen_while_one_chooses_and_leaving_takes_it_back(self) -> None:
        app = Showing(SettingsScreen)
        async with app.run_test() as pilot:
            await pilot.press("right")
            assert app.theme == "localinfer-light"
            await pilot.press("escape")
            assert app.theme == "localinfer-dark"
            await until(pilot, lambda: app.result == [None])
            assert not settings.config_file().exists()

    async def test_changes_are_written_and_nothing_else_is(self) -> None:
        settings.config_file().write_text("# mine\nthreads = 2 # two\n", "utf-8")
        app = Showing(SettingsScreen)
        async with app.run_test() as pilot:
            await pilot.press("right", "down", *"gemma", "down", "right", "enter")
            await until(pilot, lambda: app.result != [])
            wanted = Settings(theme="localinfer-light", model="gemma", offline=True, threads=2)
            await until(pilot, lambda: app.result == [wanted])
            assert settings.load() == wanted
            assert "# mine\nthreads = 2 # two\n" in settings.config_file().read_text("utf-8")
            assert app.theme == "localinfer-light"

    async def test_an_emptied_setting_is_taken_out(self) -> None:
        settings.config_file().write_text('model = "a"\nmodel_folders = ["/b"]\n', "utf-8")
        app = Showing(lambda: SettingsScreen("model"))
        async with app.run_test() as pilot:
            await pilot.press("ctrl+u")
            row(app, "model_folders").editor.focus()
            await pilot.press("ctrl+u", "enter")
            await until(pilot, lambda: app.result != [])
            assert settings.config_file().read_text("utf-8").strip() == ""

    async def test_a_wrong_value_is_explained_and_not_written(self) -> None:
        app = Showing(lambda: SettingsScreen("context"))
        async with app.run_test() as pilot:
            await pilot.press(*"-2", "enter")
            assert app.result == []
            problem = said(app, "#row-context .problem")
            assert "context must be a whole number of 1 or more, not -2." in problem
            assert not settings.config_file().exists()
            await pilot.press("ctrl+u", *"2048", "enter")
            await until(pilot, lambda: app.result != [])
            assert settings.load().context == 2048

    async def test_what_cannot_be_written_is_said_and_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        app = Showing(SettingsScreen)
        async with app.run_test() as pilot:
            monkeypatch.setattr("tempfile.mkstemp", refuse)
            await pilot.press("right", "enter")
            await until(pilot, lambda: "cannot be written" in said(app, "#state"))
            assert app.result == []
            assert isinstance(row(app, "theme").editor, Choice)

    def test_a_damaged_file_is_an_error_before_there_is_a_screen(self) -> None:
        settings.config_file().write_text("model = ", "utf-8")
        with pytest.raises(BadRequest):
            SettingsScreen()


class TestHelp:
    async def test_it_has_every_action_with_the_keys_a_person_chose_and_can_be_searched(self) -> None:
        app = Showing(
            lambda: HelpScreen([("/model", "[b]choose[/b]")], {"models": "f4"}, {"In the list": Conversations.BINDINGS})
        )
        async with app.run_test(size=(100, 400)) as pilot:
            await pilot.pause()
            shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            for action in keys.ACTIONS:
                assert action.help in shown
            assert "F4 " in shown
            assert "[b]choose[/b]" in shown
            assert "config.toml" in shown
            assert "In the list" in shown
            await pilot.press(*"export")
            await pilot.pause()
            shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            assert "Export" in shown
            assert "Keys everywhere" not in shown

    async def test_keys_scroll_and_leave(self) -> None:
        app = Showing(HelpScreen)
        async with app.run_test(size=(80, 24)) as pilot:
            scroll = app.screen.query_one("VerticalScroll")
            await pilot.press("down", "pagedown")
            await pilot.pause()
            assert scroll.scroll_offset.y > 5
            await pilot.press("escape")
            await until(pilot, lambda: app.result == [None])


class TestQuestions:
    @pytest.mark.parametrize(
        ("pressed", "answer"),
        [
            (["y"], True),
            (["n"], False),
            (["escape"], False),
            (["enter"], False),
            (["right", "enter"], True),
            (["tab", "enter"], True),
            (["right", "left", "enter"], False),
        ],
    )
    async def test_yes_or_no(self, pressed: list[str], answer: bool) -> None:
        app = Showing(lambda: Confirm("Delete “[b]x[/b]”?", "\x1b[31m", "Delete", "Keep"))
        async with app.run_test(size=(80, 24)) as pilot:
            assert "[b]x[/b]" in said(app, ".question")
            assert "\x1b" not in said(app, ".detail")
            await pilot.press(*pressed)
            await until(pilot, lambda: app.result == [answer])

    async def test_a_line_of_text(self) -> None:
        def check(text: str) -> None:
            if text == "ab":
                raise BadRequest("Not that.", "Another.")

        app = Showing(lambda: Ask("Name", "a", check))
        async with app.run_test() as pilot:
            await pilot.press("b", "enter")
            assert said(app, ".problem") == "Not that. Another."
            assert app.screen.query_one(Input).value == "ab"
            await pilot.press("c", " ", "enter")
            await until(pilot, lambda: app.result == ["abc"])
        app = Showing(lambda: Ask("Name", "a"))
        async with app.run_test() as pilot:
            await pilot.press("escape")
            await until(pilot, lambda: app.result == [None])
