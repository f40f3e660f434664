"""Models on the chat screen: parameters that ask for a reload, what cannot be had, switching, and a search hit."""

import msgspec

from localinfer.history.values import Parameters
from localinfer.types import LoadOptions, Sampling
from tests.tui.chat.conftest import Open
from tests.tui.waiting import until
from tui.app import LocalInfer
from tui.start import Start


async def test_parameters_that_need_it_load_the_model_again(chatting: Open) -> None:
    async with chatting() as chat:
        before = chat.screen.desk.engine
        await chat.press("/context 4096", "enter")
        await chat.until(lambda: chat.screen.desk.engine not in (None, before))
        await chat.until(lambda: "context 4,096" in chat.text)
        assert chat.screen.talk.parameters.context == 4096
        await chat.say("Hello")
        assert chat.path[-1].state == "whole"


async def test_a_context_that_cannot_be_had_is_refused_and_not_kept(starter_model: object) -> None:
    options = LoadOptions(backend="llama.cpp", model="", name="", context=2048)
    app = LocalInfer(Start(options=options, sampling=Sampling(temperature=0), reference=str(starter_model)))
    try:
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await until(pilot, lambda: app.chat.desk.state.phase == "ready")
            engine = app.chat.desk.engine
            asked = msgspec.structs.replace(app.chat.talk.parameters, context=2**31 - 1, system="Be brief.")
            await app.chat.models.apply(asked)
            assert app.chat.talk.parameters.context is None
            assert app.chat.talk.parameters.system == "Be brief."  # what can be had is taken
            assert app.chat.desk.engine is engine
            # A conversation that asks for it all the same, as one from another machine may, is answered with what fits.
            await app.chat.talk.set_parameters(Parameters(context=2**31 - 1, max_tokens=2))
            await app.chat.talk.say("Hello")
            assert app.chat.talk.path[-1].role == "assistant"
            assert app.chat.talk.path[-1].metrics is not None
            assert "does not fit" in app.chat.desk.state.notice
    finally:
        app.close()


async def test_switching_while_a_reply_is_written_keeps_it(chatting: Open) -> None:
    async with chatting(text="word " * 400, pace_s=0.005) as chat:
        await chat.press("Hello", "enter")
        await chat.until(lambda: "word word" in chat.text)
        await chat.press("/model text=Other", "enter")
        await chat.until(lambda: not chat.screen.talk.busy)
        assert chat.path[-1].state == "stopped"
        await chat.until(lambda: chat.screen.desk.reference == "text=Other" and chat.screen.desk.state.phase == "ready")
        await chat.say("And now")
        assert chat.path[-1].content == "Other"


async def test_a_search_hit_shows_the_branch_it_is_on(chatting: Open) -> None:
    async with chatting() as chat:
        await chat.say("The first wording")
        first = chat.path[0]
        await chat.press("f8")
        chat.screen.prompt.clear()
        await chat.screen.talk.say("Another wording", instead_of=first)
        assert first not in chat.path
        conversation = chat.screen.talk.conversation
        assert conversation is not None
        await chat.screen.open_conversation(conversation.id, first.id)
        assert first.id in [turn.id for turn in chat.path]


async def test_what_cannot_be_done_is_said(chatting: Open) -> None:
    async with chatting() as chat:
        for key, words in (
            ("ctrl+r", "nothing to answer"),
            ("f8", "no message to edit"),
            ("ctrl+g", "no reply to copy"),
            ("f12", "no code to copy"),
        ):
            await chat.press(key)
            await chat.until(lambda words=words: words in chat.text)  # type: ignore[misc]


async def test_exports_have_their_suffix(chatting: Open, tmp_path: object, monkeypatch: object) -> None:
    import os
    from pathlib import Path

    folder = Path(str(tmp_path))
    before = Path.cwd()
    os.chdir(folder)
    try:
        async with chatting() as chat:
            await chat.say("Tell me")
            await chat.press("/export markdown", "enter")
            await chat.until(lambda: (folder / "Tell me.md").exists() or (folder / "Tell-me.md").exists())
            await chat.press("/export json", "enter")
            await chat.until(lambda: any(path.suffix == ".json" for path in folder.iterdir()))
            await chat.press("/export markdown", "enter")  # and nothing is written over
            await chat.until(lambda: any("exists already" in one.message for one in chat.app._notifications))
    finally:
        os.chdir(before)
