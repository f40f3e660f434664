"""The vocabulary that the header of a GGUF file lists, and whether tokens of one model mean the same to another.

It compares lists of tokens; it knows nothing of how a text becomes tokens.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from localinfer.models.gguf.header import LONGEST_LOCAL_BYTES, LONGEST_REMOTE_BYTES, opened, quoted, read_metadata
from localinfer.models.gguf.reader import Reader, Source
from localinfer.types import Value

_KEY = "tokenizer.ggml."
_UNUSED = 5  # the type of a token that stands for nothing
_LENGTH = struct.Struct("<Q")
_TYPE = struct.Struct("<i")
_PADDING = re.compile(rb"[<\[|]*(pad|unused|reserved|dummy)[a-z_ ]*\d+[>\]|]*", re.IGNORECASE)


class Vocabulary(Value, frozen=True):
    """``count`` tokens as they lie in the file: of each the length of its text in eight bytes, then the text. ``types``
    are four bytes for each token, or none at all; ``bos`` and ``eos`` are None where the file names none."""

    model: str
    count: int
    tokens: bytes
    types: bytes = b""
    bos: int | None = None
    eos: int | None = None


def vocabulary(source: Source, *, longest_bytes: int = LONGEST_REMOTE_BYTES) -> Vocabulary:
    """The vocabulary of a model, from the first of its files. Raises as ``header.read``."""
    reader = Reader(source, longest_bytes)
    _, _, metadata = read_metadata(reader)

    def elements(name: str) -> bytes:
        return reader.piece(*metadata.places.get(_KEY + name, (0, 0)))

    count = metadata.counts.get(_KEY + "tokens", 0)
    types = elements("token_type")
    return Vocabulary(
        model=metadata.text(_KEY + "model") or "",
        count=count,
        tokens=elements("tokens") if count else b"",
        types=types if len(types) == count * _TYPE.size else b"",
        bos=metadata.count(_KEY + "bos_token_id"),
        eos=metadata.count(_KEY + "eos_token_id"),
    )


def vocabulary_of(path: Path) -> Vocabulary:
    """The vocabulary of the model whose first file is at ``path``. Raises as ``header.check``."""
    with opened(path) as source:
        return vocabulary(source, longest_bytes=LONGEST_LOCAL_BYTES)


def difference(one: Vocabulary, other: Vocabulary) -> str:
    """Why the tokens of one are not those of the other, in words; "" where they are.

    One list may be longer, if what it has more are tokens that stand for nothing: models are padded to round sizes. No
    text becomes such a token, but nothing keeps a model from choosing one: whoever passes tokens from one model to the
    other has to leave out those that only the longer list has.
    """
    if not one.count or not other.count:
        return "one of them does not list its tokens"
    if one.model != other.model:
        return f"one is of the kind {quoted(one.model)}, the other of the kind {quoted(other.model)}"
    short, long = (one, other) if one.count <= other.count else (other, one)
    if long.tokens[: len(short.tokens)] != short.tokens:
        return _first_difference(one, other)
    if short.types and long.types and long.types[: len(short.types)] != short.types:
        return "some tokens are of another type, such as control tokens, in one of them"
    for name, first, second in (("begins", one.bos, other.bos), ("ends", one.eos, other.eos)):
        if None not in (first, second) and first != second:
            return f"a text {name} with the token {first:,} in one and {second:,} in the other"
    types = [_TYPE.unpack_from(long.types, at)[0] for at in range(len(short.types), len(long.types), _TYPE.size)]
    more = list(_texts(long.tokens[len(short.tokens) :]))
    for text, kind in zip(more, types or [0] * len(more), strict=False):
        if kind != _UNUSED and not _PADDING.fullmatch(text):
            return f"one has {len(more):,} tokens more than the other, such as {_shown(text)}"
    return ""


def _first_difference(one: Vocabulary, other: Vocabulary) -> str:
    counts = f"{one.count:,} and {other.count:,} tokens" if one.count != other.count else f"{one.count:,} tokens each"
    for number, (first, second) in enumerate(zip(_texts(one.tokens), _texts(other.tokens), strict=False)):
        if first != second:
            return f"of {counts}, token {number:,} is {_shown(first)} in one and {_shown(second)} in the other"
    return f"they have {counts}"


def _texts(tokens: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(tokens):
        (length,) = _LENGTH.unpack_from(tokens, at)
        at += _LENGTH.size + length
        yield tokens[at - length : at]


def _shown(text: bytes) -> str:
    return quoted(text.decode("utf-8", "replace"))
