"""Conversations and turns as rows. What is structured is JSON in one column; what of it cannot be read any more is as
if it had never been set.

SQLite keeps a value of any kind in any column, so what a damaged file has in a row is looked at before it is believed:
text that is bytes is decoded, and what makes no sense becomes what harms nothing.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args

import msgspec

from localinfer import decoding
from localinfer.history.lines import storable
from localinfer.history.values import Attachment, Conversation, Omission, Parameters, Turn, TurnState
from localinfer.types import Metrics

CONVERSATION = "id, title, created_s, changed_s, pinned, model, head, parameters, omissions"
TURN = (
    "id, parent, role, created_s, state, model, thought_s, thought_tokens, note, metrics, content, reasoning, "
    "attachments"
)

_UNKNOWN_S = 86_400.0  # for an instant; of an earlier one not every system knows the local time
_LAST_S = 253_370_764_800.0  # the year 9999, which no calendar here goes beyond
_LONGEST_S = 1e9  # of a duration
_MOST_TOKENS = 10**12
_STATES: tuple[TurnState, ...] = get_args(TurnState)

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
        title=text(title),
        created_s=_instant(created_s),
        changed_s=_instant(changed_s),
        pinned=isinstance(pinned, int) and pinned != 0,
        model=text(model),
        head=_number(head),
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
        parent=_number(parent),
        role=_role(role),
        content=text(content),
        created_s=_instant(created_s),
        reasoning=text(thoughts),
        attachments=attachments(attached),
        state=next((one for one in _STATES if one == state), "whole"),
        model=text(model),
        metrics=None if metrics is None else _decode(metrics, Metrics, None),
        thought_s=_real(thought_s, _LONGEST_S),
        thought_tokens=min(max(0, _number(thought_tokens) or 0), _MOST_TOKENS),
        note=text(note),
    )


def text(value: object) -> str:
    """The text in a column, "" where there is none."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def attachments(value: object) -> tuple[Attachment, ...]:
    """The attachments in a column."""
    return () if value == "[]" else _decode(value, tuple[Attachment, ...], ())


def searchable(content: str, attached: Sequence[Attachment]) -> str:
    """The text of a turn by which it is found."""
    return "\n".join((content, *(f"{one.name}\n{one.text}" for one in attached)))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _real(value: object, most: float) -> float | None:
    """A number from 0 to ``most``, None for all else."""
    return float(value) if isinstance(value, float | int) and 0 <= value <= most else None


def _instant(value: object) -> float:
    found = _real(value, _LAST_S)
    return _UNKNOWN_S if found is None else found


def _role(value: object) -> Literal["user", "assistant"]:
    return "user" if value == "user" else "assistant"


def _decode(value: Any, kind: Any, default: T) -> T:
    try:
        decoded: T = decoding.json(value, kind)
    except (ValueError, TypeError, RecursionError):  # what msgspec raises is a ValueError too
        return default
    return decoded
