"""What a command's failure looks like and which exit code it has. A stack trace goes to the log file only."""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable

import typer

from localinfer.cli.console import ReaderGone, output_lost, report
from localinfer.errors import BadRequest, LocalInferError, StorageUnavailable

INTERRUPTED = 130
_WRITERS = ("typer", "click", "rich")  # what writes help and versions to standard output itself


def guarded(command: Callable[[], object]) -> int:
    """Run ``command`` and return the exit code."""
    try:
        result = command()
    except typer.TyperException as error:
        report(BadRequest(error.format_message().rstrip("."), f"Run “{_help(error)}”."))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except ReaderGone:
        # Keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _failed(output_lost(error) if _of_output(error) else _of_file(error))
    except Exception as error:
        return _failed(error)
    if result == INTERRUPTED:
        with contextlib.suppress(OSError):
            sys.stderr.write("\nStopped.\n" if sys.stderr.isatty() else "Stopped.\n")
    return result if isinstance(result, int) else 0


def _of_output(error: OSError) -> bool:
    """Whether standard output did not take what typer wrote: such an error names no file, and arises there."""
    names = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return error.filename is None and bool(names) and names[-1].partition(".")[0] in _WRITERS


def _of_file(error: OSError) -> Exception:
    """The error that names the file it is about; itself where it names none."""
    if error.filename is None:
        return error
    from localinfer.models.names import printable

    name = printable(os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename))
    return StorageUnavailable(
        f"{name} cannot be used: {error.strerror or error}.", f"Check what it is and who may use it. {_log(error)}"
    )


def _help(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'localinfer'} --help"


def _failed(error: Exception) -> int:
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
