"""Long conversations open and scroll at once, and only what is in view is held as lines. Bounds are generous."""

import time

from tests.tui.transcript.stage import WORDS, Stage, shown
from tui.widgets.transcript import ShownTurn
from tui.widgets.transcript.book import ROWS_KEPT

PARAGRAPH = f"**{WORDS}** – {WORDS}.\n\n"
REPLY = PARAGRAPH * 6 + "| a | b |\n|---|---|\n" + "| one | two |\n" * 12 + "\n```python\nprint('你好')\n" * 3 + "```\n"


def _long(turns: int) -> list[ShownTurn]:
    replies = [f"t{id}\n\n{REPLY * 2}" if id % 2 == 0 else f"t{id} {WORDS * 25}" for id in range(1, turns + 1)]
    return [shown(id, text, reply=id % 2 == 0) for id, text in enumerate(replies, 1)]


async def test_two_thousand_turns_open_and_scroll_at_once() -> None:
    turns = _long(2000)
    assert min(len(shown.turn.content) for shown in turns) > 2500
    app = Stage(_long(2))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        start_s = time.thread_time()
        app.transcript.show(turns)
        app.rows()
        assert time.thread_time() - start_s < 0.5
        start_s = time.thread_time()
        frames = 60
        for frame in range(frames):
            app.transcript.scroll_page(-1) if frame % 3 else app.transcript.scroll_to(y=frame * 997)
            app.rows()
        assert (time.thread_time() - start_s) / frames < 1 / 30
        book = app.transcript._book
        assert sum(sheet.drawn.rows for sheet in book._sheets.values() if sheet.drawn) <= ROWS_KEPT
        assert sum(map(book.layout.known, range(2000))) < 200


async def test_frames_become_fewer_when_they_are_costly() -> None:
    app = Stage(_long(2))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        pace = app.transcript._pace
        pace._painted(time.thread_time() - 0.1)
        assert pace._not_before_s - time.monotonic() > 0.7
        pace._painted(time.thread_time())
        assert pace._not_before_s - time.monotonic() > 0.6
