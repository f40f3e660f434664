"""Conversations and turns as rows. What is structured is JSON in one column; what of it cannot be read any more is as
if it had never been set."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from localinfer import decoding
from localinfer.history.lines import storable
from localinfer.history.values import Attachment, Conversation, Omission, Parameters, Turn
from localinfer.types import Metrics

CONVERSATION = "id, title, created_s, changed_s, pinned, model, head, parameters, omissions"
TURN = (
    "id, parent, role, created_s, state, model, thought_s, thought_tokens, note, metrics, content, reasoning, "
    "attachments"
)

T = TypeVar("T")


def encode(value: object) -> str:
    """``value`` as JSON."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        import json

        return storable(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))


def conversation(row: Sequence[Any]) -> Conversation:
    """The row of ``CONVERSATION``."""
    id, title, created_s, changed_s, pinned, model, head, parameters, omissions = row
    return Conversation(
        id=id,
        title=title,
        created_s=created_s,
        changed_s=changed_s,
        pinned=bool(pinned),
        model=model,
        head=head,
        parameters=_decode(parameters, Parameters, Parameters()),
        omissions=_decode(omissions, tuple[Omission, ...], ()),
    )


def turn(row: Sequence[Any]) -> Turn:
    """The row of ``TURN``."""
    id, parent, role, created_s, state, model, thought_s, thought_tokens, note, metrics, content, thoughts, attached = (
        row
    )
    return Turn(
        id=id,
        parent=parent,
        role=role,
        content=content,
        created_s=created_s,
        reasoning=thoughts,
        attachments=attachments(attached),
        state=state,
        model=model,
        metrics=None if metrics is None else _decode(metrics, Metrics, None),
        thought_s=thought_s,
        thought_tokens=thought_tokens,
        note=note,
    )


def attachments(text: str) -> tuple[Attachment, ...]:
    """The attachments in a column."""
    return () if text == "[]" else _decode(text, tuple[Attachment, ...], ())


def searchable(content: str, attached: Sequence[Attachment]) -> str:
    """The text of a turn by which it is found."""
    return "\n".join((content, *(f"{one.name}\n{one.text}" for one in attached)))


def _decode(text: str, kind: Any, default: T) -> T:
    try:
        value: T = decoding.json(text, kind)
    except (ValueError, TypeError):  # what msgspec raises is a ValueError too
        return default
    return value
