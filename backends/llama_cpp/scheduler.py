"""Continuous batching: slots, admission in order of arrival, and one forward pass per step.

Each step decodes one token of every running sequence and feeds a bounded chunk of the oldest prompt that is not yet
prefilled; what is left of the chunk goes to the next prompt. A prompt that shares a prefix with an older one waits for
it and copies. It owns no native object but the samplers of its sequences.
"""

import time
from collections import deque

import msgspec
import numpy as np

from backends.base import (
    Admitted,
    Finished,
    Load,
    Logprob,
    PrefillAdvanced,
    PrefillStarted,
    Refused,
    Sampled,
    SequenceJob,
    StepEvent,
    Tokenizer,
)
from backends.llama_cpp.native import NativeContext, NativeModel
from backends.llama_cpp.pace import Pace, cut
from backends.llama_cpp.prefix import CHECKPOINT_EVERY, PrefixCache, Row, Tokens
from backends.llama_cpp.sampling import Sampler
from localinfer.errors import LocalInferError, OutOfMemory
from localinfer.types import FinishReason

_PACKED = 96  # prompt tokens from which a pass is efficient: adding another prompt would only delay the first
_TAIL = 16  # tokens before the end of a prompt at which a checkpoint lets the next turn come back


class Slot:
    """One sequence at work in one row. ``started``: its own prefill has begun; ``token``: sampled, not yet decoded."""

    def __init__(self, job: SequenceJob, prompt: Tokens, row: Row, sampler: Sampler) -> None:
        self.job = job
        self.prompt = prompt
        self.row = row
        self.sampler = sampler
        self.started = False
        self.reused = 0
        self.share = 0  # while waiting: the length at which the source can be copied
        self.source: Row | None = None
        self.token: int | None = None
        self.sampled = 0

    @property
    def prefilling(self) -> bool:
        """Whether prompt tokens are left to feed."""
        return self.token is None


class _Feed(msgspec.Struct, frozen=True):
    """What a step feeds for one slot: ``count`` tokens, and the batch row of its logits if they are wanted."""

    slot: Slot
    count: int
    logits_row: int | None


class Scheduler:
    """Runs sequences over the rows of one context. ``context`` is tokens per sequence."""

    def __init__(
        self, model: NativeModel, context: NativeContext, cache: PrefixCache, tokenizer: Tokenizer, length: int
    ) -> None:
        self._model = model
        self._context = context
        self._cache = cache
        self._tokenizer = tokenizer
        self._length = length
        self._pace = Pace(context.batch.capacity - len(cache.rows))
        self._queue: deque[SequenceJob] = deque()
        self._slots: list[Slot] = []  # in order of arrival
        self._steady: list[_Feed] = []  # the last pass, if the next one is the same, one token further

    def submit(self, job: SequenceJob) -> None:
        """Queue a sequence."""
        self._queue.append(job)

    def cancel(self, sequence_id: int) -> None:
        """Drop a sequence; its row keeps what it holds."""
        self._queue = deque(job for job in self._queue if job.id != sequence_id)
        for slot in self._slots:
            if slot.job.id == sequence_id:
                self._free(slot)
                return

    def load(self) -> Load:
        """Sequences in slots and in the queue."""
        return Load(running=len(self._slots), queued=len(self._queue), threads=None)

    def step(self) -> list[StepEvent]:
        """One forward pass, or the news that a sequence begins."""
        events: list[StepEvent] = []
        feeds = self._go_on() if self._steady and not self._queue else self._compose(events)
        if not feeds:
            return events
        started = time.perf_counter()
        try:
            self._context.decode()
        except OutOfMemory as error:
            self._steady = []
            self._make_room(error, events)
            return events
        elapsed_s = time.perf_counter() - started
        streams = sum(not feed.slot.prefilling for feed in feeds)
        self._pace.observe(self._context.batch.rows - streams, streams, elapsed_s)
        self._record(feeds, events)
        return events

    # Before the pass

    def _admit(self, events: list[StepEvent]) -> None:
        while self._queue:
            busy = {slot.row.index for slot in self._slots}
            idle = [row for row in self._cache.rows if row.index not in busy]
            if not idle:
                return
            job = self._queue.popleft()
            prompt = np.asarray(job.tokens, np.int32)
            match = self._cache.match(prompt, (slot.row for slot in self._slots))
            row = self._cache.choose(prompt, match, idle)
            sampler = Sampler(self._model, job.sampling, self._length, job.tokens)
            self._slots.append(Slot(job, prompt, row, sampler))
            self._steady = []
            row.planned = prompt
            events.append(Admitted(job.id))

    def _share(self, events: list[StepEvent]) -> None:
        """Start the prefill of slots whose prefix is there; the others wait for an older slot to get that far."""
        for position, slot in enumerate(self._slots):
            if slot.started:
                continue
            match = self._cache.match(slot.prompt, (older.row for older in self._slots[:position]))
            if match.pending:
                slot.share = match.length
                slot.source = match.source if isinstance(match.source, Row) else None
                continue
            slot.started = True
            slot.source = None
            slot.reused = self._cache.take(slot.row, match)
            events.append(PrefillStarted(slot.job.id, slot.reused))

    def _go_on(self) -> list[_Feed]:
        """Nobody came or went and nobody has prompt left. Most passes are such, and each microsecond counts."""
        self._context.batch.advance([feed.slot.token or 0 for feed in self._steady])
        return self._steady

    def _compose(self, events: list[StepEvent]) -> list[_Feed]:
        """Fill the batch, unless a sequence begins: that is said first. In order of rows: llama.cpp computes
        neighbouring rows together, others one by one."""
        self._admit(events)
        self._share(events)
        if events:
            return []
        counts = self._counts()
        batch = self._context.batch
        batch.clear()
        feeds = []
        for slot in sorted(counts, key=lambda slot: slot.row.index):
            row, count = slot.row, counts[slot]
            if slot.token is not None:
                feeds.append(_Feed(slot, 1, batch.add(row.index, row.length, slot.token)))
                continue
            end = row.length + count
            last = end == len(slot.prompt)
            index = batch.extend(row.index, row.length, slot.prompt[row.length : end], want_last=last)
            feeds.append(_Feed(slot, count, index if last else None))
        self._steady = [] if any(slot.prefilling for slot in self._slots) else feeds
        return feeds

    def _counts(self) -> dict[Slot, int]:
        """How many tokens this step feeds for whom."""
        counts = {slot: 1 for slot in self._slots if slot.token is not None}
        streams = len(counts)
        prompts = [slot for slot in self._slots if slot.prefilling and slot.started]
        if not prompts:
            return counts
        budget = self._pace.chunk(streams=streams, waiting=len(self._slots) - streams)
        room = self._context.batch.capacity - streams
        fed = 0
        for slot in prompts:
            begin = slot.row.length
            left = len(slot.prompt) - begin
            if fed and (fed >= _PACKED or fed + left > budget):
                break
            piece = min(cut(left, budget - fed, begun=begin > slot.reused), room - fed)
            counts[slot] = self._chunk_end(slot, begin + piece) - begin
            fed += counts[slot]
        return counts

    def _chunk_end(self, slot: Slot, end: int) -> int:
        """Where memory cannot roll back, stop where others want to copy and where a checkpoint belongs."""
        if self._cache.rolls_back_freely:
            return end
        begin = slot.row.length
        stops = [other.share for other in self._slots if other.source is slot.row]
        stops += [len(slot.prompt) - _TAIL, begin + CHECKPOINT_EVERY]
        return min((stop for stop in stops if begin < stop < end), default=end)

    # After the pass

    def _record(self, feeds: list[_Feed], events: list[StepEvent]) -> None:
        for feed in feeds:
            slot, row = feed.slot, feed.slot.row
            if slot.token is not None:
                row.append(slot.token)
            else:
                row.append(slot.prompt[row.length : row.length + feed.count])
                events.append(PrefillAdvanced(slot.job.id, row.length))
                if feed.logits_row is not None:
                    row.planned = None
                elif not self._cache.rolls_back_freely:
                    self._cache.checkpoint(row)
        for feed in feeds:
            if feed.logits_row is not None:
                self._sample(feed.slot, feed.logits_row, events)

    def _sample(self, slot: Slot, logits_row: int, events: list[StepEvent]) -> None:
        try:
            token, logprob = slot.sampler.sample(self._context.logits(logits_row))
        except LocalInferError as error:  # no token is possible: this sequence alone ends
            self._free(slot)
            events.append(Refused(slot.job.id, error))
            return
        slot.token = token
        slot.sampled += 1
        logprobs: tuple[Logprob, ...] = () if logprob is None else (logprob,)
        events.append(Sampled(slot.job.id, (token,), logprobs=logprobs))
        reason = self._ending(slot, token)
        if reason is not None:
            self._free(slot)
            events.append(Finished(slot.job.id, reason))

    def _ending(self, slot: Slot, token: int) -> FinishReason | None:
        if not slot.job.ignore_eos and self._tokenizer.is_end(token):
            return "stop"
        limit = slot.job.max_tokens
        if (limit is not None and slot.sampled >= limit) or slot.row.length >= self._length:
            return "length"
        return None

    def _free(self, slot: Slot) -> None:
        self._slots.remove(slot)
        self._steady = []
        self._cache.release(slot.row)
        slot.sampler.close()

    def _make_room(self, error: OutOfMemory, events: list[StepEvent]) -> None:
        """No cells for this pass: forget idle rows, else refuse the newest sequence."""
        busy = {slot.row.index for slot in self._slots}
        idle = [row for row in self._cache.rows if row.index not in busy]
        if sum(self._cache.drop(row) for row in idle):
            return
        slot = self._slots[-1]
        self._free(slot)
        self._cache.drop(slot.row)
        events.append(Refused(slot.job.id, error))
