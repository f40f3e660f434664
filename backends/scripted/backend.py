"""The scripted backend: slots, queue, chunked prefill, prefix reuse and drafts like the others, and no model.

It knows nothing of probabilities: of ``Sampling`` it honours ``temperature`` (0 says the text, above 0 draws words of
it), ``seed`` and ``top_logprobs`` (an invented, fixed distribution). What it costs is its ``Device``'s, what is drafted
the choice of ``backends.drafting``.
"""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import log

from backends.base import (
    Admitted,
    Finished,
    Load,
    Logprob,
    PrefillAdvanced,
    PrefillStarted,
    Sampled,
    SequenceJob,
    StepEvent,
    Tokenizer,
)
from backends.drafting import CPU_GUESS, PassCosts, Proposal, Speculator, Wish, one_part
from backends.scripted.device import Clock, Device, WallClock
from backends.scripted.drafting import NAME, FixedDrafts, ScriptedDraft
from backends.scripted.script import Script, reply
from backends.scripted.tokenizer import ByteTokenizer
from localinfer.errors import OutOfMemory
from localinfer.types import LoadOptions, ModelInfo

DEFAULT_CONTEXT = 32_768
_BUDGET = 63  # drafted tokens of a pass


class _Sequence:
    """One job on its way: what it will say, how much it has said, and whether its prompt was begun and may be drafted
    for."""

    def __init__(self, job: SequenceJob, reply: Iterator[int], context: int) -> None:
        self.job = job
        self.prompt = list(job.tokens)
        self._reply = reply
        self._coming: list[int] = []
        room = max(context - len(self.prompt), 0)
        self.left = room if job.max_tokens is None else min(job.max_tokens, room)
        self.last: int | None = None
        self.begun = False
        self.speculating = False

    def upcoming(self, count: int) -> list[int]:
        """The next ``count`` tokens of the reply, fewer where it ends."""
        if count > len(self._coming):
            self._coming += islice(self._reply, count - len(self._coming))
        return self._coming[:count]

    def say(self, count: int) -> list[int]:
        """The same, and go on after them."""
        tokens = self.upcoming(count)
        del self._coming[:count]
        self.left -= len(tokens)
        return tokens


class _Slot:
    """A place for one sequence. ``cache`` is what has passed through it: it outlives its sequence, to be reused."""

    def __init__(self) -> None:
        self.cache: list[int] = []
        self.sequence: _Sequence | None = None

    def shared(self, prompt: list[int]) -> int:
        """Tokens of ``prompt`` that need no prefill here; the last one always does, for it yields the first token."""
        limit = min(len(self.cache), len(prompt) - 1)
        return next((i for i in range(limit) if self.cache[i] != prompt[i]), limit)

    def loss(self, prompt: list[int]) -> tuple[int, int]:
        """What giving this slot to ``prompt`` costs: cached tokens lost, then, where equal, tokens not shared."""
        shared = self.shared(prompt)
        return len(self.cache) - shared, -shared


class ScriptedBackend:
    """The ``Backend`` that plays a ``Script``.

    ``say`` yields the tokens of the answer to a job instead of the script; ``costs`` is what is known of the device
    beforehand, everything where it is None.
    """

    def __init__(
        self,
        script: Script,
        options: LoadOptions,
        *,
        clock: Clock | None = None,
        say: Callable[[SequenceJob], Iterator[int]] | None = None,
        costs: PassCosts | None = None,
    ) -> None:
        self.tokenizer: Tokenizer = ByteTokenizer()
        self.info = ModelInfo(
            name=options.name,
            backend="scripted",
            description="a script, no model",
            context=script.context or options.context or DEFAULT_CONTEXT,
            slots=script.slots or options.slots,
            vocabulary=ByteTokenizer.size,
            parameters=0,
            weights_bytes=0,
            kv_bytes=0,
            placement="without a device",
            draft=NAME if (script.draft if script.curve is None else script.draft_s is not None) else "",
        )
        self._script = script
        self._say = say or (lambda job: reply(script, job, ByteTokenizer.end))
        self._device = Device(script.pace_s, script.curve or "flat", clock or WallClock())
        self._speculator = self._drafting(costs)
        self._slots = [_Slot() for _ in range(self.info.slots)]
        self._queue: deque[_Sequence] = deque()
        self._prefilling: deque[_Slot] = deque()
        self._sampled = 0

    def submit(self, job: SequenceJob) -> None:
        self._queue.append(_Sequence(job, self._say(job), self.info.context))

    def cancel(self, sequence_id: int) -> None:
        self._queue = deque(sequence for sequence in self._queue if sequence.job.id != sequence_id)
        for slot in self._slots:
            if slot.sequence and slot.sequence.job.id == sequence_id:
                self._release(slot)

    def load(self) -> Load:
        return Load(
            running=sum(slot.sequence is not None for slot in self._slots), queued=len(self._queue), threads=None
        )

    def close(self) -> None:
        self._queue.clear()
        self._prefilling.clear()
        self._slots.clear()

    def step(self) -> list[StepEvent]:
        """One pass: the decode tokens of every sequence that is past its prompt and a chunk of the oldest prompt."""
        events: list[StepEvent] = [*self._admit(), *self._begin()]
        if events:
            return events
        busy = [(slot, slot.sequence) for slot in self._slots if slot.sequence]
        if not busy:
            return events
        self._play_faults()
        decoding = [(slot, sequence) for slot, sequence in busy if slot not in self._prefilling]
        places = [self._slots.index(slot) for slot, _ in decoding]
        begun = self._device.now()
        proposal = self._propose([sequence for _, sequence in decoding], places)
        drafting_s = self._device.now() - begun
        fresh = self._fresh()
        elapsed_s = self._device.spend(fresh * self._script.prefill_s)
        if decoding:
            elapsed_s += self._device.spend(self._device.seconds(sum(proposal.rows)))
        if self._prefilling:
            events += self._prefilled(self._prefilling[0], fresh)
        spoken = [
            (slot, sequence, draft, self._say_next(slot, sequence, draft))
            for (slot, sequence), draft in zip(decoding, proposal.drafts, strict=True)
        ]
        plain_s = 0.0
        if decoding:
            count = sum(len(tokens) for _, _, _, tokens in spoken)
            plain_s = self._speculator.passed(
                places, proposal.rows, count, elapsed_s, drafting_s, beside_prefill=fresh > 0
            )
        for slot, sequence, draft, tokens in spoken:
            events += self._conclude(slot, sequence, tokens, len(draft), plain_s)
        events += self._speculator.news()
        return events

    def _drafting(self, costs: PassCosts | None) -> Speculator | FixedDrafts:
        script, device = self._script, self._device
        if script.curve is None:
            return FixedDrafts(self._upcoming, script.pace_s, length=script.draft, acceptance=script.acceptance)
        if costs is None:
            costs = PassCosts(1 + _BUDGET, CPU_GUESS)
            if script.pace_s:
                costs.calibrate({rows: device.seconds(rows) for rows in range(1, 2 + _BUDGET)})
        model = None
        if script.draft_s is not None:
            model = ScriptedDraft(
                device,
                self._upcoming,
                draft_s=script.draft_s,
                read_s=script.prefill_s * script.draft_s / script.pace_s if script.pace_s else 0.0,
                chunk=script.chunk,
                acceptance=script.acceptance,
            )
        return Speculator(costs, one_part, budget=_BUDGET, model=model)

    def _upcoming(self, sequence_id: int, count: int) -> Sequence[int]:
        sequences = (slot.sequence for slot in self._slots if slot.sequence)
        return next(sequence for sequence in sequences if sequence.job.id == sequence_id).upcoming(count)

    def _propose(self, sequences: Sequence[_Sequence], places: Sequence[int]) -> Proposal:
        """What the next pass computes of each of ``sequences``."""
        for sequence, place in zip(sequences, places, strict=True):
            if not sequence.speculating:
                sequence.speculating = True
                job, last = sequence.job, sequence.last
                assert last is not None
                self._speculator.begin(
                    job.id,
                    [*job.tokens, last],
                    job.speculation,
                    place=place,
                    prediction=job.prediction,
                    left=sequence.left,
                )
        proposal = None
        if self._speculator.active:
            wishes = [Wish(sequence.job.id, sequence.left - 1) for sequence in sequences]
            proposal = self._speculator.propose(wishes, places)
        return proposal or Proposal([()] * len(sequences), [1] * len(sequences))

    def _admit(self) -> Iterator[Admitted]:
        while self._queue and (free := [slot for slot in self._slots if slot.sequence is None]):
            sequence = self._queue.popleft()
            slot = min(free, key=lambda slot: slot.loss(sequence.prompt))
            slot.sequence = sequence
            self._prefilling.append(slot)
            yield Admitted(sequence.job.id)

    def _begin(self) -> Iterator[PrefillStarted]:
        if not self._prefilling:
            return
        slot = self._prefilling[0]
        sequence = slot.sequence
        assert sequence is not None
        if not sequence.begun:
            cached = max(other.shared(sequence.prompt) for other in self._slots)
            slot.cache = sequence.prompt[:cached]
            sequence.begun = True
            yield PrefillStarted(sequence.job.id, cached)

    def _fresh(self) -> int:
        """Prompt tokens that the next pass reads."""
        if not self._prefilling:
            return 0
        slot = self._prefilling[0]
        assert slot.sequence is not None
        return min(self._script.chunk, len(slot.sequence.prompt) - len(slot.cache))

    def _prefilled(self, slot: _Slot, fresh: int) -> Iterator[StepEvent]:
        sequence = slot.sequence
        assert sequence is not None
        slot.cache = sequence.prompt[: len(slot.cache) + fresh]
        yield PrefillAdvanced(sequence.job.id, len(slot.cache))
        if len(slot.cache) == len(sequence.prompt):
            self._prefilling.popleft()
            yield from self._conclude(slot, sequence, self._say_next(slot, sequence, ()))

    def _say_next(self, slot: _Slot, sequence: _Sequence, draft: Sequence[int]) -> list[int]:
        """What a pass over ``draft`` yields: as many tokens as it foresaw, and one more."""
        coming = sequence.upcoming(min(len(draft) + 1, sequence.left))
        count = 0
        for count, token in enumerate(coming, 1):
            if count > len(draft) or token != draft[count - 1] or self._ends(sequence, token):
                break
        tokens = sequence.say(count)
        if tokens:
            slot.cache += tokens[:-1] if sequence.last is None else [sequence.last, *tokens[:-1]]
            sequence.last = tokens[-1]
            self._sampled += len(tokens)
        return tokens

    def _conclude(
        self, slot: _Slot, sequence: _Sequence, tokens: Sequence[int], drafted: int = 0, plain_s: float = 0.0
    ) -> Iterator[StepEvent]:
        job = sequence.job
        if tokens:
            self._speculator.extend(job.id, tokens, drafted)
            top = job.sampling.top_logprobs
            yield Sampled(
                job.id,
                tuple(tokens),
                drafted=drafted,
                accepted=len(tokens) - 1,
                plain_s=plain_s if drafted else 0.0,
                logprobs=() if top is None else tuple(_logprob(token, top) for token in tokens),
            )
        if tokens and self._ends(sequence, tokens[-1]):
            yield Finished(job.id, "stop")
            self._release(slot)
        elif not sequence.left:
            yield Finished(job.id, "length")
            self._release(slot)

    def _ends(self, sequence: _Sequence, token: int) -> bool:
        return not sequence.job.ignore_eos and self.tokenizer.is_end(token)

    def _release(self, slot: _Slot) -> None:
        if slot.sequence is not None:
            self._speculator.end(slot.sequence.job.id)
        slot.sequence = None
        if slot in self._prefilling:
            self._prefilling.remove(slot)

    def _play_faults(self) -> None:
        script, sampled = self._script, self._sampled
        if script.die_after is not None and sampled >= script.die_after:
            print(f"scripted: aborting after {sampled} tokens", file=sys.stderr, flush=True)
            os.abort()
        if script.hang_after is not None and sampled >= script.hang_after:
            while True:
                time.sleep(3600)
        if script.oom_after is not None and sampled >= script.oom_after:
            raise OutOfMemory(
                f"Memory ran out after {sampled} tokens, as the script says.", "Remove “oom_after” from the script."
            )


def _logprob(token: int, top: int) -> Logprob:
    """An invented distribution: the token itself has half of the probability, each id above it half of the rest."""
    count = min(top, ByteTokenizer.size)
    return Logprob(-log(2), tuple(((token + rank) % ByteTokenizer.size, -(rank + 1) * log(2)) for rank in range(count)))
