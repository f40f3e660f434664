"""What drafts for the model that answers: asking the person, and doing what they chose."""

from typing import TYPE_CHECKING

import msgspec

from localinfer.errors import BadRequest, ModelNotFound
from localinfer.types import ModelInfo, Speculation
from tui.aside import aside
from tui.parameters import DRAFTERS
from tui.screens.choose import Choice, ChooseScreen

if TYPE_CHECKING:
    from localinfer.downloads import Download
    from localinfer.drafts import Offer
    from tui.screens.chat.screen import ChatScreen

_ALONE = "alone"  # without a draft model
_MODEL = "model "  # before the name of one
_TEXT = (
    "A drafter proposes tokens, and the model only checks them, several in one pass. Its replies stay the same; they "
    "come sooner where drafts are right, and where none pays, none is made."
)
_FOUND = "Drafts what was said before and is said again; it takes no memory."
_NONE = "No model was found that can draft for this one."
_TOLD = {
    "auto": "Whatever there is drafts, from the next message on.",
    "lookup": "Only prompt lookup drafts, from the next message on.",
    "model": "Only the draft model drafts, from the next message on.",
    "off": "Nothing drafts, from the next message on.",
}


class Drafters:
    """What ``/draft`` does on a chat screen."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen
        self._awaited = ""  # the draft model that is used once it has been fetched

    async def do(self, argument: str) -> None:
        """``argument`` is what drafts: a word or a model; where it is empty, the person chooses. Raises
        ``LocalInferError``."""
        if not argument:
            await self._choose()
        elif argument.casefold() in DRAFTERS:
            await self._by(argument.casefold())
        else:
            await self._with(argument)

    async def downloaded(self, download: "Download") -> bool:
        """Whether a download was the awaited draft model; one that has arrived is used."""
        if not self._awaited or download.reference != self._awaited or download.state not in ("done", "failed"):
            return False
        self._awaited = ""
        if download.state == "done":
            await self._with(download.reference)
        return download.state == "done"

    async def _choose(self) -> None:
        screen = self._screen
        model = self._model
        if model is None:
            raise BadRequest("No model is loaded yet for which anything could draft.", "Choose one: F2.")
        screen.tell("looking for models that can draft …")
        try:
            offers = await aside(self._offers)
        finally:
            screen.tell("")
        choices = options(screen.talk.parameters.speculation, model, offers)
        title = f"What drafts for {model.name}?"
        chosen = await screen.app.push_screen_wait(ChooseScreen(title, explained(model, offers), choices))
        if chosen == _ALONE:
            await self._load("off")
        elif chosen is not None and chosen.startswith(_MODEL):
            await self._with(chosen.removeprefix(_MODEL))
        elif chosen is not None:
            await self._by(chosen)

    def _offers(self) -> "tuple[Offer, ...]":
        desk = self._screen.desk
        options = desk.options(self._screen.talk.parameters)
        if options.backend == "scripted" or not desk.reference:
            return ()
        from localinfer import drafts

        return drafts.offers(desk.reference, options, freed=desk.engines.freed)

    async def _by(self, drafter: str) -> None:
        talk = self._screen.talk
        if drafter == "model" and (self._model is None or not self._model.draft):
            raise BadRequest("No draft model is loaded.", "Choose one: /draft", param="draft")
        speculation = msgspec.structs.replace(talk.parameters.speculation, drafter=drafter)
        await talk.set_parameters(msgspec.structs.replace(talk.parameters, speculation=speculation))
        self._screen.tell(_TOLD[drafter])
        self._screen.tick()

    async def _with(self, name: str) -> None:
        """Let the model ``name`` draft; what is not here is fetched first."""
        if await aside(lambda: _is_here(name)):
            await self._load(name)
            return
        self._awaited = name
        self._screen.owner.downloads.start(name)
        self._screen.tell(f"{name} is not here yet; it drafts once it has been fetched · F2 shows how far it is")

    async def _load(self, draft: str) -> None:
        parameters = self._screen.talk.parameters
        speculation = parameters.speculation
        if draft != "off" and speculation.drafter in ("lookup", "off"):
            speculation = msgspec.structs.replace(speculation, drafter="auto")
        await self._screen.models.apply(msgspec.structs.replace(parameters, draft=draft, speculation=speculation))

    @property
    def _model(self) -> ModelInfo | None:
        engine = self._screen.desk.engine
        return engine.status().model if engine is not None else None


def explained(model: ModelInfo, offers: "tuple[Offer, ...]") -> str:
    """What drafting is, and that no draft model is to be had where that is so."""
    return _TEXT if offers or model.draft else f"{_TEXT} {_NONE}"


def options(now: Speculation, model: ModelInfo, offers: "tuple[Offer, ...]") -> tuple[Choice, ...]:
    """What may be chosen for ``model``, and what of it holds ``now``."""
    never = f"Nothing can draft for this model: {model.no_speculation}." if model.no_speculation else ""
    beside = f", and {model.draft} where that finds nothing" if model.draft else ", and a draft model if one is loaded"
    chosen = "off" if model.no_speculation or not now.most else now.drafter
    choices = [
        Choice(id="auto", label="Automatic", detail=f"Prompt lookup{beside}.", reason=never),
        Choice(id="lookup", label="Prompt lookup only", detail=_FOUND, reason=never),
        Choice(id="off", label="Off", detail="The model writes every token by itself."),
    ]
    choices = [_marked(choice, choice.id == chosen) for choice in choices]
    choices += [_offered(offer, offer.name == model.draft, never) for offer in offers]
    if model.draft:
        detail = "Loads the model again, and frees the memory of the draft model."
        choices.append(Choice(id=_ALONE, label=f"Without {model.draft}", detail=detail))
    return tuple(choices)


def _offered(offer: "Offer", loaded: bool, never: str) -> Choice:
    detail = offer.sentence[:1].upper() + offer.sentence[1:]
    fetch = "" if offer.fetched else " · is fetched first"
    reason = never or (detail if offer.fits is False else "")
    choice = Choice(
        id=f"{_MODEL}{offer.name}", label=f"Draft model {offer.title}", detail=detail + fetch, reason=reason
    )
    return _marked(choice, loaded, "loaded")


def _marked(choice: Choice, holds: bool, word: str = "now") -> Choice:
    return msgspec.structs.replace(choice, label=f"{choice.label} · {word}") if holds else choice


def _is_here(name: str) -> bool:
    """Whether there is no need to fetch it. Raises ``BadRequest`` for what can be no model at all."""
    from localinfer import drafts
    from localinfer.models import store

    drafts.check(name)
    try:
        model = store.resolve(name)
    except ModelNotFound:
        return False
    return bool(model.paths) and not store.missing(model)
