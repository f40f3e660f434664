"""A prompt as token ids, made of pieces of text; and a conversation as a chat template expects it.

It knows nothing of templates themselves and nothing of what is inside a piece.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from localinfer.types import Message, Value

Turn = dict[str, str]


class Tokenizer(Protocol):
    """What the chat layer needs of a model's vocabulary; ``backends.base.Tokenizer`` has it."""

    bos: int | None
    eos: int | None
    adds_bos: bool

    def encode(self, text: str, *, special: bool) -> list[int]: ...
    def piece(self, token: int) -> bytes: ...
    def text(self, token: int) -> str: ...
    def control_texts(self) -> tuple[str, ...]: ...


class Prompt(Value, frozen=True):
    """Token ids to generate from. ``opens_reasoning``: they end inside a block of reasoning the template opened."""

    token_ids: tuple[int, ...]
    opens_reasoning: bool


def encode_pieces(tokenizer: Tokenizer, pieces: Iterable[tuple[str, bool]]) -> list[int]:
    """Ids of pieces of text one after the other, each with whether control tokens are recognised in it.

    There is one begin-of-sequence where the vocabulary or the first piece wants any. Some vocabularies put a space
    before every text they are given; so a later piece is given behind a line break, which is dropped together with that
    space.
    """
    ids: list[int] = []
    for text, special in pieces:
        ids += _continued(tokenizer, text, special) if ids else tokenizer.encode(text, special=special)
    given = next((place for place, token in enumerate(ids) if token != tokenizer.bos), len(ids))
    wanted = tokenizer.bos if given or tokenizer.adds_bos else None
    return [*([] if wanted is None else [wanted]), *ids[given:]]


def _continued(tokenizer: Tokenizer, text: str, special: bool) -> list[int]:
    ids = tokenizer.encode("\n" + text, special=special)
    lead = b""
    for place, token in enumerate(ids[:2]):
        lead += tokenizer.piece(token)
        if lead in (b"\n", b" \n"):
            return ids[place + 1 :]
    return tokenizer.encode(text, special=special)


def as_turns(messages: Sequence[Message]) -> list[Turn]:
    """Messages as the dictionaries that templates are written for."""
    return [
        {"role": message.role, "content": message.content}
        | ({} if message.reasoning is None else {"reasoning_content": message.reasoning})
        for message in messages
    ]


def without_system(turns: Sequence[Turn]) -> list[Turn]:
    """``turns`` with the system messages put before the first user message's text."""
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    rest = [turn for turn in turns if turn["role"] != "system"]
    if not system:
        return rest
    first = next((place for place, turn in enumerate(rest) if turn["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": "\n\n".join(system)}, *rest]
    user = rest[first] | {"content": "\n\n".join([*system, rest[first]["content"]])}
    return [*rest[:first], user, *rest[first + 1 :]]
