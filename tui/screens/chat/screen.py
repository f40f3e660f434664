"""The chat screen: what it consists of, and what keys and messages mean on it.

How a conversation goes on is ``Talk``'s business, which model answers is ``Desk``'s; ``view`` shows the one, ``models``
gets the other, ``gauges`` measures; each widget draws itself.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from localinfer.errors import ConversationNotFound, LocalInferError
from localinfer.generation import Generation
from localinfer.history.values import Parameters, Turn
from tui import keys
from tui.aside import aside
from tui.desk import Desk
from tui.screens.chat.commands import COMMANDS, Commands
from tui.screens.chat.drafters import Drafters
from tui.screens.chat.focus import Focus
from tui.screens.chat.gauges import Gauges
from tui.screens.chat.models import Models
from tui.screens.chat.panel import Panel
from tui.screens.chat.reach import Reach
from tui.screens.chat.shelf import Shelf
from tui.screens.chat.view import WRITING, ChatView
from tui.talk import Talk
from tui.text.clean import clean
from tui.text.markdown import warm
from tui.widgets.bars import HeaderLine, KeyLine
from tui.widgets.prompt import Draft, Prompt
from tui.widgets.readout import Readout, StatusLine
from tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from tui.app import LocalInfer

TICK_S = 0.1
IDLE_TICKS = 10  # while nothing runs, the figures are looked at once a second
_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (100, "-wide")]
GREETING = "Ask anything.\n\nF2 models · F5 parameters · F1 help\n/ commands · @ files"


class ChatScreen(Reach, Panel, Focus, Shelf):
    """The home screen."""

    BINDINGS: ClassVar[list[BindingType]] = keys.bindings("chat")
    HORIZONTAL_BREAKPOINTS = _BREAKPOINTS
    CSS = """
    ChatScreen #body { height: 1fr; }
    ChatScreen #middle { width: 1fr; min-width: 8; }
    ChatScreen Transcript { height: 1fr; }
    ChatScreen Readout { display: none; }
    ChatScreen.-wide Readout { display: block; }
    ChatScreen.-wide StatusLine { display: none; }
    ChatScreen.-wide.-bare Readout { display: none; }
    ChatScreen.-wide.-bare StatusLine { display: block; }
    ChatScreen.-narrow.-listing #middle, ChatScreen.-narrow.-figures #middle { display: none; }
    ChatScreen.-narrow.-figures Readout { display: block; width: 1fr; max-width: 60; }
    ChatScreen.-narrow.-figures #body { align-horizontal: center; }
    ChatScreen.-narrow.-figures StatusLine { display: none; }
    ChatScreen ToastRack { dock: top; align: left top; margin: 0; padding: 1 0 0 0; max-height: 50%; }
    ChatScreen.-wide ToastRack { padding: 1 34 0 0; }
    ChatScreen.-wide.-listing ToastRack { padding: 1 34 0 32; }
    ChatScreen.-wide.-bare ToastRack { padding: 1 0 0 0; }
    ChatScreen.-narrow.-listing Sidebar, ChatScreen.-narrow.-listing Conversations { width: 1fr; }
    """

    def __init__(self, owner: "LocalInfer") -> None:
        super().__init__()
        self.owner = owner
        self.desk = Desk(owner.engines, owner.start, self._desk_changed)
        self.talk = Talk(owner.history, ChatView(self))
        start = owner.start
        self.talk.parameters = Parameters(system=start.system, sampling=start.sampling, speculation=start.speculation)
        self.gauges = Gauges(self.desk, lambda: self.talk.parameters.speculation)
        self.models = Models(self)
        self.drafters = Drafters(self)
        self.transcript = Transcript(GREETING)
        self.prompt = Prompt(COMMANDS)
        self._header, self.key_line = HeaderLine(), KeyLine()
        self.readout, self.status_line = Readout(), StatusLine()
        self.summarising: Generation | None = None
        self._commands = Commands(self)
        self._edited: Turn | None = None
        self._drafts: dict[int | None, Draft] = {}
        self.opened: int | None = None
        self._trouble = ""
        self._ticks = 0

    def compose(self) -> ComposeResult:
        yield self._header
        with Horizontal(id="body"):
            with Vertical(id="middle"):
                yield self.transcript
                yield self.prompt
            yield self.readout
        yield self.status_line
        yield self.key_line

    def on_mount(self) -> None:
        """Everything slow comes after the first paint."""
        self.prompt.focus()
        self.show_keys(self.owner.settings.keys)
        self._show_header()
        self.set_interval(TICK_S, self._tick)
        self.call_after_refresh(self._begin)

    @work
    async def _begin(self) -> None:
        for notice in self.owner.history.notices:
            self.owner.say(notice, warning=True)
        if (left := await aside(self.owner.session.left_behind)) is not None and not self.talk.busy:
            typed = self.prompt.draft
            await self.open_conversation(left)
            self.prompt.draft = typed
            self.owner.say("Here is where you were when localinfer was ended.")
        await self.models.first()
        await aside(warm)

    # The conversation

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        if self.talk.busy:  # it was sent at the moment when another conversation began to open
            self.prompt.draft = Draft(text=event.text, attachments=event.attachments)
            return
        instead = self._edited if event.mode else None
        say = lambda: self.talk.say(event.text, event.attachments, instead_of=instead)  # noqa: E731
        self._answer(say, Draft(text=event.text, attachments=event.attachments))

    @on(Prompt.CommandGiven)
    @work
    async def _command(self, event: Prompt.CommandGiven) -> None:
        await self._commands.do(event.name, event.argument)

    @work
    async def _answer(self, ask: Callable[[], Awaitable[None]], sent: Draft | None = None) -> None:
        """While ``ask`` runs, Enter sends nothing. What could not be sent comes back into the prompt."""
        self.owner.forget_troubles()
        self.prompt.lock_sending(WRITING)
        try:
            await ask()
        except LocalInferError as error:
            if isinstance(error, ConversationNotFound):
                error = ConversationNotFound("This conversation was deleted elsewhere.", "Enter begins a new one.")
                self.talk.new()
            self.trouble(error)
            if sent is not None and not self.prompt.text:
                self.prompt.draft = sent
        finally:
            self.prompt.unlock_sending()

    @on(Prompt.Escaped)
    def action_stop(self) -> None:
        """Stop the reply, or the summary that is being written."""
        if self.summarising is not None:
            self.summarising.cancel()
        else:
            self.talk.stop()

    def action_retry(self) -> None:
        """Answer the last message again."""
        path = self.talk.path
        if self.talk.busy or not path:
            self.tell(WRITING if self.talk.busy else "There is nothing to answer yet.")
        else:
            self._answer(lambda: self.talk.retry(path[-1]))

    @on(Transcript.RetryRequested)
    def _retry(self, event: Transcript.RetryRequested) -> None:
        if (turn := self._turn(event.turn_id)) is not None:
            self._answer(lambda: self.talk.retry(turn))

    def action_edit(self) -> None:
        """Edit the marked message, or the last one, and send it as another branch."""
        self.tell(WRITING if self.talk.busy else "There is no message to edit yet.")
        self.transcript.edit()

    @on(Transcript.EditRequested)
    def _edit(self, event: Transcript.EditRequested) -> None:
        if (turn := self._turn(event.turn_id)) is not None and not self.talk.busy:
            self._edited = turn
            self.tell("")
            self.prompt.set_text(turn.content, turn.attachments, mode="editing")
            self.prompt.focus()

    @on(Transcript.BranchRequested)
    @work
    async def _page(self, event: Transcript.BranchRequested) -> None:
        turn = self._turn(event.turn_id)
        if turn is not None and await self.talk.turn_page(turn, event.step):
            place = (turn.parent, turn.role)
            beside = next((one.id for one in self.talk.path if (one.parent, one.role) == place), None)
            self.transcript.select(beside)

    def _turn(self, id: int) -> Turn | None:
        return next((turn for turn in self.talk.turns if turn.id == id), None)

    @on(Prompt.AttachmentAdded)
    @work
    async def _count(self, event: Prompt.AttachmentAdded) -> None:
        try:
            engine = await self.desk.ensure(self.talk.parameters)
            self.prompt.counted(event.id, await engine.count_text(event.attachment.text))
        except LocalInferError:  # its size stands there; a count that cannot be had is no reason to complain
            return

    # Conversations

    def action_new(self) -> None:
        """Begin a new conversation; this one stays in the list."""
        if self.talk.busy:
            self.tell(WRITING)
            return
        self.talk.new()
        self.prompt.focus()

    @on(Prompt.Changed)
    def _drafted(self) -> None:
        if not self.prompt.mode:
            self._drafts[self.opened] = self.prompt.draft

    async def open_conversation(self, id: int, turn: int | None = None) -> None:
        if self.talk.busy:
            self.tell(WRITING)
            return
        self.prompt.lock_sending("opening the conversation …")
        try:
            await self.talk.open(id)
        except LocalInferError as error:
            self.trouble(error)
            return
        finally:
            self.prompt.unlock_sending()
        if turn is not None:
            await self.talk.reveal(turn)
            self.transcript.select(turn)

    @work
    async def go_to(self, id: int) -> None:
        """Open a conversation."""
        await self.open_conversation(id)

    def conversation_changed(self) -> None:
        """Another conversation is open, or there is more of it."""
        conversation = self.talk.conversation
        now = conversation.id if conversation is not None else None
        if now != self.opened:
            if self.opened is not None or self.talk.opening or not self.talk.busy:  # else a first message made it
                self.prompt.draft = self._drafts.pop(now, Draft())
            self.opened = now
            self.owner.session.mark(now)
        if self._sidebar is not None:
            self._sidebar.listed.current = now
            self._sidebar.listed.refresh_list()
        self.weigh()

    # The model

    @work
    async def action_models(self) -> None:
        """Find, fetch and switch models."""
        await self.models.choose()

    @work
    async def use(self, reference: str) -> None:
        """Let another model answer."""
        await self.models.use(reference)

    @work
    async def action_parameters(self) -> None:
        """System prompt, sampling, context and presets of this conversation."""
        from tui.screens.parameters import ParametersScreen

        chosen = await self.owner.push_screen_wait(ParametersScreen(self.talk.parameters, self.models.facts()))
        if chosen is not None:
            await self.models.apply(chosen)

    def _desk_changed(self) -> None:
        state = self.desk.state
        if state.phase == "ready":
            self.owner.forget_troubles()
            self.gauges.choose(self.desk.engine)
            engine = self.desk.engine
            model = engine.status().model if engine is not None else None
            told = (*model.notices, model.no_draft) if model is not None else ()
            for notice in filter(None, (state.notice, *told)):
                self.owner.say(notice, warning=True)
            self._trouble = ""
            self.weigh()
        name = state.name or "the model"
        progress = f"{state.progress:.0%}" if state.progress is not None else "…"
        self.tell({"checking": f"looking at {name} …", "loading": f"loading {name} · {progress}"}.get(state.phase, ""))
        self._show_header()
        self.tick()

    def _show_header(self) -> None:
        self._header.show(self.models.line(), self._trouble)

    # The figures

    def _tick(self) -> None:
        self._ticks += 1
        idle = self._ticks % IDLE_TICKS == 0
        if idle:
            self._feel()
        if idle or self.talk.busy or self.desk.state.phase in ("checking", "loading"):
            self.tick()

    def tick(self) -> None:
        """Show the figures of now."""
        self.show_reading(self.gauges.read())

    @work(exclusive=True, group="feel")
    async def _feel(self) -> None:
        await self.gauges.feel()
        await self.talk.settle()

    @work(exclusive=True, group="weigh")
    async def weigh(self) -> None:
        """Count what the conversation takes of the context."""
        await self.gauges.weigh(self.talk)
        self.tick()

    def reply_ended(self, turn: Turn) -> None:
        """A reply stays as it is now."""
        self.gauges.ended(turn)
        self.tick()
        if turn.state == "failed":
            self.tell("The reply failed; it is kept as far as it came · Ctrl+R asks again", "error")
        self._learn(turn)
        self.weigh()

    @work(exclusive=True, group="learn")
    async def _learn(self, turn: Turn) -> None:
        """What the reply taught about this machine is kept; where the model does not run as it should, it is said."""
        engine, metrics = self.desk.engine, turn.metrics
        placing = engine.placing if engine is not None else None
        if engine is None or metrics is None or placing is None:
            return
        from localinfer.placing import judge, learn

        status = engine.status()
        await aside(lambda: learn(placing, status, metrics))
        self._trouble = judge(placing, status, metrics).problem
        self._show_header()

    # Copying

    @on(Transcript.CopyRequested)
    def _copy(self, event: Transcript.CopyRequested) -> None:
        self.owner.copy_to_clipboard(event.text)
        self.tell(f"Copied {event.what} · {len(event.text):,} characters")

    # Telling

    def trouble(self, error: LocalInferError) -> None:
        """Something failed."""
        self.owner.trouble(error)

    def tell(self, text: str, severity: str = "information") -> None:
        """Say something under the prompt."""
        if self.is_mounted:
            self.prompt.hint(clean(text), severity)  # type: ignore[arg-type]
