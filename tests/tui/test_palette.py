"""The palette: every action, and foreign names that are never markup."""

from textual.app import App
from textual.command import CommandPalette
from textual.widgets import OptionList

from localinfer.history.values import Conversation
from tui import keys, palette

HOSTILE = "[/b] [red]x[/red] \x1b]52;c;eA==\x07 [@click=app.quit]世界"


class Paletted(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.done: list[object] = []
        self.COMMANDS = {  # type: ignore[misc]
            palette.provider(
                palette.actions(self, {"models": "f4"}),
                palette.themes(self, self.done.append),
                palette.conversations(self._recent, self.done.append),
                palette.models(lambda: [HOSTILE], self.done.append),
                self._broken,
            )
        }

    def _recent(self) -> list[Conversation]:
        return [Conversation(id=7, title=HOSTILE, created_s=0, changed_s=0)]

    def _broken(self) -> list[palette.Entry]:
        raise OSError

    def action_models(self) -> None:
        self.done.append("models")


async def offered(app: App[None], query: str) -> list[str]:
    async with app.run_test(size=(100, 200)) as pilot:
        await pilot.press("ctrl+p")
        assert isinstance(app.screen, CommandPalette)
        await pilot.press(*query)
        await app.workers.wait_for_complete()
        await pilot.pause()
        options = app.screen.query_one(OptionList)
        texts = [str(options.get_option_at_index(index).prompt) for index in range(options.option_count)]
        await pilot.press("enter")
        await pilot.pause()
    return texts


async def test_every_action_is_offered_with_its_keys() -> None:
    app = Paletted()
    texts = await offered(app, "")
    for action in keys.ACTIONS:
        assert (action.id == "command_palette") != any(text.startswith(action.help + "\n") for text in texts)
    assert any("switch models\nF4" in text for text in texts)


async def test_an_action_runs() -> None:
    app = Paletted()
    await offered(app, "switch")
    assert app.done == ["models"]


async def test_foreign_names_are_shown_as_they_are_and_obeyed_by_nobody() -> None:
    app = Paletted()
    texts = await offered(app, "open:")
    assert any("[/b] [red]x[/red]" in text and "[@click=app.quit]世界" in text for text in texts)
    assert not any("\x1b" in text or "\x07" in text for text in texts)
    assert app.done == [7]


async def test_themes_and_models() -> None:
    app = Paletted()
    await offered(app, "nord")
    assert app.done == ["nord"]
    app = Paletted()
    await offered(app, "usemodel")
    assert app.done == [HOSTILE]
