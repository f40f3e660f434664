"""Replies that never ran: events at instants that a test chooses, measured by the real stopwatch."""

import msgspec

from localinfer.machine.values import GpuPulse, Power, Pulse
from localinfer.metrics import Stopwatch
from localinfer.models import fit
from localinfer.models.plan import Ask, MemoryPlan
from localinfer.types import Done, Drafting, EngineStatus, Event, Metrics, ModelInfo, Prefilled, Queued, Text
from tests.models.machines import GIB, cpu_only, cuda, dense, machine
from tui.widgets.readout import Budget, Meter, Reading

S = 1_000_000_000
MS = 1_000_000
START = 100 * S

INFO = ModelInfo(
    name="a model",
    backend="llama.cpp",
    description="",
    context=8192,
    slots=1,
    vocabulary=1,
    parameters=1,
    weights_bytes=1,
    kv_bytes=1,
    placement="CPU",
)
READY = EngineStatus(state="ready", threads=2, model=INFO)
NO_DRAFTS = "its state cannot be rolled back"
NEVER = msgspec.structs.replace(READY, model=msgspec.structs.replace(INFO, no_speculation=NO_DRAFTS))
LOADING = EngineStatus(state="loading")


def cpu_plan() -> MemoryPlan:
    return fit.plan(dense(1, kv=512), cpu_only(16), Ask())


def gpu_plan() -> MemoryPlan:
    return fit.plan(dense(4, kv=512), machine(16, cuda(7, total_gib=8)), Ask())


def pulse(*, gpu: bool = False, throttled: str = "") -> Pulse:
    card = GpuPulse(
        id="CUDA0",
        name="A card",
        load=0.98,
        temperature_c=64,
        used_bytes=6 * GIB,
        total_bytes=8 * GIB,
        power_w=112,
    )
    return Pulse(
        at_s=0,
        cpu_load=0.62,
        cpu_temperature_c=71,
        gpus=(card,) if gpu else (),
        ram_used_bytes=5 * GIB,
        ram_total_bytes=16 * GIB,
        power=Power(source="battery", battery_percent=62, throttled=throttled),
    )


class Reply:
    """A generation that a test drives, and the meter that follows it."""

    def __init__(self, meter: Meter, at_ns: int = START) -> None:
        self.over = False
        self.meter = meter
        self.watch = Stopwatch(at_ns)
        self.now_ns = at_ns
        meter.begin(self, at_ns)

    @property
    def metrics(self) -> Metrics:
        return self.watch.metrics()

    def see(self, event: Event, after_ns: int = 0) -> None:
        """``event`` arrives so much later than the one before."""
        self.now_ns += after_ns
        self.watch.observe(event, self.now_ns)
        self.meter.observe(event)

    def queued(self, after_ns: int, *, prompt: int = 2310, ahead: int = 0) -> None:
        at_ns = self.now_ns + after_ns
        self.see(Queued(prompt_tokens=prompt, ahead=ahead, at_ns=at_ns), after_ns)

    def prefilled(self, after_ns: int, done: int, *, admitted_ns: int, started_ns: int, prompt: int = 2310) -> None:
        event = Prefilled(
            prompt_tokens=prompt,
            cached_tokens=1024,
            done_tokens=done,
            admitted_ns=admitted_ns,
            started_ns=started_ns,
            at_ns=self.now_ns + after_ns,
        )
        self.see(event, after_ns)

    def drafting(self, drafter: str, off: str = "") -> None:
        self.see(Drafting(drafter=drafter, off=off))

    def token(self, after_ns: int, *, tokens: int = 1, drafted: int = 0, plain_s: float = 0.0) -> None:
        at_ns = self.now_ns + after_ns
        piece = Text(text="x", tokens=tokens, at_ns=at_ns, drafted=drafted, accepted=tokens - 1, plain_s=plain_s)
        self.see(piece, after_ns)

    def end(self) -> None:
        self.see(Done(finish_reason="stop", at_ns=self.now_ns))
        self.over = True


def whole_reply(meter: Meter, *, tokens: int = 100, gap_ns: int = 10 * MS) -> Reply:
    """Half a second in the queue, one of prefill, then ``tokens``; it has not ended."""
    reply = Reply(meter)
    admitted = START + S // 2
    reply.queued(S // 10)
    reply.prefilled(14 * S // 10, 2310, admitted_ns=admitted, started_ns=admitted + S // 10)
    for _ in range(tokens):
        reply.token(gap_ns)
    return reply


def phases(*, gpu: bool = False) -> dict[str, Reading]:
    """One reading of each phase of one reply: on a card with drafts, else by a model for which nothing can draft."""
    meter = Meter()
    plan = gpu_plan() if gpu else cpu_plan()
    meter.choose(plan, "CUDA · A card" if gpu else "CPU")
    ready = READY if gpu else NEVER
    meter.hold(Budget(context=8192, system=120, history=900))
    seen = pulse(gpu=gpu)
    found = {"idle": meter.read(START, ready, seen)}
    reply = Reply(meter)
    found["loading"] = meter.read(START + S // 2, LOADING, seen)
    reply.watch.loaded(START + S)
    reply.queued(S, ahead=2)
    found["queued"] = meter.read(START + 14 * S // 10, ready, seen)
    admitted, started = START + 15 * S // 10, START + 16 * S // 10
    reply.prefilled(2 * S, 1600, admitted_ns=admitted, started_ns=started)
    found["prefill"] = meter.read(START + 32 * S // 10, ready, seen)
    reply.prefilled(2 * S, 2310, admitted_ns=admitted, started_ns=started)
    for _ in range(200):
        reply.token(10 * MS, tokens=2, drafted=3, plain_s=0.008) if gpu else reply.token(10 * MS)
    found["decode"] = meter.read(reply.now_ns, ready, seen)
    reply.end()
    found["done"] = meter.read(reply.now_ns + 8 * S, ready, seen)
    return found
