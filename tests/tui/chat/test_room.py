"""A conversation that no longer fits: nothing is left out unless the person says so, and then it is marked."""

from tests.tui.chat.conftest import Chatting, Open
from tui.screens.choose import ChooseScreen

LONG = "It is a long story. " * 7


async def _fill(chat: Chatting) -> None:
    """Ask until the context of 700 tokens (bytes, with this backend) is too small for another reply."""
    while not isinstance(chat.app.screen, ChooseScreen):
        before = len(chat.screen.talk.turns)
        chat.screen.prompt.insert(LONG)
        await chat.press("enter")
        await chat.until(
            lambda before=before: (
                isinstance(chat.app.screen, ChooseScreen)  # type: ignore[misc]
                or (len(chat.screen.talk.turns) == before + 2 and not chat.screen.talk.busy)
            )
        )
        assert len(chat.screen.talk.turns) < 20
    await chat.pilot.pause()


async def test_the_person_is_asked_and_may_leave_it(chatting: Open) -> None:
    async with chatting(context=700) as chat:
        await _fill(chat)
        turns = chat.screen.talk.turns
        assert turns[-1].role == "user"  # it is kept, unanswered
        assert "no longer fits" in chat.text
        await chat.press("escape")
        await chat.until(lambda: not chat.screen.talk.busy)
        assert chat.screen.talk.turns == turns
        assert chat.screen.talk.omissions == ()


async def test_the_oldest_are_left_out_and_marked(chatting: Open) -> None:
    async with chatting(context=700) as chat:
        await _fill(chat)
        await chat.press("enter")
        await chat.until(lambda: not chat.screen.talk.busy)
        (omission,) = chat.screen.talk.omissions
        assert omission.summary == ""
        assert chat.path[-1].role == "assistant"
        assert chat.path[-1].content == "An answer."
        metrics = chat.path[-1].metrics
        assert metrics is not None
        assert metrics.prompt_tokens is not None
        assert metrics.prompt_tokens <= 0.75 * 700
        assert chat.path[0].content.startswith("It is a long story")  # still here
        chat.screen.transcript.scroll_start()
        index = [turn.id for turn in chat.path].index(omission.upto) + 1
        chat.screen.transcript.select(chat.path[index].id)
        await chat.pilot.pause()
        assert f"{index} " in chat.text
        assert "left out" in chat.text


async def test_the_model_may_summarise_them(chatting: Open) -> None:
    async with chatting(context=1200, text="The gist of it.") as chat:
        await _fill(chat)
        await chat.press("down", "enter")
        await chat.until(lambda: not chat.screen.talk.busy)
        (omission,) = chat.screen.talk.omissions
        assert omission.summary == "The gist of it."
        request = chat.screen.talk.request(next(turn for turn in reversed(chat.path) if turn.role == "user"))
        assert "The gist of it." in request.messages[0].content
        assert request.messages[0].role == "system"


async def test_a_message_that_is_too_long_by_itself_is_said_to_be(chatting: Open) -> None:
    async with chatting(context=300) as chat:
        chat.screen.prompt.insert(LONG * 3)
        await chat.press("enter")
        await chat.until(lambda: isinstance(chat.app.screen, ChooseScreen))
        await chat.pilot.pause()
        assert "shorten it" in chat.text
        await chat.press("escape")
        await chat.until(lambda: not chat.screen.talk.busy)
        assert [turn.role for turn in chat.path] == ["user"]
