"""A conversation on the chat screen: sending, stopping, retrying, editing, branches, failures, and what is on disk."""

from localinfer.history.store import History
from localinfer.types import Sampling
from tests.tui.chat.conftest import Open


async def test_a_message_is_answered_and_measured(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello there")
        user, reply = chat.path
        assert (user.role, user.content, reply.parent) == ("user", "Hello there", user.id)
        assert reply.state == "whole"
        assert reply.metrics is not None
        assert reply.metrics.completion_tokens > 1
        assert "Hello there" in chat.text
        assert f"{reply.metrics.completion_tokens} tokens" in chat.text


async def test_what_is_shown_is_on_disk(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        with History() as other:
            (conversation,) = other.conversations()
            assert other.turns(conversation.id) == chat.screen.talk.turns
            assert conversation.title == "Hello"


async def test_a_message_is_on_disk_before_the_model_has_it(chatting: Open) -> None:
    async with chatting(load_s=30, ready=False) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: bool(chat.screen.talk.turns))
        with History() as other:
            assert [turn.content for turn in other.turns(other.conversations()[0].id)] == ["Hello"]


async def test_escape_stops_the_reply_and_keeps_it(chatting: Open) -> None:
    async with chatting(text="word " * 400, pace_s=0.005) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: chat.screen.talk.generation is not None and "word word" in chat.text)
        await chat.press("escape")
        await chat.until(lambda: not chat.screen.talk.busy)
        reply = chat.path[-1]
        assert reply.state == "stopped"
        assert 0 < len(reply.content) < 2000
        await chat.pilot.pause()
        assert "stopped" in chat.text
        await chat.press("Again", "enter")  # and Enter works
        await chat.until(lambda: len(chat.path) == 4)


async def test_enter_does_not_send_while_a_reply_is_written(chatting: Open) -> None:
    async with chatting(text="word " * 400, pace_s=0.005) as chat:
        await chat.press("One", "enter")
        await chat.until(lambda: chat.screen.talk.generation is not None)
        await chat.press("Two", "enter")
        assert chat.screen.prompt.text == "Two"
        assert "Esc stops it" in chat.text


async def test_retry_makes_a_branch_that_one_can_page(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        first = chat.path[-1]
        await chat.press("ctrl+r")
        await chat.until(lambda: len(chat.screen.talk.turns) == 3 and not chat.screen.talk.busy)
        second = chat.path[-1]
        assert second.parent == first.parent
        assert second.id != first.id
        await chat.pilot.pause()
        assert "‹ 2/2 ›" in chat.text
        await chat.press("alt+left")
        await chat.until(lambda: chat.path[-1].id == first.id)
        await chat.pilot.pause()
        assert "‹ 1/2 ›" in chat.text
        with History() as other:
            assert other.conversations()[0].head == first.id


async def test_edit_and_resend_makes_a_branch(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Helo")
        await chat.press("f8")
        assert chat.screen.prompt.text == "Helo"
        assert chat.screen.prompt.mode
        await chat.press("backspace", "lo")
        await chat.press("enter")
        await chat.until(lambda: len(chat.screen.talk.turns) == 4 and not chat.screen.talk.busy)
        assert [turn.content for turn in chat.path if turn.role == "user"] == ["Hello"]
        assert chat.path[0].parent is None
        assert chat.screen.prompt.text == ""


async def test_a_worker_killed_in_a_reply_costs_the_reply_only(chatting: Open) -> None:
    async with chatting(text="word " * 400, pace_s=0.002, die_after=60) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: bool(chat.path) and chat.path[-1].state == "failed")
        reply = chat.path[-1]
        assert "word" in reply.content
        assert "died while generating" in reply.note
        await chat.until(lambda: not chat.screen.talk.busy)
        await chat.pilot.pause()
        assert "✗" in chat.text
        await chat.press("Again", "enter")
        await chat.until(lambda: len(chat.path) == 4 and "word" in chat.path[-1].content)


async def test_a_model_that_cannot_be_loaded_is_said_and_the_message_kept(chatting: Open) -> None:
    async with chatting(fail_load="OutOfMemory", ready=False) as chat:
        await chat.until(lambda: chat.screen.desk.state.phase == "failed")
        await chat.press("Hello", "enter")
        await chat.until(lambda: len(chat.path) == 1 and not chat.screen.talk.busy)
        await chat.until(lambda: "could not be loaded" in chat.text)
        assert chat.path[0].content == "Hello"


async def test_parameters_reach_the_model(chatting: Open) -> None:
    async with chatting(text="one two three") as chat:
        talk = chat.screen.talk
        talk.parameters = type(talk.parameters)(sampling=Sampling(temperature=0), max_tokens=5)
        await chat.say("Hello")
        assert chat.path[-1].content == "one t"
        assert chat.path[-1].state == "cut"


async def test_thinking_is_folded_and_measured(chatting: Open) -> None:
    async with chatting(think="Let me see. " * 20, text="Done.") as chat:
        await chat.say("Hello")
        reply = chat.path[-1]
        assert reply.content == "Done."
        assert reply.reasoning.startswith("Let me see.")
        assert reply.thought_s is not None
        assert reply.thought_tokens > 100
        await chat.pilot.pause()
        assert "thought for" in chat.text
        assert "Let me see" not in chat.text


async def test_a_new_conversation_keeps_the_draft_of_the_old_one(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        first = chat.screen.talk.conversation
        assert first is not None
        await chat.press("half a thought")
        await chat.press("ctrl+n")
        assert chat.path == ()
        assert chat.screen.prompt.text == ""
        await chat.say("Other")
        await chat.screen.open_conversation(first.id)
        assert chat.screen.prompt.text == "half a thought"


async def test_a_full_disk_gives_the_message_back(chatting: Open) -> None:
    from localinfer.errors import StorageUnavailable

    async with chatting() as chat:

        def full(*given: object, **named: object) -> None:
            raise StorageUnavailable("The disk is full.", "Free some space.")

        chat.screen.talk.history.add = full  # type: ignore[method-assign,assignment]
        await chat.press("Precious words", "enter")
        await chat.until(lambda: chat.screen.prompt.text == "Precious words")
        assert not chat.screen.talk.busy


async def test_ctrl_c_stops_a_reply_and_twice_leaves(chatting: Open) -> None:
    async with chatting(text="word " * 400, pace_s=0.005) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: chat.screen.talk.generation is not None)
        await chat.press("ctrl+c")
        await chat.until(lambda: not chat.screen.talk.busy)
        assert chat.path[-1].state == "stopped"
        await chat.press("ctrl+c")
        await chat.until(lambda: "once more" in chat.text)
        assert chat.app.is_running
        await chat.press("ctrl+c")
        await chat.until(lambda: not chat.app.is_running)


async def test_an_attachment_is_counted_and_sent(chatting: Open, tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "notes.txt"
    file.write_text("Some notes.\n")
    async with chatting() as chat:
        chat.screen.prompt.insert(f"@{file}")
        await chat.press("enter")
        await chat.until(lambda: len(chat.path) == 2 and not chat.screen.talk.busy)
        (attachment,) = chat.path[0].attachments
        assert attachment.text == "Some notes.\n"
        assert "Some notes." in chat.screen.talk.request(chat.path[0]).messages[0].content
        chat.screen.prompt.insert("\n".join(f"line {number}" for number in range(10)))
        chat.screen.prompt.draft = type(chat.screen.prompt.draft)(text="x", attachments=(attachment,))
        await chat.until(lambda: "12 tokens" in chat.text)  # bytes, with this backend


async def test_figures_are_reached_with_tab_and_explained(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        for _ in range(3):
            if type(chat.app.focused).__name__ == "Readout":
                break
            await chat.press("tab")
        assert type(chat.app.focused).__name__ == "Readout"
        await chat.pilot.pause()
        assert "(reasoning counts)" in chat.text  # a part of the definition
