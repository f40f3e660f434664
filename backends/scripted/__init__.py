"""A backend without a model, for tests, demonstrations and screenshots: it plays a script."""

import time

from backends.base import Progress
from backends.scripted.backend import ScriptedBackend
from backends.scripted.script import Script, parse_script
from backends.scripted.tokenizer import ByteTokenizer
from localinfer.errors import from_fault
from localinfer.types import Fault, LoadOptions

__all__ = ["ByteTokenizer", "Script", "ScriptedBackend", "load", "parse_script"]

LOAD_TICKS = 20


def load(options: LoadOptions, progress: Progress) -> ScriptedBackend:
    """Load the script in ``options.model``, taking ``load_s`` over it.

    Raises ``BadRequest`` for a bad script, and what ``fail_load`` names.
    """
    script = parse_script(options.model)
    for tick in range(LOAD_TICKS):
        progress(tick / LOAD_TICKS)
        time.sleep(script.load_s / LOAD_TICKS)
    if script.fail_load is not None:
        raise from_fault(
            Fault(kind=script.fail_load, message="The script says that loading fails.", hint="Remove “fail_load”.")
        )
    progress(1.0)
    return ScriptedBackend(script, options)
