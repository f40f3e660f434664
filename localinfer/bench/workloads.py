"""What is asked: the built-in workloads, and prompts from a file of the person's. It knows no engine."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from localinfer import decoding, settings
from localinfer.bench.texts import BUILT_IN
from localinfer.errors import BadRequest
from localinfer.models.names import printable
from localinfer.types import Message, Value

MIXED = "mixed"
NAMES = (MIXED, *BUILT_IN)

_MOST_BYTES = 64_000_000
_MOST_PROMPTS = 10_000


class Prompt(Value, frozen=True):
    """One conversation to be answered. ``origin`` says where it is from, for errors: "line 3 of prompts.txt"."""

    messages: tuple[Message, ...]
    origin: str = ""

    def marked(self, mark: str) -> "Prompt":
        """The same with ``mark`` before its first message, so that no server has its beginning in a cache."""
        first, *rest = self.messages
        return Prompt(messages=(msgspec.structs.replace(first, content=f"[{mark}] {first.content}"), *rest))


class Workload(Value, frozen=True):
    """Prompts of one kind."""

    name: str
    prompts: tuple[Prompt, ...]


class _Line(Value, frozen=True, forbid_unknown_fields=False):
    """A line of a JSONL file: one of the two."""

    prompt: str | None = None
    messages: tuple[Message, ...] | None = None


def built_in(name: str) -> tuple[Workload, ...]:
    """The workload of that name, or all of them for ``MIXED``. Raises ``BadRequest``."""
    if name != MIXED and name not in BUILT_IN:
        raise BadRequest(
            f"There is no workload “{printable(name, 40)}”.", f"Choose one of: {', '.join(NAMES)}.", param="workload"
        )
    kinds = BUILT_IN if name == MIXED else {name: BUILT_IN[name]}
    return tuple(
        Workload(
            name=kind, prompts=tuple(Prompt(messages=(_user(text),), origin=f"the {kind} workload") for text in texts)
        )
        for kind, texts in kinds.items()
    )


def from_file(path: Path) -> tuple[Workload, ...]:
    """The prompts of the file at ``path``: one per line, or one JSON object per line with "prompt" or "messages".

    Raises ``BadRequest`` naming the line that is wrong.
    """
    name = printable(path.name, 80)
    lines = [(number, line) for number, line in enumerate(_text(path, name).split("\n"), 1) if line.strip()]
    if not lines:
        raise BadRequest(f"{name} holds no prompt.", "Write one prompt per line.", param="file")
    if len(lines) > _MOST_PROMPTS:
        raise BadRequest(f"{name} has {len(lines):,} prompts.", f"Give {_MOST_PROMPTS:,} at most.", param="file")
    as_json = lines[0][1].lstrip().startswith("{")
    prompts = []
    for number, line in lines:
        origin = f"line {number} of {name}"
        messages = _messages(line, origin) if as_json else (_user(line.strip()),)
        prompts.append(Prompt(messages=messages, origin=origin))
    return (Workload(name=name, prompts=tuple(prompts)),)


def interleaved(workloads: Sequence[Workload]) -> tuple[Prompt, ...]:
    """All prompts, taking one of each workload in turn until none is left."""
    longest = max(len(workload.prompts) for workload in workloads)
    return tuple(
        workload.prompts[index] for index in range(longest) for workload in workloads if index < len(workload.prompts)
    )


def _prompt(text: str, origin: str) -> Prompt:
    return Prompt(messages=(_user(text),), origin=origin)


def _user(text: str) -> Message:
    return Message(role="user", content=text)


def _text(path: Path, name: str) -> str:
    try:
        data = settings.read_file(path, _MOST_BYTES)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequest(
            f"{name} cannot be read: {printable(reason, 200)}.", "Name a text file.", param="file"
        ) from error
    if b"\0" in data:
        raise BadRequest(f"{name} is a binary file.", "Name a text file with one prompt per line.", param="file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"{name} is not valid UTF-8: byte {data[error.start]:#04x} at position {error.start:,}.",
            "Convert it first, for example with “iconv -t utf-8”.",
            param="file",
        ) from error


def _messages(line: str, origin: str) -> tuple[Message, ...]:
    hint = 'Write {"prompt": "…"} or {"messages": [{"role": "user", "content": "…"}]}.'
    try:
        found = decoding.json(line, _Line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"In {origin}: {printable(str(error), 200)}.", hint, param="file") from error
    if (found.prompt is None) == (found.messages is None):
        raise BadRequest(f"In {origin}: it needs either “prompt” or “messages”.", hint, param="file")
    if found.messages is None:
        found = _Line(messages=(_user(found.prompt or ""),))
    assert found.messages is not None
    if not found.messages or found.messages[-1].role != "user" or not found.messages[-1].content.strip():
        raise BadRequest(f"In {origin}: the last message must be the user's and not empty.", hint, param="file")
    return found.messages
