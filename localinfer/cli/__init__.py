"""The command line, and its entry point. Importing it loads nothing, so that Ctrl-C is answered from the start."""

import contextlib
import os
import sys
from functools import partial


def main() -> None:
    """The console script: every failure ends in one clear line and the right exit code."""
    _occupy_streams()
    try:
        code = _screen() if not sys.argv[1:] and in_a_terminal() else _command()
    except KeyboardInterrupt:  # between the commands' own handling of it
        sys.stderr.write("Stopped.\n")
        code = 130
    sys.exit(code)


def in_a_terminal() -> bool:
    """Whether there is a screen to draw on and a person to type."""
    usable = os.environ.get("TERM", "" if os.name == "posix" else "console") not in ("", "dumb", "unknown")
    return usable and sys.stdin.isatty() and sys.stdout.isatty()


def _screen() -> int:
    """The terminal application; the parser of the command line, which takes a tenth of a second, is not needed."""
    try:
        from localinfer.cli.screen import open_screen

        return open_screen()
    except Exception as error:
        from localinfer.cli.failures import guarded

        return guarded(partial(_raise, error))


def _command() -> int:
    from localinfer.cli.commands import app
    from localinfer.cli.failures import guarded

    code = guarded(lambda: app(standalone_mode=False))
    _flush()
    return code


def _raise(error: Exception) -> None:
    raise error


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
