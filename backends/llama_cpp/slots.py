"""A sequence at work in a row of the cache, and what a pass feeds for it. Nothing native but its sampler."""

from collections.abc import Sequence

import msgspec

from backends.base import SequenceJob
from backends.llama_cpp.prefix import Checkpoint, Row, Tokens
from backends.llama_cpp.sampling import Sampler


class Slot:
    """One sequence at work in one row. ``started``: its own prefill has begun; ``pending``: sampled, not yet in the
    cache; ``mark``: where its state can go back to."""

    def __init__(self, job: SequenceJob, prompt: Tokens, row: Row, sampler: Sampler) -> None:
        self.job = job
        self.prompt = prompt
        self.row = row
        self.sampler = sampler
        self.started = False
        self.speculating = False
        self.reused = 0
        self.share = 0  # while waiting: the length at which the source can be copied
        self.source: Row | None = None
        self.pending: list[int] = []
        self.mark: Checkpoint | None = None
        self.sampled = 0

    @property
    def prefilling(self) -> bool:
        """Whether prompt tokens are left to feed."""
        return not self.pending

    def room(self, length: int) -> int:
        """Drafted tokens that can be checked in the next pass, the context holding ``length`` tokens."""
        room = length - self.row.length - len(self.pending)
        if self.job.max_tokens is not None:
            room = min(room, self.job.max_tokens - self.sampled - 1)
        return max(room, 0)


class Feed(msgspec.Struct, frozen=True):
    """What a step feeds for one slot: ``rows`` tokens. ``logits_row`` is the batch row of the first logits that are
    wanted, if any; those of ``draft`` follow it."""

    slot: Slot
    rows: int
    logits_row: int | None
    draft: Sequence[int] = ()
