"""Decoding into values, from any thread.

msgspec learns a type when it is first decoded into, and two threads that make it learn the same one at the same moment
crash the process: here they do so one after the other. Everything that decodes into structs goes through this module.
"""

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

_lock = threading.Lock()
_learnt: set[object] = set()


def json(data: bytes | str, kind: type[T]) -> T:
    """The value of ``kind`` that JSON ``data`` is. Raises ``msgspec.DecodeError``, a ``ValueError``."""
    _learn(kind)
    return msgspec.json.decode(data, type=kind)


def convert(value: object, kind: type[T], *, strict: bool = True) -> T:
    """``value``, of plain types, as ``kind``; not ``strict``: texts may stand for numbers. Raises
    ``msgspec.ValidationError``, a ``ValueError``."""
    _learn(kind)
    return msgspec.convert(value, kind, strict=strict)


def msgpack(kind: type[T]) -> msgspec.msgpack.Decoder[T]:
    """What decodes frames into ``kind``."""
    _learn(kind)
    return msgspec.msgpack.Decoder(kind)


def _learn(kind: object) -> None:
    if kind not in _learnt:
        with _lock:
            msgspec.json.Decoder(kind)
            _learnt.add(kind)
