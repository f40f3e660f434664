"""Where the person is told something that needs no answer: beside what they type and look at, and not for too long."""

import pytest
from textual.widgets._toast import Toast

from localinfer.errors import BadRequest
from tests.tui.chat.conftest import Open

LONG = "It could not be done, and there is a lot to be said about the reasons, of which this is but the first part."


@pytest.mark.parametrize("listing", [False, True])
@pytest.mark.parametrize("size", [(80, 24), (99, 24), (100, 30), (120, 36), (200, 50)])
async def test_a_notice_covers_neither_prompt_nor_figures(chatting: Open, size: tuple[int, int], listing: bool) -> None:
    async with chatting(size=size) as chat:
        await chat.press("a draft")
        if listing:
            await chat.press("f3")
        chat.screen.trouble(BadRequest(LONG, "Do something else, as there is enough to do."))
        chat.app.say("And something was written.")
        await chat.until(lambda: len(chat.app.screen.query(Toast)) == 2 and "something was written" in chat.text)
        await chat.pilot.pause()
        for toast in chat.app.screen.query(Toast):
            assert toast.region.area
            for other in (chat.screen.prompt, chat.screen.readout, chat.screen.status_line, chat.screen.key_line):
                assert not toast.region.overlaps(other.region)
            assert toast.region.width >= 40 or size[0] < 110
            assert toast.region.y >= 1


async def test_what_is_done_next_clears_an_error_and_nothing_else(chatting: Open) -> None:
    async with chatting() as chat:
        for keys in (("/stats", "enter"), ("Hello", "enter")):
            chat.app.say("A notice.")
            chat.screen.trouble(BadRequest("An error.", "A hint."))
            await chat.until(lambda: "An error." in chat.text)
            await chat.press(*keys)
            await chat.until(lambda: "An error." not in chat.text)
            assert "A notice." in chat.text
            await chat.press("escape")
