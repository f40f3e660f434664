"""Figures of replies at chosen moments, made by the application's own meter."""

from collections.abc import Callable

from localinfer.machine.values import GpuPulse, Power, Pulse
from localinfer.types import Metrics
from tests.tui.readout.replies import MS, START, Reply, S
from tests.tui.snapshots.stage import CONTEXT, Still
from tui.widgets.readout import Budget, Meter, Reading

GIB = 2**30
PULSE = Pulse(
    at_s=0,
    cpu_load=0.23,
    cpu_temperature_c=61,
    gpus=(
        GpuPulse(
            id="CUDA0",
            name="NVIDIA GeForce RTX 4060 Laptop GPU",
            load=0.97,
            temperature_c=68,
            used_bytes=int(4.5 * GIB),
            total_bytes=8188 * 2**20,
            power_w=74,
        ),
    ),
    ram_used_bytes=int(6.2 * GIB),
    ram_total_bytes=16_455_016_448,
    power=Power(source="battery", battery_percent=81),
)
METRICS = Metrics(
    ttft_s=0.214,
    queue_s=0.002,
    cached_prefill_s=0.004,
    prefill_s=0.189,
    first_decode_s=0.019,
    prompt_tokens=1286,
    cached_tokens=1024,
    prefill_tps=1386.2,
    completion_tokens=310,
    tps=58.4,
    itl_p50_ms=17.1,
    itl_p90_ms=17.9,
    itl_p99_ms=21.4,
    drafts=36,
    drafted=151,
    accepted=107,
    acceptance_rate=107 / 151,
    mean_accepted_length=1 + 107 / 36,
    accepted_by_position=(0.94, 0.83, 0.69, 0.58, 0.31, 0.2),
    speculation_gain=1.34,
    drafter="prompt lookup",
    finish_reason="stop",
)


def _at(engine: Still, go_on: Callable[[Reply], None]) -> Reading:
    meter = Meter()
    assert engine.placing is not None
    meter.choose(engine.placing.plan, engine.placing.where)
    meter.hold(Budget(context=CONTEXT, system=62, history=1224))
    reply = Reply(meter)
    go_on(reply)
    return meter.read(reply.now_ns, engine.status(), PULSE)


def idle(engine: Still) -> Reading:
    """Nothing was asked yet."""
    meter = Meter()
    assert engine.placing is not None
    meter.choose(engine.placing.plan, engine.placing.where)
    meter.hold(Budget(context=CONTEXT))
    return meter.read(START, engine.status(), PULSE)


def full(engine: Still) -> Reading:
    """The conversation takes all of the context, and nothing runs."""
    meter = Meter()
    assert engine.placing is not None
    meter.choose(engine.placing.plan, engine.placing.where)
    meter.hold(Budget(context=engine.info.context, system=62, history=engine.info.context - 162))
    return meter.read(START, engine.status(), PULSE)


def prefill(engine: Still) -> Reading:
    """Half of the prompt was read."""
    return _at(engine, lambda reply: _read(reply, 1600))


def decode(engine: Still) -> Reading:
    """Five seconds of the reply were written, the pace of which swings a little."""

    def go_on(reply: Reply) -> None:
        _read(reply, 2310)
        _write(reply)

    return _at(engine, go_on)


def done(engine: Still) -> Reading:
    """The reply is over."""

    def go_on(reply: Reply) -> None:
        _read(reply, 2310)
        _write(reply)
        reply.end()

    return _at(engine, go_on)


def _write(reply: Reply) -> None:
    """300 tokens; one pass in five has a draft, which is right in its first three tokens, or in all four."""
    reply.drafting("prompt lookup")
    for index in range(150):
        pace_ns = (16 + index // 7 % 3) * MS
        if index % 5 == 0:
            reply.token(pace_ns + 4 * MS, tokens=5 - index % 2, drafted=4, plain_s=pace_ns / S)
        else:
            reply.token(pace_ns)


def _read(reply: Reply, tokens: int) -> None:
    reply.queued(S // 500)
    admitted = START + S // 400
    reply.prefilled(S // 4, tokens, admitted_ns=admitted, started_ns=admitted + S // 200)
