"""The values: the domain language, the wire between processes, and what the edges decode into.

Everything here is frozen and has no behaviour beyond what follows from its own fields. Bytes are ``int`` and end in
``_bytes``, seconds are ``float`` and end in ``_s``, instants are ``int`` nanoseconds of ``time.perf_counter_ns`` and
end in ``_ns``. A figure that was not measured is ``None``.
"""

from typing import Literal

import msgspec

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "cancelled"]


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all plain values."""


class Message(Value, frozen=True):
    """One turn of a conversation; ``reasoning`` is what the model thought before ``content``."""

    role: Role
    content: str
    reasoning: str | None = None


class Sampling(Value, frozen=True):
    """How the next token is chosen. Defaults are llama.cpp's; a neutral value switches a stage off.

    ``temperature`` 0 is greedy. ``penalty_last_n`` and ``dry_last_n`` are tokens, -1 means the whole context.
    ``mirostat`` 1 or 2 replaces the truncating stages. ``logit_bias`` is added to the logit of a token id.
    ``top_logprobs`` asks for the log-probability of each token and of that many alternatives.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_last_n: int = 64
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    logit_bias: dict[int, float] = msgspec.field(default_factory=dict)
    seed: int | None = None
    top_logprobs: int | None = None


class Speculation(Value, frozen=True):
    """Which drafters may propose tokens that the model only checks; what it answers does not depend on it.

    ``auto`` is prompt lookup first, else the draft model where one is loaded. ``most`` bounds the tokens drafted for a
    pass; 0 is off too.
    """

    drafter: Literal["auto", "lookup", "model", "off"] = "auto"
    most: int = 64


class GenerationRequest(Value, frozen=True):
    """What to generate from: exactly one of ``messages`` (chat template), ``prompt`` (raw text) and ``token_ids``.

    ``max_tokens`` None means until the model stops or the context ends. ``ignore_eos`` generates past the end of the
    answer, for benchmarks. ``prediction`` is text that the answer may repeat: prompt lookup drafts from it too.
    ``label`` says who asks, for people to read; nothing depends on it.
    """

    messages: tuple[Message, ...] = ()
    prompt: str | None = None
    token_ids: tuple[int, ...] | None = None
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    speculation: Speculation = Speculation()
    prediction: str = ""
    label: str = ""


class DraftModel(Value, frozen=True):
    """A model that drafts for another one: its file and how it is loaded. ``gpu_layers`` and ``device`` are as in
    ``LoadOptions``."""

    model: str
    name: str
    parts: tuple[str, ...] = ()
    device: str | None = None
    gpu_layers: int = -1


class LoadOptions(Value, frozen=True):
    """How a worker loads one model. None means: let the backend choose.

    ``context`` is tokens per slot. ``threads`` fixes the thread count instead of following the free cores.
    ``kv_type`` is the type of the KV cache (``f16``, ``q8_0``, ``q4_0``). ``gpu_layers`` -1 offloads every layer, and
    the experts of the first ``expert_layers`` stay in the machine's own memory. ``unified`` shares one KV cache between
    the slots, for machines short of memory. ``parts`` are the further files of a split model. ``draft`` is loaded too,
    to draft for it; where that fails the model runs without. ``notices`` are passed on with the model's own.
    """

    backend: str
    model: str
    name: str
    context: int | None = None
    slots: int = 1
    threads: int | None = None
    kv_type: str = "f16"
    device: str | None = None
    gpu_layers: int = -1
    expert_layers: int = 0
    unified: bool = False
    require_gpu: bool = False
    cache_tokens: int | None = None
    parts: tuple[str, ...] = ()
    draft: DraftModel | None = None
    notices: tuple[str, ...] = ()


class ModelInfo(Value, frozen=True):
    """One loaded model as it really is. ``placement`` is measured after the load, never what was asked for;
    ``gpu_layers`` of ``layers``, the output layer counted, are on a GPU. ``quantization`` is the type most weights
    have. ``draft`` is the name of the draft model that is loaded beside it, ``no_draft`` why one that was asked for is
    not, ``no_speculation`` why nothing can draft for this model."""

    name: str
    backend: str
    description: str
    context: int
    slots: int
    vocabulary: int
    parameters: int
    weights_bytes: int
    kv_bytes: int
    placement: str
    quantization: str = ""
    threads: int | None = None
    gpu_layers: int = 0
    layers: int = 0
    draft: str = ""
    no_draft: str = ""
    no_speculation: str = ""
    notices: tuple[str, ...] = ()


class TokenLogprob(Value, frozen=True):
    """Log-probability (natural) of one emitted token and of the likeliest alternatives, best first.

    ``token_bytes`` are the exact bytes: a token may hold a part of a character.
    """

    token_id: int
    token_bytes: bytes
    logprob: float
    top: tuple[tuple[int, bytes, float], ...] = ()


class Loading(Value, frozen=True, tag=True):
    """The model is being loaded; ``progress`` is 0 to 1."""

    progress: float


class Queued(Value, frozen=True, tag=True):
    """The worker has the request. ``ahead`` requests stand before it."""

    prompt_tokens: int
    ahead: int
    at_ns: int


class Prefilled(Value, frozen=True, tag=True):
    """Prompt tokens processed so far: ``done_tokens`` of ``prompt_tokens``, ``cached_tokens`` of them reused. The first
    of them says that prefill begins: no more than the cached ones are done.

    ``admitted_ns`` is when a slot was taken, ``started_ns`` when the reused tokens were in place, ``at_ns`` now.
    """

    prompt_tokens: int
    cached_tokens: int
    done_tokens: int
    admitted_ns: int
    started_ns: int
    at_ns: int


class Piece(Value, frozen=True):
    """What one step added to a reply. ``tokens`` were sampled; the text may be empty while a character, a stop string
    or a tag is undecided. ``drafted`` and ``accepted`` count speculation in this step, and ``plain_s`` is what a pass
    without drafts would have taken instead, as measured lately: 0 where nothing was drafted."""

    text: str
    tokens: int
    at_ns: int
    drafted: int = 0
    accepted: int = 0
    plain_s: float = 0.0
    logprobs: tuple[TokenLogprob, ...] = ()


class Text(Piece, frozen=True, tag=True):
    """A piece of the answer."""


class Reasoning(Piece, frozen=True, tag=True):
    """A piece of what the model thinks before it answers."""


class Drafting(Value, frozen=True, tag=True):
    """What drafts for this generation from now on, in words ("prompt lookup", "prompt lookup + qwen3-0.6b"), and why
    nothing is drafted at present; ``off`` is empty while something may be."""

    drafter: str
    off: str = ""


class Metrics(Value, frozen=True, omit_defaults=False):
    """The figures of one generation at one moment, as defined in the README. Not measured: None.

    ``drafts`` are passes that checked drafted tokens. ``accepted_by_position[i]`` is the share of the drafts of more
    than ``i`` tokens whose token ``i`` was accepted. ``drafter`` and ``speculation_off`` are those of ``Drafting``.
    """

    ttft_s: float | None = None
    queue_s: float | None = None
    load_s: float | None = None
    cached_prefill_s: float | None = None
    prefill_s: float | None = None
    first_decode_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    prefill_tps: float | None = None
    completion_tokens: int = 0
    tps: float | None = None
    itl_p50_ms: float | None = None
    itl_p90_ms: float | None = None
    itl_p99_ms: float | None = None
    drafts: int = 0
    drafted: int = 0
    accepted: int = 0
    acceptance_rate: float | None = None
    mean_accepted_length: float | None = None
    accepted_by_position: tuple[float, ...] = ()
    speculation_gain: float | None = None
    drafter: str = ""
    speculation_off: str = ""
    finish_reason: FinishReason | None = None


class Done(Value, frozen=True, tag=True):
    """The generation ended as it should. ``metrics`` is filled in by the application side."""

    finish_reason: FinishReason
    at_ns: int
    metrics: Metrics | None = None


class Fault(Value, frozen=True):
    """An error on the wire: the class name in the error tree, its message, hint and extra fields."""

    kind: str
    message: str
    hint: str = ""
    fields: dict[str, int | str | None] = msgspec.field(default_factory=dict)


class Failed(Value, frozen=True, tag=True):
    """The generation ended with an error."""

    error: Fault


Event = Loading | Queued | Prefilled | Drafting | Text | Reasoning | Done | Failed


class EngineStatus(Value, frozen=True):
    """What an engine is doing. ``threads`` is the count in use now; ``rss_bytes`` is the worker's resident memory."""

    state: Literal["idle", "loading", "ready", "failed", "closed"]
    running: int = 0
    queued: int = 0
    slots: int = 0
    threads: int | None = None
    rss_bytes: int | None = None
    pid: int | None = None
    model: ModelInfo | None = None


class Active(Value, frozen=True):
    """One generation as its engine sees it; ``label`` is its request's. ``queued`` lasts until its prompt is begun,
    ``decode`` begins with its first token. When it is over its figures are final; one that failed
    has no finish reason."""

    id: int
    label: str
    state: Literal["queued", "prefill", "decode", "over"]
    metrics: Metrics
    submitted_ns: int
    ended_ns: int | None = None


class TokenCount(Value, frozen=True):
    """How many tokens a prompt is to one model, whether or not its context holds them.

    ``total`` is the prompt as it would be sent, ``by_message`` the content of each message alone: what is left of the
    total is the chat template's.
    """

    total: int
    by_message: tuple[int, ...] = ()


class Submit(Value, frozen=True, tag=True):
    """Command: generate. ``id`` is chosen by the application side and never reused."""

    id: int
    request: GenerationRequest


class Cancel(Value, frozen=True, tag=True):
    """Command: stop generation ``id`` before the next step; it ends with ``Done("cancelled")``."""

    id: int


class Count(Value, frozen=True, tag=True):
    """Command: count the tokens of what ``request`` would be generated from. ``id`` is as in ``Submit``."""

    id: int
    request: GenerationRequest


Command = Submit | Cancel | Count


class LoadProgress(Value, frozen=True, tag=True):
    """Report: how far loading has come, 0 to 1."""

    progress: float


class Loaded(Value, frozen=True, tag=True):
    """Report: the model is loaded; requests are taken from here on."""

    info: ModelInfo
    at_ns: int


class Fatal(Value, frozen=True, tag=True):
    """Report: the worker cannot go on (the model does not load, memory ran out) and exits."""

    error: Fault


class Stepped(Value, frozen=True, tag=True):
    """Report: the events of one step, in order, each with its generation's id, and the state after it."""

    events: tuple[tuple[int, Event], ...]
    running: int
    queued: int
    threads: int | None


class Counted(Value, frozen=True, tag=True):
    """Report: the answer to ``Count``: one of ``count`` and ``error``."""

    id: int
    count: TokenCount | None = None
    error: Fault | None = None


Report = LoadProgress | Loaded | Fatal | Stepped | Counted
