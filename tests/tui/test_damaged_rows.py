"""A history with damaged rows is shown as far as it makes sense; nothing in it ends the application."""

import pytest

from localinfer import settings
from localinfer.history.store import History
from tests.history.test_damaged_rows import COLUMNS, WRONG, put
from tests.tui.snapshots import is_drawn, stage, talks, until
from tests.tui.snapshots.replies import done

LEFT = ("deleted_s", "conversation", "head", "parent")  # what decides whether anything of it is shown


@pytest.mark.parametrize("kind", ["bytes", "text", "far", "long ago", "half a pair"])
async def test_such_a_conversation_is_opened_listed_and_found(kind: str) -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times)
            id = talks.rich(history, times)
        for table, columns in COLUMNS.items():
            for column in columns:
                if column not in LEFT:
                    put(settings.history_file(), table, column, WRONG[kind])
        async with stage.opened(engine, id) as (app, pilot):
            assert app.chat.talk.path
            assert await until(pilot, lambda: is_drawn(pilot, "1970") or is_drawn(pilot, "2026"))
            await pilot.resize_terminal(120, 36)
            await pilot.press("f3")
            assert await until(pilot, lambda: app.chat.has_class("-listing"))
            await pilot.press("escape", "f4")
            assert await until(pilot, lambda: is_drawn(pilot, "recent conversations"))
            await pilot.press(*"words")
            assert await until(pilot, lambda: is_drawn(pilot, "words"))
            app.screen._compositor.render_strips()
            assert app._exception is None
