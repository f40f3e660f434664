"""How models are loaded: what the command line says over what the settings say."""

from localinfer import settings
from localinfer.errors import BadRequest
from localinfer.types import LoadOptions, Speculation


def drafting(draft: str | None) -> str:
    """What ``--draft`` says, over the settings: a word or a model. Raises ``BadRequest`` where it says nothing."""
    if draft is None:
        return settings.load().draft
    if not draft:
        raise BadRequest("--draft is empty.", "Name a model, or say auto, lookup or off.", param="draft")
    word = draft.lower()
    return word if word in ("auto", "lookup", "off") else draft


def speculation(draft: str) -> Speculation:
    """What requests ask for where ``draft`` was given: a draft model that is loaded is used by ``auto``."""
    return {"lookup": Speculation(drafter="lookup"), "off": Speculation(drafter="off")}.get(draft, Speculation())


def load_options(
    *,
    backend: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    kv: str | None = None,
    context: int | None = None,
    require_gpu: bool = False,
    slots: int = 1,
) -> LoadOptions:
    """Options from the command line over those from the settings."""
    mine = settings.load()
    return LoadOptions(
        backend=backend or "llama.cpp",
        model="",
        name="",
        context=context or mine.context,
        slots=slots,
        threads=threads or mine.threads,
        kv_type=kv or mine.kv_type,
        device=device or mine.device,
        require_gpu=require_gpu,
    )
