"""A program in a pseudo-terminal, as somebody sees it who sits before it: bytes in, bytes out, and when they came."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

DEADLINE_S = 60.0


class Terminal:
    """``command`` in a terminal of ``columns`` x ``rows``. What it writes is read at once, by a thread of its own.

    Modules are compiled once, as they are for anybody who starts a program twice.
    """

    def __init__(
        self, command: Sequence[str], *, columns: int = 120, rows: int = 36, env: Mapping[str, str] | None = None
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._came = threading.Condition()
        self._chunks: list[tuple[float, bytes]] = []
        self._over = False
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONDONTWRITEBYTECODE": "",
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                **(env or {}),
            },
        )
        os.close(slave)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux says EIO when the other side is closed
                data = b""
            with self._came:
                if data:
                    self._chunks.append((time.perf_counter(), data))
                else:
                    self._over = True
                self._came.notify_all()
            if not data:
                return

    @property
    def position(self) -> int:
        """How many chunks have come: what comes later is searched from here on."""
        return len(self._chunks)

    def output(self) -> bytes:
        """Everything that was written."""
        return b"".join(data for _, data in self._chunks)

    def wait(self, text: str, since: int = 0) -> float:
        """When ``text`` had come whole (on ``perf_counter``), in what was written after ``since``."""
        wanted, deadline = text.encode(), time.perf_counter() + DEADLINE_S
        joined, index, at = b"", since, 0.0
        with self._came:
            while True:
                while index < len(self._chunks):
                    at, data = self._chunks[index]
                    joined = joined[-len(wanted) :] + data
                    index += 1
                    if wanted in joined:
                        return at
                left = deadline - time.perf_counter()
                if self._over or left <= 0 or not self._came.wait(left):
                    raise SystemExit(f"“{text}” was not drawn. Last output: {self.output()[-2000:]!r}")

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._master, keys.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self._master)
