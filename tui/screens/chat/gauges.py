"""What the figures of the chat screen are read from: the reply, the engine, the machine, and what the context holds."""

from typing import TYPE_CHECKING

from localinfer.engines import Opened
from localinfer.errors import LocalInferError
from localinfer.generation import Generation
from localinfer.history import tree
from localinfer.metrics import now_ns
from localinfer.types import Event
from tui.aside import aside
from tui.talk import Talk
from tui.widgets.readout import Budget, Meter, Reading

if TYPE_CHECKING:
    from localinfer.machine.pulse import Pulse, PulseReader


class Gauges:
    """One conversation's figures."""

    def __init__(self) -> None:
        self._meter = Meter()
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
        self._meter.begin(generation, now_ns())

    def observe(self, event: Event) -> None:
        """One event of it."""
        self._meter.observe(event)

    def read(self) -> Reading:
        """What is to be shown now."""
        return self._meter.read(now_ns(), self._engine.status() if self._engine else None, self._pulse)

    async def feel(self) -> None:
        """Look at the machine itself."""
        if self._pulses is None:
            from localinfer.machine.pulse import PulseReader

            self._pulses = PulseReader()
        self._pulse = await aside(self._pulses.take)

    async def weigh(self, talk: Talk) -> None:
        """Count what the conversation takes of the context, where a model is there to count with."""
        engine = self._engine
        model = engine.status().model if engine is not None else None
        if engine is None or model is None:
            return
        messages = tree.messages(talk.path, talk.parameters, talk.omissions)
        try:
            count = await engine.count(messages)
        except LocalInferError:  # a template may refuse what there is so far: the last count stands
            return
        system = count.by_message[0] if messages and messages[0].role == "system" else 0
        if not talk.busy:
            self._meter.hold(Budget(context=model.context, system=system, history=count.total - system))
