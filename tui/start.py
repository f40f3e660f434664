"""How the application is started: what was asked for on the command line."""

from localinfer.types import LoadOptions, Value


class Start(Value, frozen=True):
    """``reference`` is the model asked for, None for the usual one; ``options`` say how to load whatever is loaded."""

    options: LoadOptions
    reference: str | None = None
    offline: bool = False
    force: bool = False
    system: str = ""
