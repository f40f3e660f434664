"""Getting a model to answer: the first one, another one, the same one with other parameters."""

from typing import TYPE_CHECKING

import msgspec

from localinfer.errors import LocalInferError, ModelNotFound
from localinfer.history.values import Parameters
from tui.desk import Superseded

if TYPE_CHECKING:
    from localinfer.downloads import Download
    from tui.parameters import ModelFacts
    from tui.screens.chat.screen import ChatScreen


class Models:
    """What the chat screen does about models; everything may be called on the event loop only."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen
        self._awaited = ""  # what is to be used once it has been fetched

    async def first(self) -> None:
        """The model that was asked for, else the usual one, else what the person chooses on a new machine."""
        desk, owner = self._screen.desk, self._screen.owner
        if desk.reference is not None:
            await self.use(desk.reference, force=owner.start.force)
            return
        try:
            await desk.use(None, self._screen.talk.parameters)
        except ModelNotFound:
            await self._welcome()
        except LocalInferError as error:
            self._screen.trouble(error)

    async def _welcome(self) -> None:
        from localinfer.advice import Advice
        from tui.screens.welcome import WelcomeScreen

        owner, desk = self._screen.owner, self._screen.desk
        screen = WelcomeScreen(
            Advice, owner.downloads, owner.engines, options=owner.start.options, offline=owner.offline
        )
        welcomed = await owner.push_screen_wait(screen)
        if welcomed is None:
            owner.exit()
            return
        desk.took(welcomed.reference)
        background = owner.downloads.get(welcomed.background) if welcomed.background else None
        if background is not None and background.active:
            self._screen.tell(f"{background.title} is being fetched meanwhile · F2 shows how far it is")
        elif background is not None:
            await self.downloaded(background)

    async def choose(self) -> None:
        """Let the person find, fetch and switch models."""
        from localinfer.advice import Advice
        from tui.screens.models import ModelsScreen

        owner, screen = self._screen.owner, self._screen
        chosen = await owner.push_screen_wait(
            ModelsScreen(
                Advice,
                owner.downloads,
                owner.engines,
                options=screen.desk.options(screen.talk.parameters),
                offline=owner.offline,
            )
        )
        if chosen is not None:
            await self.use(chosen.reference, force=chosen.force)

    async def use(self, reference: str, *, force: bool = False) -> None:
        """Let ``reference`` answer; what is not here is fetched first. A reply that is being written is stopped."""
        if self._screen.talk.writing:  # one that still waits for a model waits for the new one
            self._screen.talk.stop()
        try:
            await self._screen.desk.use(reference, self._screen.talk.parameters, force=force)
        except Superseded:
            return
        except ModelNotFound as error:
            await self._fetch(reference, error)
        except LocalInferError as error:
            self._screen.trouble(error)

    async def _fetch(self, reference: str, missing: ModelNotFound) -> None:
        """Fetch what the catalogue or the hub may have; it is used when it has arrived."""
        from localinfer.models import references
        from localinfer.models.catalog import catalog

        name, _, quantization = reference.partition(":")
        known = catalog().get(reference) or (catalog().get(name) if quantization else None)
        if known is None and not references.may_be_hub(reference):
            self._screen.trouble(missing)
            return
        self._awaited = reference
        self._screen.owner.downloads.start(reference)
        self._screen.tell(f"{reference} is not here yet; it is being fetched · F2 shows how far it is")

    async def downloaded(self, download: "Download") -> None:
        """A download has changed its state. Where models are listed, that shows by itself."""
        screen = self._screen
        if await screen.drafters.downloaded(download):
            return
        if download.state == "done" and download.reference == self._awaited:
            self._awaited = ""
            await self.use(download.reference)
        elif screen.owner.screen is not screen or download.reference == screen.desk.reference:
            return
        elif download.state == "failed":
            screen.tell("")
            message = f"{download.title} could not be fetched: {download.message}"
            screen.trouble(LocalInferError(message, f"{download.hint} What has arrived is kept; F2 goes on with it."))
        elif download.state == "done":
            screen.tell("")
            screen.owner.say(f"{download.title} is here. To let it answer: F2, or /model {download.name}")

    async def apply(self, parameters: Parameters) -> None:
        """Answer with ``parameters`` from here on. The model is loaded again where they ask for it; if that cannot be
        done, what they say about loading is not taken."""
        desk, talk = self._screen.desk, self._screen.talk
        if not desk.suits(parameters) and desk.reference is not None:
            if talk.writing:
                talk.stop()
            try:
                await desk.use(desk.reference, parameters, exact=True)
            except Superseded:
                return
            except LocalInferError as error:
                self._screen.trouble(error)
                now = talk.parameters
                parameters = msgspec.structs.replace(
                    parameters, context=now.context, kv_type=now.kv_type, threads=now.threads, draft=now.draft
                )
        await talk.set_parameters(parameters)
        self._screen.weigh()

    def line(self) -> list[str]:
        """The model in use, as the header says it."""
        state, engine = self._screen.desk.state, self._screen.desk.engine
        model = engine.status().model if engine is not None else None
        if engine is None or model is None:
            waiting = f"loading {state.name}".strip()
            failed = f"{state.name or 'the model'} could not be loaded"
            return [{"none": "no model is loaded", "failed": failed}.get(state.phase, waiting)]
        placing = engine.placing
        device = placing.where if placing is not None and placing.where != "CPU" else model.placement
        return [model.name, model.quantization, model.backend, device, f"context {model.context:,}"]

    def facts(self) -> "ModelFacts":
        """What the parameters panel says of the loaded model."""
        from tui.parameters import ModelFacts

        engine = self._screen.desk.engine
        model = engine.status().model if engine is not None else None
        if engine is None or model is None:
            return ModelFacts()
        plan = engine.placing.plan if engine.placing is not None else None
        return ModelFacts(
            name=model.name,
            context=model.context,
            trained_context=plan.trained_context if plan else None,
            max_context=plan.max_context if plan else None,
            threads=engine.options.threads,
            kv_type=engine.options.kv_type,
            draft=model.draft,
        )
