"""The command line, and its entry point. Importing it loads nothing, so that Ctrl-C is answered from the start."""

import contextlib
import os
import sys


def main() -> None:
    """The console script: every failure ends in one clear line and the right exit code."""
    _occupy_streams()
    try:
        from localinfer.cli.commands import app
        from localinfer.cli.failures import guarded

        code = guarded(lambda: app(standalone_mode=False))
        _flush()
    except KeyboardInterrupt:  # between the commands' own handling of it
        sys.stderr.write("Stopped.\n")
        code = 130
    sys.exit(code)


def _occupy_streams() -> None:
    """A standard stream that the caller has closed becomes one that holds and takes nothing: the next file that is
    opened would otherwise get its number, and be written to by whatever prints."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _flush() -> None:
    """What cannot be written any more must not become a complaint of the interpreter at exit."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
