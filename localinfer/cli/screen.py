"""Opening the terminal application: the composition root of its parts."""

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.start import Start

SIGNALLED = 128  # what a shell adds to the number of the signal that ended a command


def open_screen(start: "Start | None" = None) -> int:
    """Run the application until it is left, and return the exit code. Raises what it could not survive."""
    gc.disable()  # what is imported stays: walking through it again and again costs a twentieth of a second
    from localinfer.cli.loading import drafting, load_options, speculation
    from tui.app import LocalInfer
    from tui.start import Start

    gc.enable()
    if start is None:
        draft = drafting(None)
        start = Start(options=load_options(), draft=draft, speculation=speculation(draft))
    app = LocalInfer(start)
    app.obey_signals()
    try:
        app.run()
    finally:
        app.give_back_terminal()
        app.close()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0 if app.ended_by is None else SIGNALLED + app.ended_by
