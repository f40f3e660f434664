"""A conversation written out: as Markdown for people, as JSON for programs. It touches no file."""

import re
import time
from collections.abc import Iterator, Sequence

import msgspec

from localinfer.history import tree
from localinfer.history.lines import one_line
from localinfer.history.values import Conversation, Turn
from localinfer.types import Metrics, Value

UNTITLED = "Untitled"
_CONTROL = {code: None for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(code) not in "\n\t"}
_NAME_LENGTH = 80
_UNFIT = re.compile(r'[/\\:*?"<>|\s]+')
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)
_STATES = {"growing": "still being written", "stopped": "stopped", "cut": "cut off", "failed": "failed"}


class Exported(Value, frozen=True):
    """The JSON form. ``turns`` are those of all branches; ``conversation.head`` is the end of the one in view."""

    conversation: Conversation
    turns: tuple[Turn, ...]
    format: str = "localinfer conversation"
    version: int = 1


def to_json(conversation: Conversation, turns: Sequence[Turn]) -> str:
    """Everything, as JSON with an indent; a field that has its default is left out."""
    value = msgspec.to_builtins(Exported(conversation=conversation, turns=tuple(turns)))
    value |= {"format": "localinfer conversation", "version": 1}
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def to_markdown(conversation: Conversation, turns: Sequence[Turn]) -> str:
    """The branch in view, as a document."""
    path = tree.branch(turns, conversation.head)
    left_out = tree.omission(path, conversation.omissions)
    parts = [f"# {one_line(conversation.title) or UNTITLED}", _about(conversation, len(path))]
    if conversation.parameters.system.strip():
        parts += ["## System prompt", conversation.parameters.system.strip()]
    for turn in path:
        parts += _turn(turn)
        if left_out is not None and turn.id == left_out.upto:
            parts.append("*The model no longer saw what is above.*")
            if left_out.summary.strip():
                parts.append(_quoted(f"In its place: {left_out.summary}"))
    return ("\n\n".join(parts) + "\n").translate(_CONTROL)


def file_name(title: str, suffix: str) -> str:
    """A name for the file of a conversation, fit for every system; ``suffix`` begins with a dot."""
    name = _UNFIT.sub("-", one_line(title, _NAME_LENGTH)).strip(".…- ")
    while len(name.encode()) > 2 * _NAME_LENGTH:
        name = name[:-1]
    if not name or _RESERVED.fullmatch(name):
        name = f"conversation-{name}".rstrip("-")
    return name + suffix


def day(instant_s: float) -> str:
    """An instant as people here write it: ``2026-11-28 15:30``."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(instant_s))
    except (OverflowError, ValueError, OSError):
        return "–"


def speaker(turn: Turn) -> str:
    """Who said it: the person, or the model by its name."""
    return "You" if turn.role == "user" else one_line(turn.model) or "Assistant"


def _about(conversation: Conversation, count: int) -> str:
    facts = [
        one_line(conversation.model),
        day(conversation.created_s),
        f"{count} {'message' if count == 1 else 'messages'}",
    ]
    return f"*{' · '.join(fact for fact in facts if fact)}*"


def _turn(turn: Turn) -> Iterator[str]:
    yield f"## {speaker(turn)}"
    if turn.reasoning.strip():
        # An empty line after the tag lets Markdown go on inside; the closing tag in a thought must not end it.
        thought = turn.reasoning.strip().replace("</details", "<\u200b/details")
        yield f"<details>\n<summary>{thought_line(turn)}</summary>\n\n{thought}\n\n</details>"
    if text := tree.composed(turn.content.strip(), turn.attachments):
        yield text
    if turn.state != "whole":
        yield f"*[{state_line(turn)}]*"
    if turn.metrics is not None:
        yield f"*{figures(turn.metrics)}*"


def state_line(turn: Turn) -> str:
    """What became of a reply that is not whole: "stopped", "failed: the model was unloaded"."""
    note = one_line(turn.note)
    return f"{_STATES.get(turn.state, turn.state)}{f': {note}' if note else ''}"


def thought_line(turn: Turn) -> str:
    """``Thought for 4.2 s · 310 tokens``, as far as it was measured."""
    took = f" for {turn.thought_s:.1f} s" if turn.thought_s is not None else ""
    return f"Thought{took}" + (f" · {turn.thought_tokens:,} tokens" if turn.thought_tokens else "")


def figures(metrics: Metrics) -> str:
    """The figures of a reply on one line; a dash for what was not measured."""
    ttft = f"{metrics.ttft_s:.2f}" if metrics.ttft_s is not None else "–"
    tps = "–" if metrics.tps is None else f"{metrics.tps:.0f}" if metrics.tps >= 10 else f"{metrics.tps:.1f}"
    parts = [f"TTFT {ttft} s", f"{tps} tok/s", f"{metrics.completion_tokens:,} tokens"]
    if metrics.acceptance_rate is not None:
        parts.append(f"drafts {metrics.acceptance_rate:.0%} accepted")
    return " · ".join(parts)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
