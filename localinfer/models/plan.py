"""What a memory plan says: what was asked, what goes where, whether it fits, and what it means to a person.

Values only; ``fit`` makes them.
"""

from typing import Literal

import msgspec

from localinfer.models.shape import ModelShape
from localinfer.models.traffic import Traffic
from localinfer.types import Value

Verdict = Literal["full", "full_short_ctx", "moe_offload", "partial", "cpu", "too_big", "unknown"]
TermKind = Literal["weights", "repacked", "kv", "state", "compute", "projector", "draft", "speech", "overhead"]
Source = Literal["oracle", "formula", "measured"]

HOST = "cpu"  # the id of the machine's own memory


class Ask(Value, frozen=True):
    """What is to be planned for. ``context`` is tokens per slot; None is 8,192, or what the model was trained with if
    that is less. ``device`` is as in ``Device.id``; None is the best one an installed build can use. ``freed`` is what
    the model about to be replaced gives back, by device. ``draft`` is loaded beside the model, whole, on
    ``draft_device``: None is where the model's first layers lie.
    """

    context: int | None = None
    slots: int = 1
    kv_type: str = "f16"
    device: str | None = None
    micro_batch: int = 512
    projector_bytes: int = 0
    speech_bytes: int = 0
    draft: ModelShape | None = None
    draft_device: str | None = None
    freed: dict[str, int] = msgspec.field(default_factory=dict)


class Term(Value, frozen=True):
    """One part of the memory, where it lies, and how it is known."""

    kind: TermKind
    device: str
    size_bytes: int
    source: Source = "formula"


class DeviceLoad(Value, frozen=True):
    """One device under the plan. ``free_bytes`` is what is free now, other programs' use already taken off;
    ``margin_bytes`` is left alone on purpose."""

    id: str
    name: str
    needed_bytes: int
    free_bytes: int
    freed_bytes: int
    margin_bytes: int

    @property
    def spare_bytes(self) -> int:
        """What is left over; negative: what is missing."""
        return self.free_bytes + self.freed_bytes - self.margin_bytes - self.needed_bytes


class Range(Value, frozen=True):
    """An estimate: what is to be expected at least and at most."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The likeliest value."""
        return (self.low + self.high) / 2


class MemoryPlan(Value, frozen=True):
    """How one model would lie in this machine's memory.

    ``context`` is tokens per slot under this plan, which may be fewer than asked for: ``asked_context``;
    ``trained_context`` is what the model was made for.
    ``device`` is where its layers go. ``gpu_layers`` counts the output layer first, as llama.cpp does; it is 0 on the
    CPU and ``layers`` + 1 for everything. ``expert_layers`` is how many layers keep their experts in the machine's own
    memory. ``max_context`` is the most that fits in this placement, 0 if nothing does. Speeds are of one sequence;
    None where the bandwidth is not known. ``decode_learnt`` and ``prefill_learnt`` are what earlier replies changed
    them by, as a factor. ``sentence`` is the plan in words. ``traffic`` is what each device reads to
    decode one token; empty where the layers are not known.
    """

    verdict: Verdict
    context: int
    asked_context: int
    trained_context: int
    slots: int
    kv_type: str
    device: str
    gpu_layers: int
    layers: int
    expert_layers: int
    terms: tuple[Term, ...]
    devices: tuple[DeviceLoad, ...]
    max_context: int
    sentence: str
    decode_tps: Range | None = None
    prefill_tps: Range | None = None
    decode_learnt: float = 1.0
    prefill_learnt: float = 1.0
    notes: tuple[str, ...] = ()
    traffic: tuple[Traffic, ...] = ()

    @property
    def total_bytes(self) -> int:
        """All terms together."""
        return sum(term.size_bytes for term in self.terms)

    @property
    def fits(self) -> bool:
        """Whether it can be loaded in some way. Nothing is known against ``unknown``."""
        return self.verdict != "too_big"

    def bytes_on(self, device: str) -> int:
        """All terms on one device."""
        return sum(term.size_bytes for term in self.terms if term.device == device)
