"""The scripted backend: slots, queue, chunked prefill, prefix reuse and drafts like the others, and no model.

It knows nothing of probabilities: of ``Sampling`` it honours ``temperature`` (0 says the text, above 0 draws words of
it), ``seed`` and ``top_logprobs`` (an invented, fixed distribution). Costs are spent asleep.
"""

import os
import random
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
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
from backends.scripted.script import Script, reply
from localinfer.errors import OutOfMemory
from localinfer.types import LoadOptions, ModelInfo

DEFAULT_CONTEXT = 32_768


class ByteTokenizer:
    """Ids 0 to 255 are bytes; two control tokens after them make ChatML."""

    bos: int | None = None
    eos: int | None = 257
    adds_bos = False
    chat_template: str | None = (
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    start, end = 256, 257
    size = 258
    _controls = ("<|im_start|>", "<|im_end|>")
    _control_pattern = re.compile("(" + "|".join(re.escape(text) for text in _controls) + ")")

    def encode(self, text: str, *, special: bool) -> list[int]:
        if not special:
            return list(text.encode())
        ids: list[int] = []
        for part in self._control_pattern.split(text):
            ids += [self.start + self._controls.index(part)] if part in self._controls else part.encode()
        return ids

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < self.start else b""

    def text(self, token: int) -> str:
        return chr(token) if token < self.start else self._controls[token - self.start]

    def control_texts(self) -> tuple[str, ...]:
        return self._controls

    def is_end(self, token: int) -> bool:
        return token == self.end


class _Sequence:
    """One job on its way: what it will say, how much it has said, and whether its prompt was begun."""

    def __init__(self, job: SequenceJob, script: Script, context: int) -> None:
        self.job = job
        self.prompt = list(job.tokens)
        self.reply = reply(script, job, ByteTokenizer.end)
        room = max(context - len(self.prompt), 0)
        self.left = room if job.max_tokens is None else min(job.max_tokens, room)
        self.said = 0
        self.last: int | None = None
        self.begun = False


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
    """The ``Backend`` that plays a ``Script``."""

    def __init__(self, script: Script, options: LoadOptions) -> None:
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
        )
        self._script = script
        self._slots = [_Slot() for _ in range(self.info.slots)]
        self._queue: deque[_Sequence] = deque()
        self._prefilling: deque[_Slot] = deque()
        self._sampled = 0

    def submit(self, job: SequenceJob) -> None:
        self._queue.append(_Sequence(job, self._script, self.info.context))

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
        if self._prefilling:
            events += self._prefill(self._prefilling[0])
        if decoding:
            _spend(self._script.pace_s)
        for slot, sequence in decoding:
            events += self._sample(slot, sequence, self._script.draft)
        return events

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

    def _prefill(self, slot: _Slot) -> Iterator[StepEvent]:
        sequence = slot.sequence
        assert sequence is not None
        prompt, job = sequence.prompt, sequence.job
        fresh = min(self._script.chunk, len(prompt) - len(slot.cache))
        _spend(fresh * self._script.prefill_s)
        slot.cache = prompt[: len(slot.cache) + fresh]
        yield PrefillAdvanced(job.id, len(slot.cache))
        if len(slot.cache) == len(prompt):
            self._prefilling.popleft()
            yield from self._sample(slot, sequence, draft=0)

    def _sample(self, slot: _Slot, sequence: _Sequence, draft: int) -> Iterator[StepEvent]:
        job = sequence.job
        drafted = max(min(draft, sequence.left - 1), 0)
        accepted = 0
        while accepted < drafted and self._accepts(sequence.said + accepted):
            accepted += 1
        tokens: list[int] = []
        while len(tokens) < min(accepted + 1, sequence.left) and not (tokens and self.tokenizer.is_end(tokens[-1])):
            tokens.append(next(sequence.reply))
        if tokens:
            slot.cache += tokens[:-1] if sequence.last is None else [sequence.last, *tokens[:-1]]
            sequence.last = tokens[-1]
            sequence.said += len(tokens)
            sequence.left -= len(tokens)
            self._sampled += len(tokens)
            top = job.sampling.top_logprobs
            logprobs = () if top is None else tuple(_logprob(token, top) for token in tokens)
            yield Sampled(job.id, tuple(tokens), drafted, len(tokens) - 1, logprobs=logprobs)
        if tokens and self.tokenizer.is_end(tokens[-1]):
            yield Finished(job.id, "stop")
            self._release(slot)
        elif not sequence.left:
            yield Finished(job.id, "length")
            self._release(slot)

    def _accepts(self, position: int) -> bool:
        return random.Random(f"draft {position}").random() < self._script.acceptance

    def _release(self, slot: _Slot) -> None:
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


def _spend(seconds: float) -> None:
    if seconds > 0:  # sleeping for no time at all still gives the processor away
        time.sleep(seconds)
