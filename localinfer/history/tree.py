"""Turns as a tree: branches, their siblings, and what of a branch the model is sent. Pure.

Turns come in any order. Damaged data, such as a parent that is missing or a circle, ends the walk.
"""

import re
from collections.abc import Iterable, Sequence

from localinfer.history.values import Attachment, Omission, Parameters, Turn
from localinfer.types import Message

_FENCE = re.compile("`{3,}")


def branch(turns: Iterable[Turn], head: int | None) -> tuple[Turn, ...]:
    """The way from the root to ``head``; empty where there is no such turn."""
    left = {turn.id: turn for turn in turns}
    path = []
    while head is not None and (turn := left.pop(head, None)) is not None:
        path.append(turn)
        head = turn.parent
    return tuple(reversed(path))


def siblings(turns: Iterable[Turn], turn: Turn) -> tuple[Turn, ...]:
    """``turn`` and what was said in its place, by id."""
    beside = (one for one in turns if one.parent == turn.parent and one.role == turn.role)
    return tuple(sorted(beside, key=lambda one: one.id))


def tip(turns: Iterable[Turn], turn: Turn) -> Turn:
    """The end of the branch that goes on from ``turn`` by the newest answer each time."""
    newest: dict[int | None, Turn] = {}
    for one in turns:
        if one.parent not in newest or newest[one.parent].id < one.id:
            newest[one.parent] = one
    while (child := newest.pop(turn.id, None)) is not None:
        turn = child
    return turn


def omission(path: Sequence[Turn], omissions: Iterable[Omission]) -> Omission | None:
    """The one in force on ``path``, which is the furthest; of several at the same turn the last."""
    places = {turn.id: place for place, turn in enumerate(path)}
    return max(
        (one for one in reversed(tuple(omissions)) if one.upto in places),
        key=lambda one: places[one.upto],
        default=None,
    )


def seen(path: Sequence[Turn], omissions: Iterable[Omission]) -> tuple[Turn, ...]:
    """The turns of ``path`` that the model still sees."""
    left_out = omission(path, omissions)
    if left_out is None:
        return tuple(path)
    ids = [turn.id for turn in path]
    return tuple(path[ids.index(left_out.upto) + 1 :])


def messages(path: Sequence[Turn], parameters: Parameters, omissions: Iterable[Omission]) -> tuple[Message, ...]:
    """What the model is sent for ``path``.

    First the system prompt, if there is one, with the summary of what was left out. Replies that failed or are empty
    are not sent, nor are empty messages; what the same side then says in succession is one message, joined by an empty
    line.
    """
    left_out = omission(path, omissions)
    system = [parameters.system] if parameters.system.strip() else []
    if left_out is not None and left_out.summary.strip():
        system.append(
            f"The beginning of this conversation is left out. It is summarised as follows:\n{left_out.summary}"
        )
    sent = [Message(role="system", content="\n\n".join(system))] if system else []
    for turn in seen(path, omissions):
        text = composed(turn.content, turn.attachments)
        if not text.strip() or (turn.role == "assistant" and turn.state == "failed"):
            continue
        if sent and sent[-1].role == turn.role:
            before = sent.pop()
            text = f"{before.content}\n\n{text}"
        sent.append(Message(role=turn.role, content=text, reasoning=turn.reasoning or None))
    return tuple(sent)


def composed(content: str, attachments: Iterable[Attachment]) -> str:
    """A message with its attachments, as the model reads it: each file's name and its text between fences of more
    backticks than there are in a row in the text, then what the person wrote."""
    return "\n\n".join([*(_fenced(one) for one in attachments), *([content] if content else [])])


def _fenced(one: Attachment) -> str:
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(one.text))])
    text = one.text if one.text.endswith("\n") or not one.text else f"{one.text}\n"
    return f"{one.name}:\n{fence}\n{text}{fence}"
