"""What drafts for the model: ``/draft``, what it changes at once and what it loads, and where it is seen."""

import pytest
from msgspec.structs import replace

from localinfer import drafts
from localinfer.drafts import Offer
from localinfer.engines import Engines, Prospect
from localinfer.errors import BadRequest
from localinfer.generation import Generation
from localinfer.models.store import ModelRef
from localinfer.types import GenerationRequest, LoadOptions, Speculation
from tests.tui.chat.conftest import Chatting, Open
from tests.tui.readout.replies import INFO
from tui.parameters import DRAFTERS
from tui.screens.chat import drafters
from tui.screens.chat.drafters import explained, options
from tui.screens.choose import Choice, ChooseScreen

SMALL = Offer(name="qwen3-0.6b", title="Qwen3 0.6B", fetched=True, fits=True, sentence="0.6 GB, fits on the GPU")
ABSENT = replace(SMALL, name="other", title="Other", fetched=False, fits=None, sentence="0.2 GB, cannot be told")
LARGE = replace(SMALL, name="large", title="Large", fits=False, sentence="3.0 GB, does not fit")


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The draft models that engines were asked for; one called "alien" cannot draft."""
    asked: list[str] = []
    prepare = Engines.prepare

    def seen(
        self: Engines, model: ModelRef | str, options: LoadOptions, *, force: bool = False, draft: ModelRef | str = ""
    ) -> Prospect:
        asked.append(str(draft))
        if draft == "alien":
            raise BadRequest("alien cannot draft for this model.", "Name another.", param="draft")
        return prepare(self, model, options, force=force, draft=draft)

    monkeypatch.setattr(Engines, "prepare", seen)
    monkeypatch.setattr(drafters, "_is_here", lambda name: name != "absent")
    return asked


def speculation(chat: Chatting) -> Speculation:
    return chat.screen.talk.parameters.speculation


def told(chat: Chatting, words: str) -> bool:
    return any(words in one.message for one in chat.app._notifications)


async def draft(chat: Chatting, argument: str) -> None:
    await chat.screen.drafters.do(argument)


async def test_a_word_holds_from_the_next_message_on_and_loads_nothing(
    chatting: Open, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[GenerationRequest] = []
    async with chatting() as chat:
        engine = chat.screen.desk.engine
        assert engine is not None
        assert "prompt lookup" in chat.text
        submit = engine.submit

        def seen(request: GenerationRequest) -> Generation:
            asked.append(request)
            return submit(request)

        monkeypatch.setattr(engine, "submit", seen)
        await chat.say("Hello")
        await draft(chat, "off")
        await chat.until(lambda: "switched off; /draft auto" in chat.text)
        await chat.until(lambda: "Nothing drafts, from the next message on." in chat.text)
        await chat.say("And now?")
        await draft(chat, "AUTO")
        assert speculation(chat) == Speculation()
        await chat.say("Once more")
        assert [one.speculation.drafter for one in asked] == ["auto", "off", "auto"]
        assert prepared == ["auto"]
        kept = chat.screen.talk.conversation
        assert kept is not None
        await draft(chat, "lookup")
        assert chat.app.history.conversation(kept.id).parameters.speculation.drafter == "lookup"


async def test_a_draft_model_loads_the_model_again(chatting: Open, prepared: list[str]) -> None:
    async with chatting() as chat:
        before = chat.screen.desk.engine
        await draft(chat, "off")
        await chat.press("/draft qwen3-0.6b", "enter")
        await chat.until(lambda: chat.screen.desk.engine not in (None, before))
        await chat.until(lambda: chat.screen.talk.parameters.draft == "qwen3-0.6b")  # kept once it is loaded
        assert prepared == ["auto", "qwen3-0.6b"]
        assert speculation(chat).drafter == "auto", "what was chosen is used"
        await chat.say("Hello")
        assert prepared == ["auto", "qwen3-0.6b"], "once"


async def test_one_that_cannot_draft_is_refused_and_nothing_changes(chatting: Open, prepared: list[str]) -> None:
    async with chatting() as chat:
        engine, before = chat.screen.desk.engine, chat.screen.talk.parameters
        await draft(chat, "alien")
        assert chat.screen.talk.parameters == before
        assert chat.screen.desk.engine is engine
        await chat.until(lambda: told(chat, "alien cannot draft"))
        # A conversation that asks for it all the same, as one with another model may, is answered without it.
        await chat.screen.talk.set_parameters(replace(before, draft="alien"))
        await chat.say("Hello")
        assert chat.path[-1].content == "An answer."
        assert prepared[-2:] == ["alien", "off"]
        assert "answers without it" in chat.screen.desk.state.notice


async def test_one_that_is_not_here_is_fetched_first(
    chatting: Open, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from localinfer.downloads import Download

    async with chatting() as chat:
        monkeypatch.setattr(chat.app.downloads, "start", lambda reference: None)
        await draft(chat, "absent")
        await chat.until(lambda: "absent is not here yet" in chat.text)
        assert prepared == ["auto"]
        monkeypatch.setattr(drafters, "_is_here", lambda name: True)
        await chat.screen.models.downloaded(Download(reference="absent", title="Absent", state="done", name="absent"))
        assert prepared == ["auto", "absent"]


async def test_what_can_be_no_model_is_refused(chatting: Open) -> None:
    async with chatting() as chat:
        for argument, words in (("no such model", "neither a model nor"), ("model", "No draft model is loaded")):
            with pytest.raises(BadRequest, match=words):
                await draft(chat, argument)
        assert speculation(chat) == Speculation()


async def test_alone_it_offers_what_can_draft(
    chatting: Open, prepared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafters.Drafters, "_offers", lambda self: (SMALL, ABSENT, LARGE))
    async with chatting() as chat:
        await chat.press("/draft", "enter")
        await chat.until(lambda: isinstance(chat.app.screen, ChooseScreen))
        await chat.until(lambda: "Draft model Qwen3 0.6B" in chat.text)
        await chat.press("down", "enter")
        await chat.until(lambda: speculation(chat).drafter == "lookup")
        chat.screen.run_worker(draft(chat, ""))
        await chat.until(lambda: "Prompt lookup only · now" in chat.text)
        await chat.press("down", "down", "down", "enter")
        await chat.until(lambda: chat.screen.talk.parameters.draft == SMALL.name)
        assert prepared[-1] == SMALL.name


def labels(found: tuple[Choice, ...]) -> list[str]:
    return [one.label for one in found]


def test_what_may_be_chosen() -> None:
    found = options(Speculation(), INFO, (SMALL, ABSENT, LARGE))
    assert labels(found)[0] == "Automatic · now"
    assert [one.reason for one in found] == ["", "", "", "", "", "3.0 GB, does not fit"]
    assert found[4].detail.endswith("· is fetched first")
    loaded = options(Speculation(drafter="off"), replace(INFO, draft=SMALL.name), (SMALL,))
    assert labels(loaded) == [
        "Automatic",
        "Prompt lookup only",
        "Off · now",
        "Draft model Qwen3 0.6B · loaded",
        "Without qwen3-0.6b",
    ]
    assert "qwen3-0.6b where that finds nothing" in loaded[0].detail


def test_that_no_draft_model_is_to_be_had_is_said_and_not_of_one_that_is_loaded() -> None:
    missing = "No model was found"
    assert missing in explained(INFO, ())
    assert missing not in explained(INFO, (SMALL,))
    assert missing not in explained(replace(INFO, draft="a file"), ())


def test_where_nothing_can_draft_only_off_can_be_chosen() -> None:
    found = options(Speculation(), replace(INFO, no_speculation="its state cannot be rolled back"), (SMALL,))
    assert [bool(one.reason) for one in found] == [True, True, False, True]
    assert labels(found)[2] == "Off · now"
    assert "cannot be rolled back" in found[0].reason


def test_every_word_of_the_command_line_is_a_word_here() -> None:
    assert set(drafts.WORDS) <= set(DRAFTERS)
