"""Which process is writing a reply right now, so that a reply which nobody finishes any more can be told from one that
grows.

A process that writes replies holds a locked file beside the database; its name holds a token, which the reply has too.
The system releases the lock when the process ends, however it ends. All of it happens inside a writing transaction, so
that nobody looks at a file between its making and its locking.
"""

import contextlib
import os
import re
from pathlib import Path

from localinfer.lock import try_exclusive

_TOKEN = re.compile("[0-9a-f]{8}")


class Owner:
    """This opened history as the writer of replies."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held = contextlib.ExitStack()
        self._token = ""

    @property
    def writes(self) -> bool:
        """Whether it has written a reply yet."""
        return bool(self._token)

    @property
    def token(self) -> str:
        """What this writer's replies are marked with; "" where the folder knows no locks: then a reply counts as
        abandoned as soon as somebody else opens the history, until it is finished."""
        if not self._token:
            token = os.urandom(4).hex()
            with contextlib.suppress(OSError):
                if self._held.enter_context(try_exclusive(_file(self._database, token))):
                    self._token = token
        return self._token

    def release(self) -> None:
        """Write no more."""
        self._held.close()
        if self._token:
            _remove(_file(self._database, self._token))
            self._token = ""


def gone(database: Path, token: str) -> bool:
    """Whether the writer with ``token`` has ended. Its file is removed then."""
    if not _TOKEN.fullmatch(token):
        return True
    file = _file(database, token)
    try:
        if file.exists():
            with try_exclusive(file) as held:
                if not held:
                    return False
    except OSError:
        return False  # what cannot be told must not be ended
    _remove(file)
    return True


def _file(database: Path, token: str) -> Path:
    return database.with_name(f"{database.name}-writing-{token}")


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
