"""What the readout shows at one moment, as values. How they are measured and drawn is elsewhere."""

from typing import TYPE_CHECKING, Literal

from localinfer.types import Metrics, Value

if TYPE_CHECKING:  # values only pass through here, and what makes them is not needed for the first frame
    from localinfer.machine.pulse import Pulse
    from localinfer.roofline import Roofline

Phase = Literal["none", "checking", "loading", "idle", "queued", "prefill", "decode", "done"]
HISTORY_S = 60


class Parts(Value, frozen=True):
    """TTFT and what it consists of, each from the moment it began: the last one grows. None: not begun.

    ``cached_s`` is the time until the reused part of the prompt was in place, ``prefill_s`` that of the fresh part.
    """

    load_s: float | None = None
    queue_s: float | None = None
    cached_s: float | None = None
    prefill_s: float | None = None
    first_s: float | None = None


class DeviceMemory(Value, frozen=True):
    """The memory of one device. What the model takes is as planned, the rest as the system says; not known: None.

    ``kv_bytes`` holds recurrent states too, ``other_bytes`` compute buffers and the like, ``programs_bytes`` is what
    other programs hold.
    """

    id: str
    name: str
    total_bytes: int | None = None
    weights_bytes: int = 0
    kv_bytes: int = 0
    other_bytes: int = 0
    programs_bytes: int | None = None

    @property
    def model_bytes(self) -> int:
        """What the model takes here."""
        return self.weights_bytes + self.kv_bytes + self.other_bytes

    @property
    def free_bytes(self) -> int | None:
        """What is left for anything else."""
        if self.total_bytes is None or self.programs_bytes is None:
            return None
        return max(0, self.total_bytes - self.model_bytes - self.programs_bytes)


class Budget(Value, frozen=True):
    """Where the tokens of a context go. ``history`` is the prompt without the system prompt, ``reply`` what was written
    after it; ``cached`` of the last prompt were reused, None where nothing has run yet."""

    context: int
    system: int = 0
    history: int = 0
    reply: int = 0
    cached: int | None = None

    @property
    def used(self) -> int:
        """Tokens in the context."""
        return self.system + self.history + self.reply

    @property
    def free(self) -> int:
        """Tokens that still fit."""
        return max(0, self.context - self.used)


class Reading(Value, frozen=True):
    """Everything the readout shows at one moment. Not measured: None.

    ``phase`` is "none" where no model is there, "checking" while it is looked at before it is loaded; the figures are
    those of the last reply meanwhile. ``load_progress`` is 0 to 1. ``prefilled`` of ``prompt_tokens`` are processed.
    ``elapsed_s`` is TTFT, growing until the first text. ``live_tps`` is the speed of the last two seconds. ``history``
    is tokens per second of each of the last seconds, None where nothing was decoded; the last entry is the second
    ``history_second`` of the clock. ``drafter`` is what drafts for the model, "" where nothing ever does; ``off`` says
    why nothing is drafted, "" where something may be.
    """

    phase: Phase = "idle"
    metrics: Metrics | None = None
    load_progress: float | None = None
    ahead: int | None = None
    prompt_tokens: int | None = None
    prefilled: int | None = None
    elapsed_s: float | None = None
    parts: Parts = Parts()
    live_tps: float | None = None
    history: tuple[float | None, ...] = ()
    history_second: int = 0
    roofline: "Roofline | None" = None
    drafter: str = ""
    off: str = ""
    memory: tuple[DeviceMemory, ...] = ()
    budget: Budget | None = None
    pulse: "Pulse | None" = None
    threads: int | None = None
    placement: str = ""
