"""How a conversation is shown while it goes on: what ``Talk`` tells, put into transcript, prompt and figures."""

from collections import defaultdict
from typing import TYPE_CHECKING

from localinfer.engines import Opened
from localinfer.errors import ContextOverflow, LocalInferError
from localinfer.generation import Generation
from localinfer.history import tree
from localinfer.history.values import Turn
from localinfer.types import Event, Loading, Prefilled, Queued, Reasoning, Text
from tui.screens.chat.figures import figures
from tui.widgets.transcript import OmissionMark, ShownTurn

WRITING = "a reply is being written · Esc stops it"

if TYPE_CHECKING:
    from tui.screens.chat.screen import ChatScreen
    from tui.talk import Talk


class ChatView:
    """The ``talk.View`` of a chat screen."""

    def __init__(self, screen: "ChatScreen") -> None:
        self._screen = screen

    def conversation_changed(self) -> None:
        """Show the branch in view."""
        screen = self._screen
        screen.transcript.show(shown(screen.talk))
        screen.gauges.look_at(screen.talk)
        screen.prompt.remember([turn.content for turn in screen.talk.path if turn.role == "user"])
        screen.conversation_changed()

    def turn_added(self, turn: Turn) -> None:
        """The person's message is on disk."""
        self._screen.transcript.append(self._shown(turn))
        self._screen.transcript.follow()
        self._screen.conversation_changed()

    def _shown(self, turn: Turn) -> ShownTurn:
        return _shown(turn, _places(self._screen.talk))

    def reply_awaited(self, generation: Generation) -> None:
        """Measure from here on."""
        self._screen.gauges.choose(self._screen.desk.engine)
        self._screen.gauges.begin(generation)

    def reply_began(self, turn: Turn) -> None:
        """Show where it will grow."""
        self._screen.tell("")
        self._screen.transcript.begin_reply(self._shown(turn))

    def reply_event(self, event: Event) -> None:
        """Show one event of the reply."""
        self._screen.gauges.observe(event)
        transcript = self._screen.transcript
        match event:
            case Text(text=text):
                if text:
                    transcript.say(text)
            case Reasoning():
                transcript.think(event.text, event.tokens)
            case Prefilled() if event.done_tokens < event.prompt_tokens:
                transcript.status(f"reading the prompt · {event.done_tokens:,} of {event.prompt_tokens:,} tokens")
            case Queued():
                transcript.status("waiting for a slot" if event.ahead else "reading the prompt")
            case Loading():
                self._screen.tell(f"loading the model · {event.progress:.0%}")
            case _:
                pass

    def reply_ended(self, turn: Turn) -> None:
        """Show what is kept of it, and its figures."""
        self._screen.transcript.end_reply(self._shown(turn))
        self._screen.reply_ended(turn)

    def trouble(self, error: LocalInferError) -> None:
        """Something failed that no turn says."""
        self._screen.tell("")
        self._screen.trouble(error)

    def settled(self) -> None:
        """What could not be put on disk is there now."""
        self._screen.owner.forget_troubles()
        self._screen.tell("What could not be saved is on disk now.")

    async def engine(self) -> Opened:
        """The engine to ask."""
        return await self._screen.desk.ensure(self._screen.talk.parameters)

    async def make_room(self, overflow: ContextOverflow) -> bool:
        """Ask the person what to do about a full context."""
        from tui.screens.chat.room import make_room

        self._screen.prompt.unlock_sending()
        try:
            return await make_room(self._screen, overflow)
        finally:
            self._screen.prompt.lock_sending(WRITING)


def shown(talk: "Talk") -> list[ShownTurn]:
    """The branch in view, with a mark where the model begins to see it."""
    path = talk.path
    left_out = tree.omission(path, talk.omissions)
    hidden = len(path) - len(tree.seen(path, talk.omissions))
    mark = OmissionMark(turns=hidden, summary=left_out.summary) if left_out is not None else None
    places = _places(talk)
    return [_shown(turn, places, mark if index == hidden else None) for index, turn in enumerate(path)]


Places = dict[int, tuple[int, int]]


def _places(talk: "Talk") -> Places:
    """Of each turn, which branch it is of how many, for all turns at once: a conversation may have thousands."""
    beside: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    for turn in sorted(talk.turns, key=lambda turn: turn.id):
        beside[turn.parent, turn.role].append(turn.id)
    return {id: (place, len(ids)) for ids in beside.values() for place, id in enumerate(ids, start=1)}


def _shown(turn: Turn, places: Places, omission: OmissionMark | None = None) -> ShownTurn:
    branch, branches = places[turn.id]
    return ShownTurn(turn=turn, branch=branch, branches=branches, figures=figures(turn.metrics), omission=omission)
