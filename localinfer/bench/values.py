"""What a measurement found, as values: the report that ``localinfer bench --json`` writes, and its schema.

Rates are tokens per second, counted in tokens and never in chunks of text. What was not measured is null.
"""

from typing import Annotated, Any, Literal

import msgspec

from localinfer.types import Value

FORMAT: Literal[1] = 1

Share = Annotated[float, msgspec.Meta(ge=0)]
Drafter = Literal["off", "lookup", "model"]


class Measured(Value, frozen=True, omit_defaults=False):
    """Base of the report's parts: every field is written, also where it is null."""


class Spread(Measured, frozen=True):
    """Percentiles of one figure, by linear interpolation. ``samples`` are one per repetition or request, in order; the
    percentiles of ``itl_ms`` are of all gaps together, its samples the median gap of each."""

    p50: float
    p90: float
    p99: float
    samples: tuple[float, ...]


class Shape(Measured, frozen=True):
    """A prompt of ``isl`` random tokens (input sequence length) after which ``osl`` are generated greedily, whatever
    they are, without speculation.

    ``prefill_tps`` is ``isl`` ÷ the time from the first to the last prompt token; ``decode_tps`` is (``osl`` − 1) ÷ the
    time from the first to the last new token, with ``isl`` tokens before the first: what ``llama-bench -d`` measures.
    ``prefill_flops`` is 2 × parameters a token passes × ``prefill_tps``, in operations per second: attention, which
    grows with depth, is not counted. ``bytes_per_token`` is what a token reads, weights and KV cache, in the middle of
    the answer; ``bandwidth_share`` is that × ``decode_tps`` ÷ ``bandwidth`` (bytes per second), and
    ``bandwidth_estimated`` says that the bandwidth is the device's published one. ``joules_per_token`` counts
    everything that the meters count while decoding. ``marks`` say why the figures may be worse than they should.
    """

    isl: int
    osl: int
    prefill_tps: Spread | None = None
    prefill_flops: float | None = None
    decode_tps: Spread | None = None
    ttft_s: Spread | None = None
    itl_ms: Spread | None = None
    bytes_per_token: int | None = None
    bandwidth: float | None = None
    bandwidth_share: Share | None = None
    bandwidth_estimated: bool = False
    joules_per_token: Spread | None = None
    marks: tuple[str, ...] = ()


class Level(Measured, frozen=True):
    """The workload with ``concurrency`` clients: each asks, reads the answer, waits a moment and asks again.

    A sample of ``ttft_s`` and ``tps`` is one request; of ``total_tps`` one round: tokens of all answers ÷ the time from
    the first request to the last token. ``itl_ms`` is null where a server sends several tokens in a chunk.
    ``prompt_tokens`` and ``completion_tokens`` are of all requests together, null where a server does not count.
    """

    concurrency: int
    requests: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_s: Spread | None = None
    itl_ms: Spread | None = None
    tps: Spread | None = None
    total_tps: Spread | None = None
    joules_per_token: Spread | None = None
    marks: tuple[str, ...] = ()


class Speculated(Measured, frozen=True):
    """One workload with one drafter: ``off``, ``lookup`` in its own text, or the draft ``model``.

    The same prompts run with each, one right after the other. A sample of ``gain`` is a prompt's ``tps`` ÷ its ``tps``
    with drafts off. ``engine_gain`` is what the engine itself says, by the cost of a plain pass in the same generation.
    ``acceptance_rate`` is accepted ÷ drafted tokens; ``mean_accepted_length`` is tokens per pass that checked a draft.
    ``same_text`` of the prompts got the same text as with drafts off: two kernels may differ where two tokens tie.
    ``off_reason`` is why nothing was drafted at the end.
    """

    workload: str
    drafter: Drafter
    prompts: int
    tps: Spread | None = None
    gain: Spread | None = None
    engine_gain: Spread | None = None
    drafted: int = 0
    accepted: int = 0
    acceptance_rate: Share | None = None
    mean_accepted_length: float | None = None
    same_text: int | None = None
    off_reason: str = ""
    marks: tuple[str, ...] = ()


class Subject(Measured, frozen=True):
    """What was measured. ``kind`` server: another program's, at ``url``, of which little is known.
    ``active_parameters`` are those a token passes: fewer than all where there are experts. ``context`` is tokens per
    slot."""

    kind: Literal["model", "server"]
    name: str
    backend: str = ""
    placement: str = ""
    quantization: str = ""
    parameters: int | None = None
    active_parameters: int | None = None
    weights_bytes: int | None = None
    threads: int | None = None
    context: int | None = None
    slots: int | None = None
    draft: str = ""
    url: str = ""


class Result(Measured, frozen=True):
    """All figures of one model or server. ``resident_bytes`` is the worker's memory after the load, ``planned_bytes``
    what was planned for, on all devices. ``notes`` say what was left out, and why."""

    subject: Subject
    load_s: float | None = None
    resident_bytes: int | None = None
    planned_bytes: int | None = None
    shapes: tuple[Shape, ...] = ()
    levels: tuple[Level, ...] = ()
    speculation: tuple[Speculated, ...] = ()
    notes: tuple[str, ...] = ()


class Host(Measured, frozen=True):
    """The machine. ``power`` is null where the system does not tell."""

    system: str
    processor: str
    cores: int
    memory_bytes: int
    devices: tuple[str, ...] = ()
    power: Literal["mains", "battery"] | None = None


class Difference(Measured, frozen=True):
    """One figure then and now, as medians. ``change`` is now ÷ then − 1. ``p`` is that of a two-sided Mann-Whitney U
    test on the samples, null where there are too few for it to tell. ``verdict`` is of speed for rates and times, and
    of quantity for memory and energy. ``marked``: one of the two was measured while something disturbed it."""

    subject: str
    figure: str
    unit: str
    then: float
    now: float
    change: float
    p: float | None
    verdict: Literal["faster", "slower", "less", "more", "no difference", "too few samples"]
    marked: bool = False


class Report(Measured, frozen=True):
    """One run of ``localinfer bench``. ``complete``: it was not stopped. ``extent`` is how much was measured, ``seed``
    what arrivals and random tokens were drawn from. ``warnings`` are of the whole run. ``comparison`` is with an older
    report, if one was named."""

    format: Literal[1]
    localinfer: str
    taken_at: str
    complete: bool
    extent: Literal["quick", "usual", "full"]
    seed: int
    workload: str
    host: Host
    warnings: tuple[str, ...]
    results: tuple[Result, ...]
    comparison: tuple[Difference, ...] = ()


def schema() -> dict[str, Any]:
    """The JSON schema of a report (draft 2020-12)."""
    made = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "localinfer bench", **made}
