"""One generation from its submission to its end: what it is doing, and where its time to first text goes."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from localinfer.metrics import seconds
from localinfer.types import Event, Loading, Metrics, Piece, Prefilled, Queued
from tui.widgets.readout.values import Parts, Phase

if TYPE_CHECKING:
    from localinfer.models.plan import MemoryPlan


class Measured(Protocol):
    """What a ``Generation`` is to the readout."""

    @property
    def metrics(self) -> Metrics:
        """The figures at this moment."""

    @property
    def over(self) -> bool:
        """Whether it has ended, in whatever way."""


class Kept(NamedTuple):
    """A reply of the past, of which there are its figures."""

    metrics: Metrics
    over: bool = True


class Course:
    """A generation that was submitted at ``begun_ns``, and its events so far. ``plan`` is how the model lay in memory
    that wrote it, where that is known."""

    def __init__(self, generation: Measured, begun_ns: int = 0, plan: "MemoryPlan | None" = None) -> None:
        self._generation = generation
        self._begun_ns = begun_ns
        self.plan = plan
        self._final: Metrics | None = None
        self._started = False
        self.progress: float | None = None
        self.queued: Queued | None = None
        self.prefilled: Prefilled | None = None

    @property
    def over(self) -> bool:
        """Whether its last figures are in."""
        return self._final is not None

    def observe(self, event: Event) -> None:
        """Take in one event."""
        match event:
            case Loading():
                self.progress = event.progress
            case Queued():
                self.queued = event
            case Prefilled():
                self.prefilled = event
            case Piece():
                self._started |= bool(event.text)
            case _:
                pass

    def metrics(self) -> Metrics:
        """The figures; the last ones are asked for once."""
        if self._final is not None:
            return self._final
        over = self._generation.over
        metrics = self._generation.metrics
        if over:
            self._final = metrics
        return metrics

    def phase(self, *, loading: bool) -> Phase:
        """What it is doing, as of the last ``metrics``. ``loading``: the engine says that it loads a model."""
        if self.over:
            return "done"
        if self._started:
            return "decode"
        if self.prefilled is not None:
            return "prefill"
        if self.queued is None and (loading or self.progress is not None):
            return "loading"
        return "queued"

    def elapsed_s(self, metrics: Metrics, now_ns: int) -> float | None:
        """TTFT, or how long there has been no text; None where there never was any."""
        if metrics.ttft_s is not None or self.over:
            return metrics.ttft_s
        return seconds(self._begun_ns, now_ns)

    def parts(self, metrics: Metrics, phase: Phase, elapsed_s: float | None) -> Parts:
        """The parts of TTFT; while it grows, the part that is being spent is what the others leave of it."""
        if metrics.ttft_s is not None or self.over or elapsed_s is None:
            return Parts(
                load_s=metrics.load_s,
                queue_s=metrics.queue_s,
                cached_s=metrics.cached_prefill_s,
                prefill_s=metrics.prefill_s,
                first_s=metrics.first_decode_s,
            )
        if phase == "loading":
            return Parts(load_s=elapsed_s)
        load_s = metrics.load_s or 0.0
        if self.prefilled is None:
            return Parts(load_s=load_s, queue_s=max(0.0, elapsed_s - load_s))
        queue_s, cached_s = metrics.queue_s or 0.0, metrics.cached_prefill_s or 0.0
        prefill_s = max(0.0, elapsed_s - load_s - queue_s - cached_s)
        first_s = None
        if self.prefilled.done_tokens >= self.prefilled.prompt_tokens:
            computed_s = metrics.prefill_s or 0.0
            prefill_s, first_s = computed_s, max(0.0, prefill_s - computed_s)
        return Parts(load_s=load_s, queue_s=queue_s, cached_s=cached_s, prefill_s=prefill_s, first_s=first_s)
