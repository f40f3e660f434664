"""The seam every backend implements: one loaded model, one thread, one forward pass at a time.

It knows token ids and nothing of text, chat templates, processes or clocks.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from localinfer.types import FinishReason, ModelInfo, Sampling, Speculation

Progress = Callable[[float], None]


class SequenceJob(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence to generate. ``tokens`` is the whole prompt (not empty, shorter than the context).

    ``max_tokens`` counts sampled tokens; the backend also ends a sequence at the end of its context. ``prediction`` are
    tokens that the answer may repeat.
    """

    id: int
    tokens: Sequence[int]
    sampling: Sampling
    max_tokens: int | None = None
    ignore_eos: bool = False
    speculation: Speculation = Speculation()
    prediction: Sequence[int] = ()


class Admitted(msgspec.Struct, frozen=True):
    """A slot was taken."""

    id: int


class PrefillStarted(msgspec.Struct, frozen=True):
    """``cached`` tokens of the prompt are in place, reused; the next pass feeds the first fresh ones."""

    id: int
    cached: int


class PrefillAdvanced(msgspec.Struct, frozen=True):
    """``done`` prompt tokens (reused ones included) are in the cache after this step's pass."""

    id: int
    done: int


class Logprob(msgspec.Struct, frozen=True):
    """Natural log-probability of a sampled token, and ``top`` alternatives as (id, logprob), best first."""

    value: float
    top: tuple[tuple[int, float], ...]


class Sampled(msgspec.Struct, frozen=True):
    """Tokens accepted in this step's pass, in order; more than one when drafts were accepted.

    An end-of-generation token is included unless the job ignores it. ``logprobs`` is empty or one per token.
    ``plain_s`` is what the pass would have taken without drafts, 0 where this sequence had none.
    """

    id: int
    tokens: tuple[int, ...]
    drafted: int = 0
    accepted: int = 0
    plain_s: float = 0.0
    logprobs: tuple[Logprob, ...] = ()


class DraftingChanged(msgspec.Struct, frozen=True):
    """What drafts for the sequence from now on, and why nothing is drafted at present; see ``types.Drafting``."""

    id: int
    drafter: str
    off: str = ""


class Finished(msgspec.Struct, frozen=True):
    """The sequence is over and its slot is free. ``stop``: end-of-generation token; ``length``: limit or context."""

    id: int
    reason: FinishReason


class Refused(msgspec.Struct, frozen=True):
    """The sequence cannot go on: an error of this sequence alone; its slot is free."""

    id: int
    error: Exception


StepEvent = Admitted | PrefillStarted | PrefillAdvanced | DraftingChanged | Sampled | Finished | Refused


class Tokenizer(Protocol):
    """Text to ids and ids to bytes, as the model's own vocabulary has it. Any thread may call it.

    ``adds_bos``: the model expects ``bos`` before every prompt.
    """

    bos: int | None
    eos: int | None
    chat_template: str | None
    adds_bos: bool

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Ids of ``text``; no begin-of-sequence is added. ``special`` lets text such as ``<|im_end|>`` become control
        tokens."""

    def piece(self, token: int) -> bytes:
        """Bytes of one ordinary token; empty for control tokens. Concatenated pieces are the text."""

    def text(self, token: int) -> str:
        """How the vocabulary spells a token, control tokens included: what a chat template calls it."""

    def control_texts(self) -> tuple[str, ...]:
        """The spelling of every token that ``encode(special=True)`` turns into a control token."""

    def is_end(self, token: int) -> bool:
        """Whether the token ends a generation (EOS, end of turn, ...)."""


class Load(msgspec.Struct, frozen=True):
    """How much work a backend has, and the threads it runs on (None where it does not choose)."""

    running: int
    queued: int
    threads: int | None


class Backend(Protocol):
    """One loaded model; every call comes from the thread that loaded it."""

    @property
    def info(self) -> ModelInfo:
        """The loaded model as it really is."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's vocabulary."""

    def submit(self, job: SequenceJob) -> None:
        """Queue a sequence; it is admitted in order of arrival when a slot is free."""

    def cancel(self, sequence_id: int) -> None:
        """Free the slot before the next step. No event follows. Unknown ids are ignored."""

    def step(self) -> list[StepEvent]:
        """One forward pass for all active sequences. [] when there is nothing to do.

        A step that returns ``Admitted`` or ``PrefillStarted`` makes no pass: that a sequence begins is known before a
        pass that may be long.
        """

    def load(self) -> Load:
        """What it is doing now."""

    def close(self) -> None:
        """Release everything."""


@runtime_checkable
class Prepares(Protocol):
    """A backend that can use the time in which nothing is asked of it."""

    def prepare(self) -> bool:
        """Do a little of what makes later steps faster, for a fraction of a second; False when there is no more."""
