"""The palette: every action, and foreign names that are never markup."""

from rich.cells import cell_len
from textual.app import App
from textual.command import CommandPalette
from textual.widgets import OptionList

from localinfer.history.values import Conversation
from tests.tui.snapshots import rows, until
from tui import keys, palette

HOSTILE = "[/b] [red]x[/red] \x1b]52;c;eA==\x07 [@click=app.quit]世界"


class Paletted(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.done: list[object] = []
        self._provider = palette.provider(
            palette.actions(self, {"models": "f4"}),
            palette.themes(self, self.done.append),
            palette.conversations(self._recent, self.done.append),
            palette.models(lambda: [HOSTILE, "long " * 40], self.done.append),
            self._broken,
        )

    def action_command_palette(self) -> None:
        self.push_screen(palette.Palette(self._provider))

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
        assert (action.id == "command_palette") != any(text.startswith(action.help + " ") for text in texts)
    assert any(text.split("switch models")[-1].strip() == "F4" for text in texts)
    assert len({cell_len(text) for text in texts}) == 1, "a line each, with its key at the same edge"
    assert not any("\n" in text for text in texts)


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


async def test_it_looks_like_our_other_overlays() -> None:
    app = Paletted()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p")
        await app.workers.wait_for_complete()
        await pilot.pause()
        lines = rows(pilot)
        (top,) = [index for index, line in enumerate(lines) if "╭" in line]
        (bottom,) = [index for index, line in enumerate(lines) if "╰" in line]
        assert "Find an action" in lines[top + 1]
        assert keys.ACTIONS[0].help in lines[top + 3]
        assert bottom < 23
        assert not any(ord(character) > 0xFFFF for line in lines for character in line), "no picture"
        await pilot.press(*"nord")
        await until(pilot, lambda: any("╰" in line for line in rows(pilot)[:8]), 5)
        assert any("╰" in line for line in rows(pilot)[:8]), "it is as long as what was found"


async def test_themes_and_models() -> None:
    app = Paletted()
    await offered(app, "nord")
    assert app.done == ["nord"]
    app = Paletted()
    await offered(app, "usemodel")
    assert app.done == [HOSTILE]
