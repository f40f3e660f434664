"""Continuous batching: slots, admission in order of arrival, and one forward pass per step.

Each step decodes one token of every running sequence, with it what was drafted to follow, and feeds a bounded chunk of
the oldest prompt that is not yet prefilled; what is left of the chunk goes to the next prompt. A prompt that shares a
prefix with an older one waits for it and copies. It owns no native object but the samplers of its sequences.
"""

import time
from collections import deque
from collections.abc import Sequence

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
from backends.drafting import Proposal, Speculator, Wish
from backends.llama_cpp.native import NativeContext, NativeModel
from backends.llama_cpp.pace import Pace, cut
from backends.llama_cpp.prefix import CHECKPOINT_EVERY, PrefixCache, Row
from backends.llama_cpp.sampling import Sampler
from backends.llama_cpp.slots import Feed, Slot
from localinfer.errors import LocalInferError, OutOfMemory
from localinfer.types import FinishReason

_PACKED = 96  # prompt tokens from which a pass is efficient: adding another prompt would only delay the first
_TAIL = 16  # tokens before the end of a prompt at which a checkpoint lets the next turn come back


class _Outcome:
    """What one slot said after a pass, and how that ended."""

    def __init__(self, slot: Slot, drafted: int) -> None:
        self.slot = slot
        self.drafted = drafted
        self.tokens: list[int] = []
        self.logprobs: list[Logprob] = []
        self.reason: FinishReason | None = None
        self.error: LocalInferError | None = None


class Scheduler:
    """Runs sequences over the rows of one context. ``context`` is tokens per sequence."""

    def __init__(
        self,
        model: NativeModel,
        context: NativeContext,
        cache: PrefixCache,
        tokenizer: Tokenizer,
        length: int,
        speculator: Speculator,
    ) -> None:
        self._model = model
        self._context = context
        self._cache = cache
        self._tokenizer = tokenizer
        self._length = length
        self._speculator = speculator
        self._pace = Pace(context.batch.capacity - len(cache.rows))
        self._queue: deque[SequenceJob] = deque()
        self._slots: list[Slot] = []  # in order of arrival
        self._short = False  # whether the last pass, with drafts, found no room
        self._steady: list[Feed] = []  # the last pass, if the next one is the same, one token further

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
        begun = time.perf_counter()
        proposal = None
        if self._steady and not self._queue:
            proposal = self._propose([feed.slot for feed in self._steady])
            feeds = self._go_on() if proposal is None else self._compose(proposal)
        else:
            self._admit(events)
            self._share(events)
            if events:  # that a sequence begins is said first
                return events
            proposal = self._propose(self._decoding())
            feeds = self._compose(proposal)
        if not feeds:
            return events
        started = time.perf_counter()
        try:
            self._context.decode()
        except OutOfMemory as error:
            self._steady = []
            if proposal is not None:
                self._short = True  # drafts are the first to go
            else:
                self._make_room(error, events)
            return events
        ended = time.perf_counter()
        self._record(feeds, started - begun, ended - started, events)
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

    def _decoding(self) -> list[Slot]:
        """The slots past their prompt, in order of rows: llama.cpp computes neighbouring rows together, others one by
        one."""
        return sorted((slot for slot in self._slots if slot.pending), key=lambda slot: slot.row.index)

    def _propose(self, slots: Sequence[Slot]) -> Proposal | None:
        """What was drafted for ``slots``, in their order."""
        for slot in slots:
            if not slot.speculating:
                self._begin_speculation(slot)
        if self._short or not self._speculator.active:
            self._short = False
            return None
        wishes = [Wish(slot.job.id, slot.room(self._length)) for slot in slots]
        return self._speculator.propose(wishes, [slot.row.index for slot in slots])

    def _begin_speculation(self, slot: Slot) -> None:
        job = slot.job
        slot.speculating = True
        left = None if job.max_tokens is None else job.max_tokens - slot.sampled
        self._speculator.begin(
            job.id,
            [*job.tokens, *slot.pending],
            job.speculation,
            place=slot.row.index,
            prediction=job.prediction,
            left=left,
        )

    def _go_on(self) -> list[Feed]:
        """Nobody came or went and nobody has prompt left. Most passes are such, and each microsecond counts."""
        self._context.batch.advance([feed.slot.pending[0] for feed in self._steady])
        return self._steady

    def _compose(self, proposal: Proposal | None) -> list[Feed]:
        """Fill the batch, in order of rows."""
        batch = self._context.batch
        batch.clear()
        drafts: dict[Slot, tuple[Sequence[int], int]] = {}
        decoding = self._decoding()
        if proposal is not None:
            drafts = dict(zip(decoding, zip(proposal.drafts, proposal.rows, strict=True), strict=True))
        fed = sum(rows for _, rows in drafts.values()) if drafts else len(decoding)
        counts = self._counts(streams=len(decoding), room=batch.capacity - fed)
        feeds = []
        for slot in sorted((*decoding, *counts), key=lambda slot: slot.row.index):
            row = slot.row
            if slot.prefilling:
                end = row.length + counts[slot]
                last = end == len(slot.prompt)
                wanted = range(counts[slot] - 1, counts[slot]) if last else range(0)
                start = batch.extend(row.index, row.length, slot.prompt[row.length : end], wanted=wanted)
                feeds.append(Feed(slot, counts[slot], start + counts[slot] - 1 if last else None))
            elif slot in drafts or len(slot.pending) > 1:
                feeds.append(self._feed_draft(slot, *drafts.get(slot, ((), 1))))
            else:
                feeds.append(Feed(slot, 1, batch.add(row.index, row.length, slot.pending[0])))
        plain = proposal is None and batch.rows == len(decoding)
        self._steady = feeds if plain and len(decoding) == len(self._slots) else []
        return feeds

    def _feed_draft(self, slot: Slot, draft: Sequence[int], rows: int) -> Feed:
        """What is pending, the draft after it, and repetitions that make it so many rows beyond what is pending."""
        row, pending = slot.row, slot.pending
        if draft and not self._cache.trims:
            slot.mark = self._cache.mark(row)
        filling = [pending[-1]] * (rows - 1 - len(draft))
        tokens = [*pending, *draft, *filling]
        first = len(pending) - 1
        start = self._context.batch.extend(row.index, row.length, tokens, wanted=range(first, first + 1 + len(draft)))
        return Feed(slot, len(tokens), start + first, draft)

    def _counts(self, *, streams: int, room: int) -> dict[Slot, int]:
        """How many prompt tokens this step feeds for whom, ``room`` in all at most."""
        counts: dict[Slot, int] = {}
        prompts = [slot for slot in self._slots if slot.prefilling and slot.started]
        if not prompts:
            return counts
        budget = self._pace.chunk(streams=streams, waiting=len(self._slots) - streams)
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

    def _record(self, feeds: Sequence[Feed], drafting_s: float, elapsed_s: float, events: list[StepEvent]) -> None:
        streams = [feed for feed in feeds if not feed.slot.prefilling]
        places = [feed.slot.row.index for feed in streams]
        rows = [feed.rows for feed in streams]
        prompt_tokens = self._context.batch.rows - sum(rows)
        self._pace.observe(prompt_tokens, len(streams), elapsed_s)
        for feed in feeds:
            if feed.slot.prefilling:
                self._prefilled(feed, events)
        outcomes = [self._sample(feed) for feed in feeds if feed.logits_row is not None]
        plain_s = 0.0
        if streams:
            tokens = sum(len(outcome.tokens) for outcome in outcomes)
            plain_s = self._speculator.passed(
                places, rows, tokens, elapsed_s, drafting_s, beside_prefill=prompt_tokens > 0
            )
        for outcome in outcomes:
            self._conclude(outcome, plain_s, events)
        events += self._speculator.news()

    def _prefilled(self, feed: Feed, events: list[StepEvent]) -> None:
        slot, row = feed.slot, feed.slot.row
        row.append(slot.prompt[row.length : row.length + feed.rows])
        events.append(PrefillAdvanced(slot.job.id, row.length))
        if feed.logits_row is not None:
            row.planned = None
        elif not self._cache.rolls_back_freely:
            self._cache.checkpoint(row)

    def _sample(self, feed: Feed) -> "_Outcome":
        """The tokens that the logits of ``feed`` say: as many as its draft foresaw, and one more."""
        slot, row, draft = feed.slot, feed.slot.row, feed.draft
        end = row.length if slot.prefilling else row.length + feed.rows
        row.append(np.asarray(slot.pending, np.int32))
        outcome = _Outcome(slot, len(draft))
        try:
            for index in range(len(draft) + 1):
                token, logprob = slot.sampler.sample(self._context.logits((feed.logits_row or 0) + index))
                outcome.tokens.append(token)
                if logprob is not None:
                    outcome.logprobs.append(logprob)
                slot.sampled += 1
                outcome.reason = self._ending(slot, token)
                if outcome.reason is not None or index == len(draft) or token != draft[index]:
                    break
                row.append(token)  # what was drafted is in the cache
        except LocalInferError as error:  # no token is possible: this sequence alone ends
            outcome.error = error
        self._take_back(slot, end, outcome.tokens)  # also then: its row serves others
        return outcome

    def _take_back(self, slot: Slot, end: int, tokens: list[int]) -> None:
        """Drop from the cache what was fed, up to ``end``, and is not what was said."""
        row, mark = slot.row, slot.mark
        slot.mark = None
        if row.length == end:
            slot.pending = tokens[-1:]
        elif mark is None:
            self._cache.retract(row)
            slot.pending = tokens[-1:]
        else:
            # What was said is fed once more, with what is drafted next.
            again = row.tokens[mark.length :].tolist()
            self._cache.go_back(row, mark)
            slot.pending = [*again, *tokens[-1:]]

    def _conclude(self, outcome: "_Outcome", plain_s: float, events: list[StepEvent]) -> None:
        slot, tokens, drafted = outcome.slot, outcome.tokens, outcome.drafted
        if tokens:
            self._speculator.extend(slot.job.id, tokens, drafted)
            events.append(
                Sampled(
                    slot.job.id,
                    tuple(tokens),
                    drafted=drafted,
                    accepted=len(tokens) - 1 if drafted else 0,
                    plain_s=plain_s if drafted else 0.0,
                    logprobs=tuple(outcome.logprobs),
                )
            )
        if outcome.error is not None:
            self._free(slot)
            events.append(Refused(slot.job.id, outcome.error))
        elif outcome.reason is not None:
            self._free(slot)
            events.append(Finished(slot.job.id, outcome.reason))

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
        self._speculator.end(slot.job.id)
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
