"""What a person has typed and attached but not sent, as a value."""

from localinfer.history.values import Attachment
from localinfer.types import Value


class Draft(Value, frozen=True):
    """What is in the prompt, as it is typed: kept per conversation and given back."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
