"""What a transcript is told of a conversation: the turns of one branch, each with what stands around it."""

from localinfer.history.values import Turn
from localinfer.types import Value


class OmissionMark(Value, frozen=True):
    """Above the turn that has it, the model no longer sees ``turns`` turns; ``summary``, if any, stands for them."""

    turns: int
    summary: str = ""


class ShownTurn(Value, frozen=True):
    """A turn in view. It is branch ``branch`` (from 1) of ``branches`` at its place; ``figures`` is one line about how
    the reply was made; ``omission`` is drawn above the turn."""

    turn: Turn
    branch: int = 1
    branches: int = 1
    figures: str = ""
    omission: OmissionMark | None = None
