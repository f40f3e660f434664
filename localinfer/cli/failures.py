"""What a command's failure looks like and which exit code it has. A stack trace goes to the log file only."""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable

INTERRUPTED = 130


def guarded(command: Callable[[], object]) -> int:
    """Run ``command`` and return the exit code."""
    import click

    try:
        result = command()
    except KeyboardInterrupt:
        return _interrupted()
    except click.exceptions.Abort:
        return _interrupted()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output has gone; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


def _interrupted() -> int:
    sys.stderr.write("\nStopped.\n")
    return INTERRUPTED


def _failed(error: Exception) -> int:
    from localinfer.cli.console import report
    from localinfer.errors import LocalInferError

    if not isinstance(error, LocalInferError):
        error = LocalInferError(f"Something unexpected happened: {error or type(error).__name__}", _log(error))
    with contextlib.suppress(OSError):
        report(error)
    return error.exit_code


def _log(error: Exception) -> str:
    from localinfer import settings

    path = settings.log_dir() / "crash.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return "Please report this."
    return f"Please report this with the details in {path}."
