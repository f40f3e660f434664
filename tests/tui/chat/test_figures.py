"""The figures of the chat screen: whose they are, what is said while a model is loaded, and where they are."""

from urllib.parse import urlencode

import pytest

from localinfer.types import Metrics
from tests.tui.chat.conftest import Chatting, Open
from tui.screens.chat import screen
from tui.widgets.readout import Reading, Readout
from tui.widgets.readout.explanations import EXPLANATIONS


def reading(chat: Chatting) -> Reading:
    return chat.screen.gauges.read()


def of_last_reply(chat: Chatting) -> Metrics:
    metrics = chat.path[-1].metrics
    assert metrics is not None
    return metrics


async def test_a_long_first_pass_is_prefill_from_the_start(chatting: Open) -> None:
    async with chatting(prefill_s=0.01, chunk=1000) as chat:
        await chat.press("x" * 20, "enter")
        await chat.until(lambda: reading(chat).phase == "prefill")
        now = reading(chat)
        assert (now.prefilled, now.metrics and now.metrics.cached_tokens) == (0, 0)
        await chat.until(lambda: (reading(chat).parts.prefill_s or 0) > 0.2)
        assert (reading(chat).parts.queue_s or 0) < 0.2
        assert "reading the prompt · 0 of" in chat.text
        live = reading(chat)
        await chat.until(lambda: not chat.screen.talk.busy)
        assert of_last_reply(chat).queue_s == live.parts.queue_s


async def test_the_context_holds_the_reply_until_the_next(chatting: Open) -> None:
    async with chatting(think="Let me see. ", text="An answer.") as chat:
        await chat.screen._commands.do("system", "Be brief.")
        for prompt in ("Hello", "And now?"):
            await chat.say(prompt)
            during = reading(chat).budget
            chat.screen.weigh()
            await chat.app.workers.wait_for_complete()
            metrics, budget = of_last_reply(chat), reading(chat).budget
            assert budget is not None
            assert budget.system == len("Be brief.")
            assert budget.system + budget.history == metrics.prompt_tokens
            assert (budget.reply, budget.cached) == (metrics.completion_tokens, metrics.cached_tokens)
            assert during is not None
            assert during.used == budget.used
        assert budget is not None
        assert budget.cached
        assert f"reply {budget.reply:>7,}" in chat.text


async def test_figures_are_those_of_the_last_reply_in_view(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        first, one = of_last_reply(chat), chat.screen.talk.conversation
        assert one is not None
        await chat.press("ctrl+r")
        await chat.until(lambda: len(chat.screen.talk.turns) == 3 and not chat.screen.talk.busy)
        second = of_last_reply(chat)
        assert reading(chat).metrics == second
        assert second != first
        await chat.press("alt+left")
        await chat.until(lambda: reading(chat).metrics == first)
        assert reading(chat).elapsed_s == first.ttft_s
        assert any(tps is not None for tps in reading(chat).history)
        await chat.press("ctrl+n")
        assert (reading(chat).metrics, reading(chat).elapsed_s) == (None, None)
        chat.screen.weigh()
        await chat.app.workers.wait_for_complete()
        empty = reading(chat).budget
        assert empty is not None
        assert (empty.reply, empty.cached) == (0, None)
        await chat.screen.open_conversation(one.id)
        assert reading(chat).metrics == first
        await chat.until(lambda: (reading(chat).budget or empty).reply == first.completion_tokens)


async def test_a_reply_that_failed_before_it_began_shows_the_one_before(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        first = of_last_reply(chat)
        chat.screen.talk.parameters = type(chat.screen.talk.parameters)(system="x" * 40_000)
        await chat.press("More", "enter")
        await chat.until(lambda: chat.app.screen is not chat.screen)
        assert reading(chat).metrics == first


async def test_loading_is_told_and_leaves_the_figures(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("Hello")
        before = reading(chat)
        chat.screen.use(urlencode({"load_s": 1}))
        await chat.until(lambda: chat.screen.desk.state.phase == "loading")
        await chat.until(lambda: (reading(chat).load_progress or 0) > 0)
        now = reading(chat)
        assert now.phase == "loading"
        assert (now.metrics, now.parts, now.roofline) == (before.metrics, before.parts, before.roofline)
        await chat.until(lambda: "loading" in "".join(painted(chat)))
        await chat.until(lambda: reading(chat).phase == "done")
        assert reading(chat).metrics == before.metrics


async def test_from_the_start_something_is_seen_to_be_done(chatting: Open) -> None:
    async with chatting(load_s=1, ready=False) as chat:
        phases = []
        while chat.screen.desk.state.phase != "ready":
            if chat.screen.desk.state.phase != "none":
                phases.append(reading(chat).phase)
            await chat.pilot.pause(0.01)
        assert set(phases) <= {"checking", "loading"}
        assert "loading" in phases


def painted(chat: Chatting) -> list[str]:
    readout = chat.screen.readout
    return ["".join(segment.text for segment in readout.render_line(y)) for y in range(readout.size.height)]


async def narrow(chat: Chatting) -> None:
    await chat.until(lambda: chat.screen.has_class("-narrow") and not chat.screen.readout.display)


@pytest.mark.parametrize("way", ["key", "command"])
async def test_in_a_narrow_terminal_the_column_takes_the_place_of_the_conversation(
    chatting: Open, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chatting(size=(80, 24)) as chat:
        await narrow(chat)
        await chat.say("Hello")
        if way == "key":
            await chat.press("alt+r")
        else:
            await chat.press("/stats", "enter")
        await chat.until(lambda: isinstance(chat.app.focused, Readout))
        await chat.until(lambda: any("first text" in line for line in painted(chat)))
        await chat.press("down", "down")
        assert EXPLANATIONS["queue"].meaning[1:] in "\n".join(painted(chat))
        assert not chat.screen.transcript.is_on_screen
        monkeypatch.setattr(chat.screen, "action_stop", pytest.fail)
        await chat.press("escape")
        await chat.until(lambda: chat.screen.prompt.is_on_screen and not chat.screen.readout.display)
        await chat.press("x")
        await chat.until(lambda: chat.screen.prompt.text == "x")
        await chat.press("alt+r", "alt+r")
        await chat.until(lambda: not chat.screen.readout.display)


async def test_figures_and_list_do_not_share_a_narrow_terminal(chatting: Open) -> None:
    async with chatting(size=(80, 24)) as chat:
        await narrow(chat)
        for _ in range(2):
            await chat.press("alt+r")
            await chat.until(lambda: chat.screen.readout.display)
            assert not chat.screen.has_class("-listing")
            await chat.press("f3")
            await chat.until(lambda: chat.screen.has_class("-listing") and not chat.screen.readout.display)


@pytest.mark.parametrize("dialog", [False, True])
async def test_a_wider_terminal_has_the_column_with_figures_at_once(
    chatting: Open, dialog: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chatting(size=(80, 24)) as chat:
        await narrow(chat)
        await chat.say("Hello")
        ttft = f"{of_last_reply(chat).ttft_s:.2f} s"
        monkeypatch.setattr(screen, "IDLE_TICKS", 10**9)  # nobody waits for the next second
        if dialog:
            await chat.press("f1")
            await chat.until(lambda: chat.app.screen is not chat.screen)
        await chat.pilot.resize_terminal(120, 36)
        await chat.until(lambda: any(ttft in line for line in painted(chat)))
        if dialog:
            await chat.press("escape")
            await chat.until(lambda: chat.app.screen is chat.screen and ttft in chat.text)


async def test_what_was_shown_in_the_place_of_the_conversation_goes_beside_it(chatting: Open) -> None:
    async with chatting(size=(80, 24)) as chat:
        await narrow(chat)
        await chat.press("alt+r")
        await chat.until(lambda: chat.screen.readout.display)
        await chat.pilot.resize_terminal(120, 36)
        await chat.until(lambda: chat.screen.prompt.is_on_screen and chat.screen.readout.is_on_screen)
        await chat.pilot.resize_terminal(80, 24)
        await narrow(chat)
        assert chat.screen.prompt.is_on_screen
