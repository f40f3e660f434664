"""How the application is started: what was asked for on the command line."""

from localinfer.types import LoadOptions, Sampling, Speculation, Value


class Start(Value, frozen=True):
    """``reference`` is the model asked for, None for the usual one; ``options`` say how to load whatever is loaded;
    ``system``, ``sampling`` and ``speculation`` are those of a new conversation, and ``draft`` is the draft model for
    whatever is loaded, or a word: see ``drafts.propose``."""

    options: LoadOptions
    reference: str | None = None
    offline: bool = False
    force: bool = False
    system: str = ""
    sampling: Sampling = Sampling()
    speculation: Speculation = Speculation()
    draft: str = "auto"
