"""The real command in a real pseudo-terminal: what is typed goes in byte by byte, what is shown is waited for."""

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import Self

from tests.cli.commands import COMMAND, environment

LONGEST_MATCH = 200  # characters of what is waited for
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"

# Take the terminal as the controlling one, so that Ctrl-C becomes a signal; let the signal through, as it is kept from
# what a script runs in the background; then become the command.
_LAUNCH = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A terminal in which ``localinfer arguments`` runs. ``screen`` is everything that was shown.

    ``stdout``: a file to be written by standard output instead of the terminal.
    """

    def __init__(self, *arguments: str, term: str = "xterm-256color", stdout: str = "", **extra: str) -> None:
        self.screen = ""
        self._seen = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self._modes = termios.tcgetattr(self._master)
        output = os.open(stdout, os.O_WRONLY | os.O_CREAT) if stdout else os.dup(slave)
        self._process = subprocess.Popen(
            [sys.executable, "-ISc", _LAUNCH, *COMMAND, *arguments],
            stdin=slave,
            stdout=output,
            stderr=slave,
            start_new_session=True,
            env=environment(TERM=term, **extra),
        )
        os.close(output)
        os.close(slave)

    @property
    def pid(self) -> int:
        """The command's process."""
        return self._process.pid

    def expect(self, pattern: str, timeout_s: float = 30) -> str:
        """Wait until ``pattern`` is shown after what was last waited for; what was shown from there to its end."""
        deadline = time.monotonic() + timeout_s
        wanted, start = re.compile(pattern), self._seen
        while (match := wanted.search(self.screen, start)) is None:
            start = max(self._seen, len(self.screen) - LONGEST_MATCH)
            pumped = self._pump(b"", deadline)
            assert pumped is not None, f"{pattern!r} was not shown, but {self.screen[self._seen :]!r}"
        start, self._seen = self._seen, match.end()
        return self.screen[start : self._seen]

    def send(self, typed: str | bytes, timeout_s: float = 60) -> None:
        """Type ``typed``, reading what is shown meanwhile."""
        data = typed.encode() if isinstance(typed, str) else typed
        deadline = time.monotonic() + timeout_s
        while data:
            sent = self._pump(data, deadline)
            assert sent is not None, f"{len(data)} bytes could not be typed"
            data = data[sent:]

    def ask(self, text: str) -> str:
        """Type a line; what is shown up to the next prompt."""
        self.send(text + "\n")
        return self.prompt()

    def interrupt(self, pattern: str) -> str:
        """Press Ctrl-C until ``pattern`` is shown.

        Python does not see a signal that arrives just before it begins to wait for a key or a lock.
        """
        for _ in range(9):
            self.send(CTRL_C)
            try:
                return self.expect(pattern, timeout_s=3)
            except AssertionError:
                continue
        self.send(CTRL_C)
        return self.expect(pattern, timeout_s=3)

    def prompt(self) -> str:
        """Wait for the prompt."""
        return self.expect(r"(\n|\x1b\[\?2004l\r)(\x1b\[\?2004h)?> ")

    def resize(self, columns: int, rows: int = 24) -> None:
        """Make the window another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def exit_code(self, timeout_s: float = 15) -> int:
        """Wait for the command to end."""
        deadline = time.monotonic() + timeout_s
        while self._pump(b"", deadline) is not None:
            pass
        try:
            return self._process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end, but showed {self.screen[self._seen :]!r}") from None

    def cooked(self) -> bool:
        """Whether the terminal takes and shows lines as it did before the command."""
        return termios.tcgetattr(self._master)[:4] == self._modes[:4]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._master)

    def _pump(self, data: bytes, deadline: float) -> int | None:
        """Let some bytes through; how many of ``data`` were taken, None when the command has gone or time is up."""
        ready = select.select([self._master], [self._master] if data else [], [], max(0, deadline - time.monotonic()))
        if not any(ready):
            return None
        if ready[0]:
            try:
                self.screen += self._decoder.decode(os.read(self._master, 65536))
            except OSError:  # the other side is closed
                return None
        with contextlib.suppress(BlockingIOError):
            return os.write(self._master, data[:1024]) if ready[1] else 0
        return 0
