"""A conversation being had: its turns, what the model is asked, the reply being written, and what is on disk.

It knows the store and an engine and nothing of widgets: what happens is told to a ``View``. Everything runs on one
event loop; what may be slow (the disk) runs in threads.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from localinfer.engines import Opened
from localinfer.errors import ContextOverflow, LocalInferError, StorageUnavailable, WorkerDied
from localinfer.generation import Generation
from localinfer.history import tree
from localinfer.history.reply import Growing
from localinfer.history.store import History
from localinfer.history.values import Attachment, Conversation, Omission, Parameters, Turn, TurnState
from localinfer.metrics import now_ns
from localinfer.types import Done, Event, GenerationRequest, Queued
from tui.aside import aside

Role = Literal["user", "assistant"]

SAVE_S = 0.5
LEAST_ROOM = 256  # tokens for a reply: with less there is no use in beginning


class View(Protocol):
    """Whoever shows the conversation."""

    def conversation_changed(self) -> None:
        """Another conversation, another branch, or other turns: show ``talk.path``."""

    def turn_added(self, turn: Turn) -> None:
        """The person's message is on disk."""

    def reply_awaited(self, generation: Generation) -> None:
        """A reply is asked for; its events follow."""

    def reply_began(self, turn: Turn) -> None:
        """The model has it; ``turn`` is where the reply grows."""

    def reply_event(self, event: Event) -> None:
        """One event of it."""

    def reply_ended(self, turn: Turn) -> None:
        """It stays as it is now."""

    def trouble(self, error: LocalInferError) -> None:
        """Something failed that no turn says."""

    def settled(self) -> None:
        """What could not be put on disk is there now."""

    async def engine(self) -> Opened:
        """The engine to ask, opened if need be. Raises ``LocalInferError``."""

    async def make_room(self, overflow: ContextOverflow) -> bool:
        """The context is full; the person decides. True: something was changed, try again."""


class Talk:
    """One conversation at a time."""

    def __init__(self, history: History, view: View) -> None:
        self.history = history
        self.conversation: Conversation | None = None
        self.turns: tuple[Turn, ...] = ()
        self.parameters = Parameters()
        self.generation: Generation | None = None
        self._view = view
        self._busy = False
        self._growing: Growing | None = None
        self._opening = False
        self._owed: dict[object, Callable[[], object]] = {}  # what could not be put on disk yet

    # What is there

    @property
    def path(self) -> tuple[Turn, ...]:
        """The branch in view, from the first turn on."""
        head = self.conversation.head if self.conversation else None
        return tree.branch(self.turns, head)

    @property
    def omissions(self) -> tuple[Omission, ...]:
        """What the person agreed to leave out."""
        return self.conversation.omissions if self.conversation else ()

    @property
    def busy(self) -> bool:
        """Whether a reply is awaited or being written, or another conversation is being opened."""
        return self._busy

    @property
    def opening(self) -> bool:
        """Whether another conversation is being opened."""
        return self._opening

    @property
    def writing(self) -> bool:
        """Whether a reply is being written, or its prompt is being read."""
        return self._growing is not None

    def last(self, role: str) -> Turn | None:
        """The last turn of ``role`` on the branch."""
        return next((turn for turn in reversed(self.path) if turn.role == role), None)

    # Going from one conversation to another

    def new(self) -> None:
        """An empty conversation with the same parameters; it comes into being with its first message."""
        self.conversation, self.turns = None, ()
        self._view.conversation_changed()

    async def open(self, conversation_id: int) -> None:
        """Go to a conversation; nothing can be sent meanwhile. Raises ``LocalInferError``."""
        if self._busy:
            return
        self._busy = self._opening = True
        try:
            conversation = await aside(lambda: self.history.conversation(conversation_id))
            turns = await aside(lambda: self.history.turns(conversation_id))
            self.conversation, self.turns, self.parameters = conversation, turns, conversation.parameters
            self._view.conversation_changed()
        finally:
            self._busy = self._opening = False

    async def reveal(self, turn_id: int) -> None:
        """Show the branch that a turn is on, if another is in view."""
        turn = next((one for one in self.turns if one.id == turn_id), None)
        if turn is None or self._busy or turn in self.path:
            return
        await self._change(head=tree.tip(self.turns, turn).id)
        self._view.conversation_changed()

    async def set_parameters(self, parameters: Parameters) -> None:
        """Answer with other parameters from here on."""
        self.parameters = parameters
        await self._change(parameters=parameters)

    async def leave_out(self, omission: Omission) -> None:
        """The model no longer sees what ``omission`` says."""
        await self._change(omissions=(*self.omissions, omission))
        self._view.conversation_changed()

    async def turn_page(self, turn: Turn, step: int) -> bool:
        """Show the branch ``step`` siblings of ``turn`` further; False where there is none."""
        others = tree.siblings(self.turns, turn)
        index = [other.id for other in others].index(turn.id) + step
        if self._busy or not 0 <= index < len(others):
            return False
        await self._change(head=tree.tip(self.turns, others[index]).id)
        self._view.conversation_changed()
        return True

    async def _change(self, **fields: Any) -> None:
        if self.conversation is None:
            return
        changed = msgspec.structs.replace(self.conversation, **fields)
        self.conversation = changed
        await self._kept(("change", changed.id, *fields), lambda: self.history.change(changed.id, **fields))

    # Asking and answering

    async def say(self, text: str, attachments: Sequence[Attachment] = (), *, instead_of: Turn | None = None) -> None:
        """Send a message, as another branch beside ``instead_of`` if that is given, and write the reply."""
        if self._busy:
            return
        self._busy = True
        try:
            path = self.path
            parent = instead_of.parent if instead_of else (path[-1].id if path else None)
            turn = await self._add("user", text, parent, tuple(attachments))
            if instead_of is not None:
                self._view.conversation_changed()
            else:
                self._view.turn_added(turn)
            await self._answer(turn)
        finally:
            self._busy = False

    async def retry(self, turn: Turn) -> None:
        """Answer again: the message ``turn``, or the one that the reply ``turn`` answers, as another branch."""
        asked = turn if turn.role == "user" else next((one for one in self.turns if one.id == turn.parent), None)
        if self._busy or asked is None:
            return
        self._busy = True
        try:
            await self._change(head=asked.id)
            self._view.conversation_changed()
            await self._answer(asked)
        finally:
            self._busy = False

    def stop(self) -> bool:
        """End the reply that is being written; False where there is none."""
        if self.generation is None:
            return False
        self.generation.cancel()
        return True

    async def _answer(self, asked: Turn) -> None:
        while True:
            engine = None
            try:
                engine = await self._view.engine()
                await self._generate(engine, asked)
                return
            except WorkerDied as error:
                # Another model was chosen while this one was loaded: the message waits for that one.
                if engine is None or await self._another(engine) is None:
                    self._view.conversation_changed()
                    self._view.trouble(error)
                    return
            except ContextOverflow as overflow:
                self._view.conversation_changed()
                if not await self._view.make_room(overflow):
                    return
            except LocalInferError as error:
                self._view.conversation_changed()
                self._view.trouble(error)
                return

    async def _another(self, engine: Opened) -> Opened | None:
        """The engine that has taken the place of ``engine``, which was closed; None where it simply died."""
        if engine.status().state != "closed":
            return None
        with contextlib.suppress(LocalInferError):
            now = await self._view.engine()
            return now if now is not engine else None
        return None

    def request(self, asked: Turn) -> GenerationRequest:
        """What the model is asked for the message ``asked``."""
        path = tree.branch(self.turns, asked.id)
        return GenerationRequest(
            messages=tree.messages(path, self.parameters, self.omissions),
            sampling=self.parameters.sampling,
            max_tokens=self.parameters.max_tokens,
            speculation=self.parameters.speculation,
            label="chat",
        )

    async def _generate(self, engine: Opened, asked: Turn) -> None:
        """Raises what went wrong before the model began to read; after that, an error becomes a failed reply."""
        generation = self.generation = engine.submit(self.request(asked))
        growing: Growing | None = None
        keeper: asyncio.Task[None] | None = None
        done: Done | None = None
        note = ""
        self._view.reply_awaited(generation)
        try:
            async for event in generation:
                if growing is None and isinstance(event, Queued):
                    _check_room(event, engine)
                    turn = await self._add("assistant", "", asked.id, model=engine.options.name)
                    growing = self._growing = Growing(self.history, turn)
                    self._view.reply_began(turn)
                    keeper = asyncio.create_task(self._keep(growing))
                elif growing is not None:
                    growing.observe(event)
                self._view.reply_event(event)
                if isinstance(event, Done):
                    done = event
        except LocalInferError as error:
            if growing is None:
                raise
            note = f"{error.message} {error.hint}".strip()
        except asyncio.CancelledError:  # the application is being left: there is no later moment
            if growing is not None:
                with contextlib.suppress(LocalInferError):
                    growing.end(Done(finish_reason="cancelled", at_ns=now_ns(), metrics=generation.metrics))[1]()
            raise
        finally:
            generation.cancel()
            self.generation = self._growing = None
            if keeper is not None:
                keeper.cancel()
                await asyncio.gather(keeper, return_exceptions=True)
        if growing is None:  # stopped before the model had it
            self._view.conversation_changed()
            return
        if done is not None and done.finish_reason == "length":
            limit = self.parameters.max_tokens
            reached = limit is not None and generation.metrics.completion_tokens >= limit
            note = f"at the limit of {limit:,} tokens" if reached else "at the end of the context"
        turn, keep = growing.end(done, note)
        self.turns = tuple(turn if one.id == turn.id else one for one in self.turns)
        await self._kept(turn.id, keep)
        self._view.reply_ended(turn)

    async def _keep(self, growing: Growing) -> None:
        while True:
            await asyncio.sleep(SAVE_S)
            await self._kept(growing.turn.id, growing.save)

    async def _add(
        self, role: Role, text: str, parent: int | None, attachments: tuple[Attachment, ...] = (), model: str = ""
    ) -> Turn:
        if self.conversation is None:
            self.conversation = await aside(lambda: self.history.start(parameters=self.parameters))
        id = self.conversation.id
        state: TurnState = "growing" if role == "assistant" else "whole"
        turn = await aside(
            lambda: self.history.add(id, role, text, parent=parent, attachments=attachments, state=state, model=model)
        )
        self.turns = (*self.turns, turn)
        self.conversation = await aside(lambda: self.history.conversation(id))
        return turn

    async def _kept(self, what: object, keep: Callable[[], object]) -> None:
        """Put something on disk. What cannot be put there is owed: it is tried again, and said once."""
        told = bool(self._owed)
        self._owed.pop(what, None)
        self._owed[what] = keep
        if (error := await aside(self._settle)) is not None and not told:
            self._view.trouble(error)

    @property
    def owes(self) -> bool:
        """Whether something is not on disk that should be."""
        return bool(self._owed)

    async def settle(self) -> None:
        """Try again to put on disk what is owed."""
        if self._owed and await aside(self._settle) is None:
            self._view.settled()

    def close(self) -> None:
        """The last try."""
        self._settle()

    def _settle(self) -> LocalInferError | None:
        """Put on disk what is owed, the oldest first; the error that stands in the way."""
        for what, keep in tuple(self._owed.items()):
            try:
                keep()
            except StorageUnavailable as error:
                return error
            except LocalInferError as error:  # it can never be kept: the conversation is gone
                self._owed.pop(what, None)
                return error
            if self._owed.get(what) is keep:
                self._owed.pop(what, None)
        return None


def _check_room(queued: Queued, engine: Opened) -> None:
    model = engine.status().model
    if model is None:
        return
    room = model.context - queued.prompt_tokens
    if room < min(LEAST_ROOM, model.context // 8):
        raise ContextOverflow(
            f"Only {max(0, room):,} of {model.context:,} tokens are left for a reply.",
            "Make room, or ask for a larger context.",
            prompt_tokens=queued.prompt_tokens,
            context=model.context,
        )
