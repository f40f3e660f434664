"""The terminal as Textual drives it, left as it was whatever signals come and however the application ends.

Textual enters application mode again at every SIGCONT, also when it never left it: two threads then read the keys, and
what is restored at the end is the terminal of an application. It knows nothing of the application.
"""

import contextlib
import os
import signal
import termios
from collections.abc import Iterator
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

STDERR = 2  # where Textual draws
# What application mode switches on: paste, resize reports, mouse, focus, the alternate screen.
_MODES = (2004, 2048, 1000, 1003, 1015, 1006, 1016, 1004, 1049)
# All of that off, the keyboard's protocol too; the cursor and line wrap, which it switches off, on.
_LEAVE = b"\x1b[<u" + b"".join(b"\x1b[?%dl" % mode for mode in _MODES) + b"\x1b[?7h\x1b[?25h"


class TerminalDriver(LinuxDriver):
    """Application mode is entered once and left once, and again only around a suspension."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._wanted = False  # in the foreground
        self._on = False
        self._busy = False
        self._stop_later = False
        self._continued = False
        self._first: list[Any] | None = None

    def start_application_mode(self) -> None:
        """Enter application mode unless it is on, or is being entered; in the background it comes with SIGCONT."""
        self._wanted = self._continued = True
        if self._busy:
            return
        with self._undisturbed():
            while self._continued and not self._on:  # in the background it was stopped meanwhile, and nothing was done
                self._continued = False
                before = self._writer_thread
                try:
                    super().start_application_mode()  # type: ignore[no-untyped-call]
                finally:
                    self._on = self._writer_thread is not before
            if self._first is None:
                self._first = self.attrs_before
            self.attrs_before = self._first

    def stop_application_mode(self) -> None:
        """Leave application mode, if it is on."""
        self._wanted = False
        if self._on:
            with self._undisturbed():
                super().stop_application_mode()
                self._on = False

    def give_back(self) -> None:
        """Leave application mode at once and without Textual's threads, if it still is on."""
        if not self._on:
            return
        self._on = False
        with contextlib.suppress(OSError):
            os.write(STDERR, _LEAVE)
        with contextlib.suppress(termios.error):
            if self._first is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self._first)

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """While the mode changes, a SIGTSTP waits."""
        outer, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = outer
        if self._stop_later and not self._busy:
            self._sigtstp_application()

    def _sigtstp_application(self, *_: object) -> None:
        self._stop_later = self._busy
        if self._busy:
            return
        self._continued = False
        if self._auto_restart and self._on:
            with self._undisturbed():
                self.suspend_application_mode()
                self._stop_later = False
            self._must_signal_resume = self._wanted = True
        if self._continued:  # meanwhile
            self._sigcont_application()
        else:
            os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        self._continued = True
        if self._auto_restart and self._wanted and not self._on and not self._busy:
            self.resume_application_mode()
