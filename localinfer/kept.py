"""What is remembered between runs: small JSON files in the state folder, whole or not there at all.

What cannot be read was never kept, and what cannot be written is found out again: only ``replace`` fails.
"""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TypeVar

import msgspec

from localinfer import decoding, settings
from localinfer.errors import StorageUnavailable

MOST_BYTES = 4_000_000  # of one file; ours have a few thousand

T = TypeVar("T")
D = TypeVar("D")


def load(path: Path, kind: type[T], default: D) -> T | D:
    """The value in ``path``; ``default`` where there is none, or none of that kind."""
    with contextlib.suppress(OSError, ValueError):  # what msgspec raises is a ValueError too
        return decoding.json(settings.read_file(path, MOST_BYTES), kind)
    return default


def replace(path: Path, value: object) -> None:
    """Put ``value`` into ``path`` in one step: whoever reads it finds the old or the new. Raises ``OSError``,
    ``StorageUnavailable``."""
    put(path, msgspec.json.format(msgspec.json.encode(value)))


def put(path: Path, data: bytes) -> None:
    """As ``replace``, with the bytes of the file. Only the person may read a file that is new."""
    settings.make_folder(path.parent)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(path: Path, value: object) -> None:
    """As ``replace``, as well as can be."""
    with contextlib.suppress(OSError, StorageUnavailable):
        replace(path, value)


def trim(folder: Path, most: int) -> None:
    """Delete the oldest files of ``folder`` beyond ``most``."""
    with contextlib.suppress(OSError):
        aged = sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime)
        for old in aged[: max(0, len(aged) - most)]:
            old.unlink(missing_ok=True)
