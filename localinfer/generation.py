"""What faces hold: the Engine they submit to and the Generation they read.

It knows nothing of processes or models. A Generation may be read from a thread or from any event loop.
"""

import asyncio
import math
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from localinfer.errors import BadRequest, LocalInferError, from_fault
from localinfer.metrics import Stopwatch, now_ns
from localinfer.types import (
    Active,
    Done,
    EngineStatus,
    Event,
    Failed,
    Fault,
    GenerationRequest,
    Message,
    Metrics,
    Sampling,
    Text,
    TokenCount,
)

MAX_CHARACTERS = 16_000_000
MOST_DRAFTED = 1024  # tokens of one draft
WAKE_S = 0.2  # a wait without a limit cannot be interrupted by Ctrl-C on every system


class Engine(Protocol):
    """One model that answers, wherever it runs."""

    def submit(self, request: GenerationRequest) -> "Generation":
        """Start a generation. Raises ``BadRequest`` at once; every later error ends the generation."""

    async def count(self, messages: Sequence[Message]) -> TokenCount:
        """How many tokens a conversation is, also where the context does not hold them; none for no messages.

        Loads the model first where it is not loaded. Raises ``BadRequest`` as ``submit`` does and where the model's
        template refuses the conversation, and what keeps the model from answering.
        """

    def status(self) -> EngineStatus:
        """What the engine is doing now."""

    def close(self) -> None:
        """End everything and give the memory back. Running generations end with an error."""


class Generation:
    """One running generation: iterate over it, from a thread or from any event loop, once.

    It yields ``Loading``, ``Queued``, ``Prefilled``, ``Text``, ``Reasoning`` and last ``Done``, whose metrics are
    final. An error is raised from the iteration after the events that preceded it. Leaving the loop cancels.
    """

    def __init__(self, id: int, request: GenerationRequest, cancel: Callable[[int], None]) -> None:
        self.id = id
        self.request = request
        self._cancel = cancel
        self._events: queue.SimpleQueue[tuple[Event, ...]] = queue.SimpleQueue()  # what arrived together, at once
        self._lock = threading.Lock()
        self._wakers: list[Callable[[], None]] = []
        self._submitted_ns = now_ns()
        self._ended_ns: int | None = None
        self._stopwatch = Stopwatch(self._submitted_ns)
        self._over = False

    @property
    def metrics(self) -> Metrics:
        """The figures at this moment."""
        with self._lock:
            return self._stopwatch.metrics()

    @property
    def over(self) -> bool:
        """Whether the last event has arrived (it may not have been read yet)."""
        return self._over

    def cancel(self) -> None:
        """End it now with ``Done("cancelled")``, whatever the engine is busy with. Harmless when it is over."""
        if not self._over:
            self._cancel(self.id)
            self.push(Done(finish_reason="cancelled", at_ns=now_ns()))

    def text(self) -> str:
        """Read to the end and return the answer. Raises the error that ended it."""
        return "".join(event.text for event in self if isinstance(event, Text))

    def __iter__(self) -> Iterator[Event]:
        try:
            while True:
                try:
                    events = self._events.get(timeout=WAKE_S)
                except queue.Empty:
                    continue
                for event in events:
                    yield _raise_failure(event)
                    if isinstance(event, Done):
                        return
        finally:
            self.cancel()

    async def __aiter__(self) -> AsyncIterator[Event]:
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(arrived.set)
            except RuntimeError:  # the reader's loop is gone, and its interest with it
                return

        with self._lock:
            self._wakers.append(wake)
        try:
            while True:
                while not self._events.empty():
                    for event in self._events.get_nowait():
                        yield _raise_failure(event)
                        if isinstance(event, Done):
                            return
                arrived.clear()
                if self._events.empty():
                    await arrived.wait()
        finally:
            self._wakers.remove(wake)
            self.cancel()

    # What follows is for the engine that produces the events.

    def active(self) -> Active:
        """How far it has come."""
        with self._lock:
            metrics = self._stopwatch.metrics()
            ended_ns = self._ended_ns
        begun: Literal["queued", "prefill"] = "queued" if metrics.queue_s is None else "prefill"
        return Active(
            id=self.id,
            label=self.request.label,
            state="over" if ended_ns is not None else "decode" if metrics.completion_tokens else begun,
            metrics=metrics,
            submitted_ns=self._submitted_ns,
            ended_ns=ended_ns,
        )

    def loaded(self, at_ns: int) -> None:
        """The model this generation waited for is ready."""
        with self._lock:
            self._stopwatch.loaded(at_ns)

    def push(self, *events: Event) -> None:
        """Append events that arrived together; ``Done`` gets the final metrics. Nothing is taken after the last one.

        The reader is woken once: it takes time from the model each time.
        """
        with self._lock:
            if self._over:
                return
            received_ns = now_ns()
            for event in events:
                self._stopwatch.observe(event, received_ns)
            last = events[-1]
            if isinstance(last, Done):
                events = (*events[:-1], msgspec.structs.replace(last, metrics=self._stopwatch.metrics()))
            self._over = isinstance(last, Done | Failed)
            self._ended_ns = received_ns if self._over else None
            self._events.put(events)
            wakers = tuple(self._wakers)
        for wake in wakers:
            wake()

    def fail(self, error: LocalInferError | Fault) -> None:
        """End it with an error."""
        self.push(Failed(error=error if isinstance(error, Fault) else error.fault()))


def _raise_failure(event: Event) -> Event:
    if isinstance(event, Failed):
        raise from_fault(event.error)
    return event


# Field, lowest, highest value allowed; whether the lowest itself is allowed.
_LIMITS: tuple[tuple[str, float, float, bool], ...] = (
    ("temperature", 0, 100, True),
    ("top_k", 0, 2**31 - 1, True),
    ("top_p", 0, 1, False),
    ("min_p", 0, 1, True),
    ("typical_p", 0, 1, False),
    ("repeat_penalty", 0, 100, False),
    ("presence_penalty", -100, 100, True),
    ("frequency_penalty", -100, 100, True),
    ("penalty_last_n", -1, 2**31 - 1, True),
    ("dry_multiplier", 0, 100, True),
    ("dry_base", 0, 100, True),
    ("dry_allowed_length", 0, 2**31 - 1, True),
    ("dry_last_n", -1, 2**31 - 1, True),
    ("xtc_probability", 0, 1, True),
    ("xtc_threshold", 0, 1, True),
    ("mirostat", 0, 2, True),
    ("mirostat_tau", 0, 1000, True),
    ("mirostat_eta", 0, 1000, True),
    ("seed", 0, 2**32 - 1, True),
    ("top_logprobs", 0, 100, True),
)


def check(request: GenerationRequest) -> None:
    """Refuse a request that no engine could carry out. Raises ``BadRequest`` naming the parameter."""
    given = (bool(request.messages), request.prompt is not None, request.token_ids is not None)
    if sum(given) != 1:
        raise BadRequest(
            "A request needs exactly one of messages, prompt and token_ids.",
            "Give the conversation, or the raw text.",
            param="messages",
        )
    if request.max_tokens is not None and not 1 <= request.max_tokens < 2**31:
        raise BadRequest(
            f"max_tokens must be from 1 to {2**31 - 1:,}, not {request.max_tokens:,}.",
            "Leave it out to generate until the model stops.",
            param="max_tokens",
        )
    if any(not stop for stop in request.stop):
        raise BadRequest("A stop string must not be empty.", "Leave it out.", param="stop")
    most = request.speculation.most
    if not 0 <= most <= MOST_DRAFTED:
        raise BadRequest(
            f"most must be a number from 0 to {MOST_DRAFTED:,}, not {most:,}.", "Correct most.", param="most"
        )
    _check_text(request)
    _check_sampling(request.sampling)


def _check_text(request: GenerationRequest) -> None:
    texts = [message.content for message in request.messages]
    texts += [message.reasoning or "" for message in request.messages]
    texts += [request.prompt or "", *request.stop, request.label]
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise BadRequest(
            f"The prompt has more than {MAX_CHARACTERS:,} characters.", "No context holds so much.", param="messages"
        )
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BadRequest(
                f"The text is not valid Unicode at position {error.start:,}: it was not UTF-8 where it came from.",
                "Convert it first, for example with “iconv -t utf-8”.",
                param="messages",
            ) from error


def _check_sampling(sampling: Sampling) -> None:
    for name, low, high, inclusive in _LIMITS:
        value = getattr(sampling, name)
        if value is None:
            continue
        if not math.isfinite(value) or value > high or value < low or (value == low and not inclusive):
            bound = f"from {low:,} to {high:,}" if inclusive else f"above {low:,}, and at most {high:,}"
            raise BadRequest(f"{name} must be a number {bound}, not {value}.", f"Correct {name}.", param=name)
    if any(math.isnan(bias) for bias in sampling.logit_bias.values()):
        raise BadRequest("logit_bias must hold numbers.", "", param="logit_bias")
