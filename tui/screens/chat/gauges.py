"""What the figures of the chat screen are read from: the reply, the engine, the machine, and what the context holds."""

from typing import TYPE_CHECKING

from localinfer.engines import Opened
from localinfer.errors import LocalInferError
from localinfer.generation import Generation
from localinfer.history import tree
from localinfer.metrics import now_ns
from localinfer.types import Event, Metrics
from tui.aside import aside
from tui.desk import Desk
from tui.talk import Talk
from tui.widgets.readout import Budget, Meter, Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from localinfer.history.values import Turn
    from localinfer.machine.pulse import Pulse, PulseReader
    from localinfer.types import ModelInfo, Speculation


class Gauges:
    """The figures of the conversation in view, and of the last reply in it. ``speculation`` is what its next reply is
    asked for with."""

    def __init__(self, desk: Desk, speculation: "Callable[[], Speculation]") -> None:
        self._desk = desk
        self._speculation = speculation
        self._meter = Meter()
        self._reply: int | None = None  # the turn whose figures are shown
        self._engine: Opened | None = None
        self._pulse: Pulse | None = None
        self._pulses: PulseReader | None = None

    def choose(self, engine: Opened | None) -> None:
        """``engine`` answers from here on."""
        if engine is not self._engine:
            self._engine = engine
            placing = engine.placing if engine is not None else None
            self._meter.choose(placing.plan if placing else None, placing.where if placing else "")

    def begin(self, generation: Generation) -> None:
        """A reply was asked for."""
        self._reply = None
        self._meter.begin(generation, now_ns())

    def observe(self, event: Event) -> None:
        """One event of it."""
        self._meter.observe(event)

    def ended(self, turn: "Turn") -> None:
        """``turn`` is the reply that was measured."""
        self._reply = turn.id

    def look_at(self, talk: Talk) -> None:
        """Another branch is in view: the figures are those of its last reply."""
        last = talk.last("assistant")
        if talk.generation is not None or (last is not None and last.id == self._reply):
            return
        self._reply = last.id if last is not None else None
        self._meter.recall(last.metrics if last is not None else None)

    def read(self) -> Reading:
        """What is to be shown now."""
        status = self._engine.status() if self._engine else None
        state = self._desk.state
        getting = state.phase if state.phase == "checking" or state.phase == "loading" else None
        speculation = self._speculation()
        return self._meter.read(
            now_ns(), status, self._pulse, getting=getting, progress=state.progress, speculation=speculation
        )

    async def feel(self) -> None:
        """Look at the machine itself."""
        if self._pulses is None:
            from localinfer.machine.pulse import PulseReader

            self._pulses = PulseReader()
        self._pulse = await aside(self._pulses.take)

    async def weigh(self, talk: Talk) -> None:
        """Find out what the conversation takes of the context, where a model is there to count with."""
        engine = self._engine
        model = engine.status().model if engine is not None else None
        budget = await _budget(talk, engine, model) if engine is not None and model is not None else None
        if not talk.busy:
            self._meter.hold(budget)


async def _budget(talk: Talk, engine: Opened, model: "ModelInfo") -> Budget | None:
    """As the model that answers measured it with the last reply, else as the messages count; None where neither is."""
    messages = tree.messages(talk.path, talk.parameters, talk.omissions)
    try:
        count = await engine.count(messages)
    except LocalInferError:  # a template may refuse what there is so far
        count = None
    reply = talk.last("assistant")
    metrics = reply.metrics if reply is not None and reply.metrics is not None else Metrics()
    measured = reply is not None and talk.path[-1] is reply and reply.model == engine.options.name
    if measured and metrics.prompt_tokens is not None:
        prompt, written = metrics.prompt_tokens, metrics.completion_tokens
    elif count is not None:
        written = count.by_message[-1] if messages and messages[-1].role == "assistant" else 0
        prompt = count.total - written
    else:
        return None
    system = min(count.by_message[0], prompt) if count is not None and messages and messages[0].role == "system" else 0
    return Budget(
        context=model.context, system=system, history=prompt - system, reply=written, cached=metrics.cached_tokens
    )
