"""The application on a machine, at an instant and with an engine that are always the same.

Everything is real but what would differ from one run to the next: the clock, the machine, the model that answers, the
live figures. Each is replaced at the seam where the application asks for it.
"""

import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from localinfer import downloads, settings
from localinfer.advice import of_spec
from localinfer.engines import Engines, Opened
from localinfer.engines.switching import Prospect
from localinfer.generation import Generation
from localinfer.history import store
from localinfer.machine import Machine, bandwidth, look, short
from localinfer.models.catalog import ModelSpec, Quantization, catalog
from localinfer.models.found import FoundModel, Survey
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.placing import Placing
from localinfer.types import EngineStatus, Event, GenerationRequest, LoadOptions, Message, ModelInfo, TokenCount
from tests.machine.recorded import Recorded
from tests.tui.models_app import Here
from tests.tui.snapshots import SIZES, until
from tui.app import LocalInfer
from tui.screens.chat.gauges import Gauges
from tui.screens.search import SearchScreen
from tui.start import Start
from tui.text import clean
from tui.widgets.conversations import Conversations
from tui.widgets.models import lines
from tui.widgets.prompt import graphemes
from tui.widgets.readout import Reading
from tui.widgets.transcript import sheet

NOW = datetime(2026, 3, 18, 15, 0)  # a Wednesday
LAPTOP = "rtx-4060-laptop"
MODEL = "qwen3.5-4b"
CONTEXT = 32_768


class Clock(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: Any = None) -> "Clock":
        return cls.fromtimestamp(NOW.timestamp(), tz)


class Times:
    """The instants that are written down: set at will, then a second later each time."""

    def __init__(self) -> None:
        self.now_s = NOW.timestamp()

    def set(self, at: datetime) -> None:
        """From here on it is ``at``."""
        self.now_s = at.timestamp()

    def time(self) -> float:
        self.now_s += 1
        return self.now_s


def machine(name: str = LAPTOP, build: str = "cuda") -> Machine:
    """A recorded machine with one build of llama.cpp."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bandwidth, "of_memory", lambda cpu, measure: 60e9)
        sources = Recorded(name)
        return look(sources, [sources.builds[build]])


def holding(here: Machine, planned: MemoryPlan) -> Machine:
    """``here`` while a model lies in its memory as ``planned``."""
    devices = tuple(
        replace(device, free_bytes=(device.free_bytes or 0) - planned.bytes_on(device.id)) for device in here.devices
    )
    return replace(here, devices=devices, ram_available_bytes=here.ram_available_bytes - planned.bytes_on(HOST))


def variant(id: str = MODEL, name: str = "Q4_K_M") -> tuple[ModelSpec, Quantization]:
    """A model of the catalogue in one quantization."""
    spec = catalog().get(id)
    assert spec is not None
    return spec, next(one for one in spec.quantizations if one.name == name)


class Advised(Here):
    """Advice about ``made_up``, where ``models`` are here."""

    def __init__(self, made_up: Machine, models: Sequence[tuple[ModelSpec, Quantization]] = ()) -> None:
        super().__init__(made_up)
        self.__dict__["survey"] = Survey(models=tuple(_found(*one) for one in models), notices=())


def _found(spec: ModelSpec, quantization: Quantization) -> FoundModel:
    return FoundModel(
        name=f"{spec.id}:{quantization.name}",
        origin="huggingface",
        paths=(Path(f"{spec.id}-{quantization.name}.gguf"),),
        size_bytes=quantization.size_bytes,
        modified_s=0,
        quantization=quantization.name,
        spec=spec,
        variant=quantization,
    )


def plan(context: int | None = CONTEXT, id: str = MODEL) -> MemoryPlan:
    """How the model lies on the laptop."""
    (planned,) = Here(machine()).planned((of_spec(*variant(id)),), Ask(context=context))
    assert planned.plan is not None
    return planned.plan


class Still(Opened):
    """An engine that is loaded, and says ``events`` and no more, whatever it is asked; the last may be the end.

    A token is ``characters`` of text, and a message has six of the template's.
    """

    characters = 4

    def __init__(self, placing: Placing, info: ModelInfo, events: Sequence[Event] = ()) -> None:
        super().__init__(placing.options, settings.log_dir())
        self.placing = placing
        self.info = info
        self.events = events
        self._numbers = itertools.count(1)

    def status(self) -> EngineStatus:
        return EngineStatus(state="ready", slots=1, threads=8, rss_bytes=612 * 2**20, pid=4242, model=self.info)

    def submit(self, request: GenerationRequest) -> Generation:
        generation = Generation(next(self._numbers), request, lambda _: None)
        if self.events:
            generation.push(*self.events)
        return generation

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        each = tuple([await self.count_text(message.content) for message in messages])
        return TokenCount(total=sum(each) + 6 * len(each), by_message=each)

    async def count_text(self, text: str) -> int:
        return len(text) // self.characters


class Loaded(Engines):
    """Engines of which one is loaded from the beginning."""

    def __init__(self, engine: Still) -> None:
        super().__init__()
        self._still = engine

    def prepare(self, model: object, options: LoadOptions, *, force: bool = False, draft: object = "auto") -> Prospect:
        return Prospect(name=self._still.info.name, options=self._still.options, placing=self._still.placing)

    def switch(self, prospect: Prospect, progress: object = None) -> Opened:
        self._current = self._still
        return self._still


def engine(events: Sequence[Event] = (), context: int = CONTEXT) -> Still:
    """The model on the laptop's card."""
    planned = plan(context)
    spec, quantization = variant()
    path = f"{spec.id}-{quantization.name}.gguf"
    options = LoadOptions(backend="llama.cpp", model=path, name=spec.id, context=context, device="CUDA0")
    info = ModelInfo(
        name=spec.id,
        backend="llama.cpp",
        description="qwen35 4B Q4_K_M",
        context=context,
        slots=1,
        vocabulary=248_320,
        parameters=spec.parameters,
        weights_bytes=quantization.size_bytes,
        kv_bytes=1,
        placement="CUDA0",
        quantization=quantization.name,
        threads=8,
        gpu_layers=planned.gpu_layers,
        layers=planned.layers + 1,
    )
    return Still(
        Placing(options=options, plan=planned, where=f"CUDA · {short(machine().devices[0].name)}"), info, events
    )


@contextlib.contextmanager
def fixed(reading: Reading) -> Iterator[Times]:
    """Stops the clocks, shows ``reading``, and has 250 GB free on every disk."""
    times = Times()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "time", SimpleNamespace(time=times.time, monotonic=time.monotonic))
        patch.setattr(sheet, "datetime", Clock)
        for widget in (Conversations, SearchScreen):
            patch.setitem(widget.__init__.__kwdefaults__ or {}, "now", Clock.now)
        patch.setattr(clean, "_cleaner", clean.Cleaner(joins=False))  # as in a terminal nobody knows anything of
        patch.setattr(graphemes, "_JOINS", False)
        patch.setattr(Gauges, "read", lambda self: reading)
        patch.setattr(downloads, "free_disk_bytes", lambda folder=None: 250_000_000_000)
        patch.setattr(lines, "exactly", lambda line, *given, **named: line)  # the library of this machine is not asked
        yield times


@contextlib.asynccontextmanager
async def opened(
    answering: Still | None = None, conversation: int | None = None
) -> AsyncIterator[tuple[LocalInfer, Pilot[Any]]]:
    """The application with a model, or without any, and the conversation."""
    app = LocalInfer(Start(options=LoadOptions(backend="llama.cpp", model="", name=""), reference=MODEL))
    if answering is not None:
        app.engines = Loaded(answering)
    try:
        async with app.run_test(size=SIZES[0]) as pilot:
            assert await until(pilot, lambda: app.chat.desk.state.phase == "ready")
            if conversation is not None:
                app.chat.go_to(conversation)
                assert await until(pilot, lambda: app.chat.talk.conversation is not None)
            await pilot.pause()
            yield app, pilot
    finally:
        app.close()
