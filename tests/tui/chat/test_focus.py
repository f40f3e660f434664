"""Walking away from the prompt and back: what shows where the keys go, and that letters and Esc find the prompt."""

import pytest

from tests.tui.chat.conftest import Chatting, Open
from tui.widgets.readout import Readout
from tui.widgets.transcript import Transcript

SIZES = [(80, 24), (120, 36), (200, 50)]


def place(chat: Chatting) -> str:
    """What has the focus."""
    focused = chat.screen.focused
    around = focused.ancestors_with_self if focused is not None else []
    names = ("Prompt", "Transcript", "Readout", "Conversations")
    return next((type(one).__name__ for one in around if type(one).__name__ in names), "nothing")


def last_line(chat: Chatting) -> str:
    """The line of keys."""
    return chat.text.splitlines()[-1]


async def walk(chat: Chatting) -> list[str]:
    """Press Tab until the prompt has the focus again; where it was on the way."""
    seen = []
    for _ in range(6):
        await chat.press("tab")
        await chat.pilot.pause()
        seen.append(place(chat))
        if seen[-1] == "Prompt":
            break
    return seen


@pytest.mark.parametrize("size", SIZES)
async def test_tab_goes_round_what_is_shown_and_back(chatting: Open, size: tuple[int, int]) -> None:
    async with chatting(size=size) as chat:
        figures = ["Readout"] if size[0] >= 100 else []
        assert await walk(chat) == [*figures, "Prompt"]  # nothing to do in an empty conversation
        await chat.say("Hello")
        assert await walk(chat) == [*figures, "Transcript", "Prompt"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["Transcript", "Readout", "Conversations"])
async def test_esc_comes_back_from_everywhere(chatting: Open, size: tuple[int, int], where: str) -> None:
    async with chatting(size=size) as chat:
        await chat.say("Hello")
        usual = last_line(chat)
        if where == "Conversations":
            await chat.press("f3")
        elif where == "Readout" and size[0] < 100:
            await chat.press("alt+r")
        else:
            chat.screen.query_one(Transcript if where == "Transcript" else Readout).focus()
        await chat.until(lambda: place(chat) == where and "Esc Back" in last_line(chat))
        assert chat.screen.key_line.size.width - 2 >= len(last_line(chat).strip())
        await chat.press("escape")
        await chat.until(lambda: place(chat) == "Prompt" and last_line(chat) == usual)
        await chat.press("x")
        assert chat.screen.prompt.text == "x"


async def test_esc_in_the_conversation_stops_no_reply(chatting: Open) -> None:
    async with chatting(text="word " * 400, pace_s=0.005) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: chat.screen.talk.generation is not None and "word word" in chat.text)
        chat.screen.transcript.focus()
        await chat.until(lambda: place(chat) == "Transcript")
        await chat.press("escape")
        await chat.until(lambda: place(chat) == "Prompt")
        assert chat.screen.talk.busy
        await chat.press("escape")
        await chat.until(lambda: not chat.screen.talk.busy)
        assert chat.path[-1].state == "stopped"


@pytest.mark.parametrize("where", [Transcript, Readout])
async def test_what_is_typed_elsewhere_is_in_the_prompt(
    chatting: Open, where: type[Transcript] | type[Readout]
) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        chat.screen.query_one(where).focus()
        await chat.until(lambda: place(chat) == where.__name__)
        await chat.press("hello, you")
        assert chat.screen.prompt.text == "hello, you"
        assert not chat.screen.prompt.mode
        assert chat.screen.transcript.selected_turn is None
        chat.screen.query_one(where).focus()
        await chat.until(lambda: place(chat) == where.__name__)
        await chat.press("ctrl+n")  # what is bound still is
        await chat.until(lambda: not chat.screen.talk.path)


async def test_walking_into_the_conversation_marks_the_turn_that_keys_act_on(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("One")
        await chat.say("Two")
        assert "▌" not in chat.text.replace("▌ ", "", 1)  # but for the prompt
        chat.screen.transcript.focus()
        await chat.until(lambda: chat.screen.transcript.selected_turn is not None)
        assert chat.screen.transcript.selected_turn is not None
        assert chat.screen.transcript.selected_turn.turn == chat.path[-1]
        await chat.press("k", "k", "k", "e")
        await chat.until(lambda: chat.screen.prompt.mode == "editing")
        assert chat.screen.prompt.text == "One"
        assert place(chat) == "Prompt"
        assert chat.screen.transcript.selected_turn is None


async def test_without_a_mark_letters_begin_nothing(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("One")
        chat.screen.transcript.focus()
        await chat.until(lambda: place(chat) == "Transcript")
        await chat.press("end", "e", "r")
        await chat.pilot.pause()
        assert not chat.screen.prompt.mode
        assert len(chat.screen.talk.turns) == 2


async def test_the_mark_of_new_text_names_the_key_that_goes_there(chatting: Open) -> None:
    async with chatting(text="word " * 900, pace_s=0.002) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: chat.screen.transcript.max_scroll_y > 4)
        await chat.press("pageup")
        await chat.until(lambda: "↓ " in chat.text and "· Ctrl+End" in chat.text)
        chat.screen.transcript.focus()
        await chat.until(lambda: "· End" in chat.text)
        await chat.press("end")
        await chat.until(lambda: "· End" not in chat.text)
