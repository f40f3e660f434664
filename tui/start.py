"""How the application is started: what was asked for on the command line."""

from localinfer.types import LoadOptions, Sampling, Value


class Start(Value, frozen=True):
    """``reference`` is the model asked for, None for the usual one; ``options`` say how to load whatever is loaded;
    ``system`` and ``sampling`` are those of a new conversation."""

    options: LoadOptions
    reference: str | None = None
    offline: bool = False
    force: bool = False
    system: str = ""
    sampling: Sampling = Sampling()
