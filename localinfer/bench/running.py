"""One run of the bench: each model loaded, warmed up and measured in parts, each server asked the same; then a report.

It prints nothing. Whatever ends it, what was measured by then is in the report.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from localinfer import __version__
from localinfer.acquire import acquire
from localinfer.advice import Advice
from localinfer.bench import drafts, levels, shapes
from localinfer.bench.energy import Energy
from localinfer.bench.extent import Extent
from localinfer.bench.target import MARK, Local, Target, Usual, too_long
from localinfer.bench.values import FORMAT, Drafter, Host, Report, Result, Subject
from localinfer.bench.watch import Watch
from localinfer.bench.workloads import Prompt, Workload, interleaved
from localinfer.engines import Opened, open_engine
from localinfer.errors import DoesNotFit, LocalInferError
from localinfer.machine import Machine, look, short
from localinfer.models import gguf
from localinfer.models.progress import FetchProgress
from localinfer.models.shape import from_gguf
from localinfer.types import EngineStatus, LoadOptions, ModelInfo, Value

Say = Callable[[str], None]

_ROOM = 64  # tokens of context beside the longest shape
_WORKLOAD_TOKENS = 1536  # the longest built-in prompt in bytes, a token each at worst, and what a template adds


class Order(Value, frozen=True):
    """What is to be measured. ``context`` and ``slots`` of ``options`` are filled in where they are not given.

    ``own_file``: the prompts are the person's, of unknown length. ``draft`` is as in ``open_engine``.
    """

    models: tuple[str | None, ...]
    options: LoadOptions
    extent: Extent
    concurrency: tuple[int, ...]
    workload: str
    workloads: tuple[Workload, ...]
    seed: int
    own_file: bool = False
    draft: str = "auto"
    offline: bool = False
    force: bool = False


class Bench:
    """Measures what ``order`` says; ``say`` hears what is being done, ``fetching`` of downloads.

    ``server`` is another program to be asked the same. ``report`` may be called at any moment.
    """

    def __init__(
        self,
        order: Order,
        server: "tuple[Subject, Target] | None" = None,
        *,
        say: Say = lambda _: None,
        fetching: Callable[[FetchProgress], None] = lambda _: None,
    ) -> None:
        self._order = order
        self._server = server
        self._say = say
        self._fetching = fetching
        self._taken_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._machine: Machine | None = None
        self._results: list[Result] = []
        self._warnings: tuple[str, ...] = ()
        self._notes: dict[str, None] = {}
        self._pause_s: float | None = None

    def run(self) -> None:
        """Measure everything. Raises ``LocalInferError``."""
        self._say("looking at the machine")
        computes = self._order.models and self._order.options.backend != "scripted"
        self._machine = Advice().machine if computes else look()  # which measures the bandwidth, the first time
        if computes and len(self._order.models) > 1:
            for reference in self._order.models:  # a name that is wrong is told before minutes are spent on another
                acquire(reference or "", offline=self._order.offline, progress=self._fetching)
        with Watch() as watch, Energy() as energy:
            self._say("looking at what else is running")
            self._warnings = watch.settle()
            for reference in self._order.models:
                self._measure_model(reference, watch, energy)
            if self._server is not None:
                self._measure_server(*self._server)

    def report(self, *, complete: bool) -> Report:
        """What was measured so far."""
        machine = self._machine or look()
        order = self._order
        return Report(
            format=FORMAT,
            localinfer=__version__,
            taken_at=self._taken_at,
            complete=complete,
            extent=order.extent.name,
            seed=order.seed,
            workload=order.workload,
            host=Host(
                system=machine.system,
                processor=machine.cpu.name,
                cores=machine.cpu.cores,
                memory_bytes=machine.ram_total_bytes,
                devices=tuple(short(device.name) for device in machine.devices if device.kind != "cpu"),
                power=machine.power.source,
            ),
            warnings=self._warnings,
            results=tuple(self._results),
        )

    # One model

    def _measure_model(self, reference: str | None, watch: Watch, energy: Energy) -> None:
        self._say("loading")
        with self._open(reference) as engine:
            started_s = time.monotonic()
            info = engine.load(lambda fraction: self._say(f"loading {fraction:.0%}"))
            load_s = time.monotonic() - started_s
            status = engine.status()
            watch.measures(status.pid)
            plan = engine.placing.plan if engine.placing else None
            active = _active_parameters(engine.options) if plan is not None else None
            self._begin(
                Result(
                    subject=_subject(info, status, active),
                    load_s=load_s,
                    planned_bytes=plan.total_bytes if plan is not None else None,
                ),
                (*info.notices, *([info.no_draft] if info.no_draft else [])),
            )
            order = self._order
            target = Local(engine, energy.joules, usual=_usual(order.draft))
            prompts = interleaved(order.workloads)
            self._say("checking the prompts")
            self._check_prompts(engine, info, prompts)
            self._say("warming up")
            warmth = shapes.warm_up(target, info, order.seed)
            self._set(resident_bytes=engine.status().rss_bytes)
            shapes.measure_shapes(
                target,
                info,
                plan,
                active,
                order.extent,
                warmth,
                watch,
                order.seed,
                say=self._saying(info.name),
                keep=lambda cells, notes: self._set(notes, shapes=cells),
            )
            self._measure_levels(target, prompts, info.name, watch, energy)
            self._measure_drafts(target, info, watch)

    def _open(self, reference: str | None) -> Opened:
        """The engine, with room for what is measured. Where that does not fit, with as much context as does."""
        order = self._order
        needed = max(order.extent.longest_shape + _ROOM, _WORKLOAD_TOKENS + order.extent.answer_tokens)
        options = msgspec.structs.replace(order.options, slots=max(order.concurrency))
        if options.context is None and not order.own_file:
            try:
                return self._opened(reference, msgspec.structs.replace(options, context=needed))
            except DoesNotFit:
                self._say("loading with a shorter context")
        return self._opened(reference, options)

    def _opened(self, reference: str | None, options: LoadOptions) -> Opened:
        order = self._order
        return open_engine(
            reference,
            options,
            offline=order.offline,
            progress=self._fetching,
            force=order.force,
            draft=order.draft,
        )

    def _check_prompts(self, engine: Opened, info: ModelInfo, prompts: Sequence[Prompt]) -> None:
        """Refuse what the context does not hold before anything is measured. Raises ``ContextOverflow``."""
        room = info.context - max(self._order.extent.answer_tokens, self._order.extent.drafted_tokens)

        async def count() -> None:
            for prompt in prompts:
                tokens = (await engine.count(prompt.marked(MARK).messages)).total
                if tokens > room:
                    raise too_long(prompt, tokens, info.context)

        asyncio.run(count())

    def _measure_levels(
        self, target: Target, prompts: Sequence[Prompt], name: str, watch: Watch | None, energy: Energy | None
    ) -> None:
        order = self._order
        self._saying(name)("warming up the workload")
        pause_s = levels.usual_pause_s(target, prompts[0], order.extent)
        self._pause_s = pause_s if self._pause_s is None else self._pause_s
        levels.measure_levels(
            target,
            prompts,
            order.concurrency,
            order.extent,
            self._pause_s,
            watch,
            energy.joules if energy is not None else lambda: None,
            order.seed,
            say=self._saying(name),
            keep=lambda cells, notes: self._set(notes, levels=cells),
        )

    def _measure_drafts(self, target: Target, info: ModelInfo, watch: Watch) -> None:
        if info.no_speculation:
            self._set((f"Drafts were left out: {info.no_speculation}",))
        if info.no_speculation or self._order.draft == "off":
            return
        drafters: tuple[Drafter, ...] = ("off", "lookup", "model") if info.draft else ("off", "lookup")
        drafts.measure_drafts(
            target,
            self._order.workloads,
            drafters,
            self._order.extent,
            watch,
            say=self._saying(info.name),
            keep=lambda cells: self._set(speculation=cells),
        )

    # A server

    def _measure_server(self, subject: Subject, target: Target) -> None:
        self._begin(Result(subject=subject))
        self._measure_levels(target, interleaved(self._order.workloads), subject.name, None, None)

    # Bookkeeping

    def _begin(self, result: Result, notes: tuple[str, ...] = ()) -> None:
        self._results.append(result)
        self._notes = dict.fromkeys(notes)
        self._set()

    def _set(self, notes: tuple[str, ...] = (), **fields: object) -> None:
        """Renew parts of the result that is being measured; ``notes`` come to those it has."""
        self._notes |= dict.fromkeys(notes)
        self._results[-1] = msgspec.structs.replace(self._results[-1], notes=tuple(self._notes), **fields)

    def _saying(self, name: str) -> Say:
        return lambda text: self._say(f"{name}: {text}")


def _usual(draft: str) -> Usual:
    """What drafts where nothing else is asked for: a draft model that is loaded is used by ``auto``."""
    return "lookup" if draft == "lookup" else "off" if draft == "off" else "auto"


def _subject(info: ModelInfo, status: EngineStatus, active: int | None) -> Subject:
    return Subject(
        kind="model",
        name=info.name,
        backend=info.backend,
        placement=info.placement,
        quantization=info.quantization,
        parameters=info.parameters or None,
        active_parameters=active,
        weights_bytes=info.weights_bytes or None,
        threads=status.threads,
        context=info.context,
        slots=info.slots,
        draft=info.draft,
    )


def _active_parameters(options: LoadOptions) -> int | None:
    try:
        return from_gguf(gguf.check_all(tuple(map(Path, (options.model, *options.parts))))).active_parameters or None
    except LocalInferError:
        return None
