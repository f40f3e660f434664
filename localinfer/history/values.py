"""Conversations as values: turns that hang on each other as a tree, and what belongs to a conversation.

A turn that is answered or asked anew gets a sibling; a branch is the way from the root to a turn. Instants are seconds
since 1970 and end in ``_s``.
"""

from typing import Literal

from localinfer.types import Metrics, Sampling, Speculation, Value

TurnState = Literal["whole", "growing", "stopped", "cut", "failed"]


class Attachment(Value, frozen=True):
    """A text file sent along with a message. ``name`` is printable."""

    name: str
    text: str

    @property
    def size_bytes(self) -> int:
        """What it measures as UTF-8."""
        return len(self.text.encode())


class Parameters(Value, frozen=True):
    """How a conversation is answered. What is None follows the settings; ``context`` is tokens, 0 is never used.

    ``draft`` is a draft model, or a word: see ``drafts.propose``. A change of it, of ``context``, ``kv_type`` or
    ``threads`` needs the model to be loaded again.
    """

    system: str = ""
    sampling: Sampling = Sampling()
    speculation: Speculation = Speculation()
    max_tokens: int | None = None
    draft: str | None = None
    context: int | None = None
    kv_type: str | None = None
    threads: int | None = None


class Turn(Value, frozen=True):
    """One message. ``parent`` is the turn before it, None for the first.

    ``state``: a reply is ``growing`` until it is ``whole``; ``stopped`` by the person or by a crash, ``cut`` at the end
    of the context or at ``max_tokens``, ``failed`` with ``note`` saying why. ``thought_s`` and ``thought_tokens``
    measure ``reasoning``.
    """

    id: int
    parent: int | None
    role: Literal["user", "assistant"]
    content: str
    created_s: float
    reasoning: str = ""
    attachments: tuple[Attachment, ...] = ()
    state: TurnState = "whole"
    model: str = ""
    metrics: Metrics | None = None
    thought_s: float | None = None
    thought_tokens: int = 0
    note: str = ""


class Omission(Value, frozen=True):
    """The person agreed that the model no longer sees the turns up to and including ``upto``; ``summary``, if there is
    one, stands for them. It holds on every branch that ``upto`` is on."""

    upto: int
    summary: str = ""


class Conversation(Value, frozen=True):
    """What is known of a conversation without its turns. ``head`` is the last turn of the branch in view."""

    id: int
    title: str
    created_s: float
    changed_s: float
    pinned: bool = False
    model: str = ""
    head: int | None = None
    parameters: Parameters = Parameters()
    omissions: tuple[Omission, ...] = ()


class Hit(Value, frozen=True):
    """A conversation that a search found. ``excerpt`` is printable text around the first match of ``turn`` (None: the
    title matched); ``marks`` are the (start, end) of what matched in it."""

    conversation: Conversation
    turn: int | None
    excerpt: str
    marks: tuple[tuple[int, int], ...] = ()
