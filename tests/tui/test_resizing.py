"""Whatever becomes of the terminal's size, no screen raises."""

import functools
from collections.abc import Callable

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget

from localinfer.history.store import History
from localinfer.types import EngineStatus
from tests.tui.models_app import Around, Parts
from tests.tui.snapshots import stage, talks, until
from tests.tui.snapshots.replies import done
from tests.tui.snapshots.test_models import models_of, welcome_of
from tui.app import LocalInfer
from tui.screens.activity import ActivityScreen
from tui.screens.choose import Choice, ChooseScreen
from tui.screens.confirm import Ask, Confirm
from tui.widgets.board import EngineView

STORM = (
    *((120, 36), (60, 36), (20, 36), (1, 36), (200, 36)),  # a column and a list go when it is narrow, a frame later
    *((34, 20), (250, 60), (48, 1), (1, 1), (110, 4)),
)
CHOICES = (Choice("a", "Leave it", "Nothing changes"), Choice("b", "Go on", "日本語 " * 20, reason="no room"))


async def storm(app: App[None], pilot: Pilot[None]) -> None:
    """Every size, one right after the other, and everything drawn in it."""
    for size in STORM:
        await pilot.resize_terminal(*size)
        assert app._exception is None, size
        app.screen._compositor.render_strips()
    assert await until(pilot, lambda: app.screen.size == STORM[-1])
    app.screen._compositor.render_strips()


Show = Callable[[LocalInfer], object]
SCREENS: dict[str, str | Show] = {
    "chat": "",
    "list": "f3",
    "figures": "alt+r",
    "parameters": "f5",
    "search": "f4",
    "help": "f1",
    "palette": "ctrl+p",
    "settings": "alt+s",
    "commands": "slash",
    "activity": lambda app: app.push_screen(
        ActivityScreen(
            lambda: EngineView(status=EngineStatus(state="ready", slots=1, threads=8, rss_bytes=1, pid=4242), at_ns=9)
        )
    ),
    "choose": lambda app: app.push_screen(ChooseScreen("A question", "And what it is about.", CHOICES)),
    "confirm": lambda app: app.push_screen(Confirm("Does it?", "It may.", "Fetch it", "Leave it")),
    "ask": lambda app: app.push_screen(Ask("Name", "calm and dry")),
}


@pytest.mark.parametrize("name", ["empty", *SCREENS])
async def test_over_a_chat(name: str) -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        id = None
        with History() as history:
            talks.several(history, times)
            if name != "empty":
                id = talks.rich(history, times)
        async with stage.opened(engine, id) as (app, pilot):
            await pilot.resize_terminal(120, 36)
            assert await until(pilot, lambda: app.chat.has_class("-wide"))
            show = SCREENS.get(name, "")
            if isinstance(show, str):
                await pilot.press(*([show] if show else []))
            else:
                show(app)
            await pilot.pause()
            await storm(app, pilot)


@pytest.mark.parametrize("kind", ["models", "welcome"])
async def test_before_there_is_a_chat(kind: str) -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)):
        parts = Parts(stage.machine())
        try:
            screen = welcome_of(parts) if kind == "welcome" else models_of(parts, ("smollm2-135m", "Q4_1"))
            app = Around(screen)
            async with app.run_test(size=(80, 24)) as pilot:
                await pilot.pause()
                await storm(app, pilot)
        finally:
            parts.close()


@pytest.mark.parametrize("width", [0, 1, 2])
async def test_what_draws_line_by_line_in_no_room(width: int) -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times)
            id = talks.rich(history, times)
        parts = Parts(stage.machine())
        try:
            async with stage.opened(engine, id) as (app, pilot):
                await pilot.resize_terminal(120, 36)
                assert await until(pilot, lambda: app.chat.has_class("-wide"))
                await pilot.press("f3")
                await squeeze(
                    pilot, width, "Readout", "ConversationRows", "BookView", "Editor", "HeaderLine", "KeyLine"
                )
                app.push_screen(models_of(parts, ("smollm2-135m", "Q4_1")))
                assert await until(pilot, lambda: bool(app.screen.query("ModelList")))
                await squeeze(pilot, width, "ModelList")
        finally:
            parts.close()


async def squeeze(pilot: Pilot[None], width: int, *names: str) -> None:
    """Each of the widgets draws its lines at most ``width`` cells wide."""
    for name in names:
        widget = pilot.app.screen.query(name).first()
        widget.styles.min_width = widget.styles.max_width = widget.styles.width = width
        assert await until(pilot, functools.partial(_is_within, widget, width)), name
        for y in range(6):
            widget.render_line(y)
        await pilot.pause()
        assert pilot.app._exception is None, name


def _is_within(widget: Widget, width: int) -> bool:
    return widget.size.width <= width
