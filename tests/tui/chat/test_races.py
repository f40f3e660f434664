"""What happens at the same time: opening, sending, switching, a full disk, and a conversation deleted elsewhere."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from localinfer.errors import StorageUnavailable
from localinfer.history.store import History
from tests.tui.chat.conftest import Open


async def test_nothing_is_sent_while_another_conversation_opens(
    chatting: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chatting() as chat:
        await chat.say("First")
        first = chat.screen.talk.conversation
        await chat.press("ctrl+n")
        await chat.say("Second")
        slow = _slowly(History.turns)
        monkeypatch.setattr(History, "turns", slow)
        assert first is not None
        chat.screen.go_to(first.id)
        await chat.until(lambda: chat.screen.talk.opening)
        await chat.press("ctrl+r", "x", "enter")
        await chat.until(lambda: not chat.screen.talk.busy)
        await chat.pilot.pause()
        assert [turn.content for turn in chat.path if turn.role == "user"] == ["First"]
        with History() as other:
            assert sum(len(other.turns(one.id)) for one in other.conversations()) == 4


def _slowly(call: Callable[..., Any]) -> Callable[..., Any]:
    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(2)  # a slow disk, not a wait
        return call(*given, **named)

    return slow


async def test_a_reply_that_a_full_disk_did_not_take_is_saved_later(
    chatting: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = True

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def kept(*given: Any, **named: Any) -> Any:
            if full:
                raise StorageUnavailable("The disk is full.", "Free some space.")
            return call(*given, **named)

        return kept

    monkeypatch.setattr(History, "grow", refusing(History.grow))
    monkeypatch.setattr(History, "finish", refusing(History.finish))
    async with chatting(text="word " * 100) as chat:
        await chat.say("Hello")
        reply = chat.path[-1]
        assert reply.state == "whole"
        assert chat.screen.talk.owes
        assert chat.text.count("The disk is full") == 1
        full = False
        await chat.until(lambda: not chat.screen.talk.owes)
        with History() as other:
            assert other.turns(other.conversations()[0].id)[-1].content == reply.content


async def test_what_is_owed_is_saved_on_leaving(chatting: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    async with chatting() as chat:

        def refused(*given: Any, **named: Any) -> Any:
            raise StorageUnavailable("The disk is full.", "Free some space.")

        with monkeypatch.context() as patch:
            patch.setattr(History, "finish", refused)
            await chat.say("Hello")
            assert chat.screen.talk.owes
        chat.app.close()
        with History() as other:
            assert other.turns(other.conversations()[0].id)[-1].content == "An answer."


async def test_of_models_chosen_one_after_another_the_last_answers(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.press("/model text=A&load_s=20", "enter")
        await chat.until(lambda: chat.screen.desk.engines.loading is not None)
        await chat.press("Who are you", "enter")
        await chat.until(lambda: chat.screen.talk.generation is not None)
        started = time.monotonic()
        await chat.press("/model text=B", "enter")
        await chat.until(lambda: len(chat.path) == 2 and not chat.screen.talk.busy)
        assert chat.path[-1].content == "B"
        assert time.monotonic() - started < 15  # A is not loaded to the end first


async def test_a_conversation_deleted_elsewhere_is_no_dead_end(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        with History() as other:
            other.delete(other.conversations()[0].id)
        await chat.press("And now", "enter")
        await chat.until(lambda: chat.screen.prompt.text == "And now")
        assert "deleted elsewhere" in chat.text
        await chat.press("enter")
        await chat.until(lambda: len(chat.path) == 2 and not chat.screen.talk.busy)
        assert chat.path[0].content == "And now"
