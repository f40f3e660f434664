"""Which model drafts for another one: what ``--draft`` means, whether a draft can be used, and which are to be had.

It knows references, vocabularies and plans; it loads nothing, and how drafts are made is the backend's business.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, get_args

import msgspec

from localinfer.acquire import acquire, checked
from localinfer.advice import Advice, Entry, of_spec
from localinfer.errors import BadRequest, LocalInferError, ModelNotFound
from localinfer.lookup import Looked, look_up, vocabulary
from localinfer.machine import choose
from localinfer.models import fit, gguf, references, store
from localinfer.models.catalog import ModelSpec, catalog
from localinfer.models.explain import download_size, gib
from localinfer.models.names import printable
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.models.progress import FetchProgress
from localinfer.models.shape import ModelShape, from_gguf
from localinfer.models.store import ModelRef
from localinfer.placing import Beside, no_room, planning, with_draft
from localinfer.types import DraftModel, LoadOptions, Value

Word = Literal["auto", "lookup", "off"]
WORDS: tuple[Word, ...] = get_args(Word)

_MOST_PADDING = 1024  # tokens that one vocabulary may have more than the other


class Offer(Value, frozen=True):
    """A model that can draft. ``name`` is what is written after ``--draft``. ``fits``: beside the model it drafts for;
    None where that cannot be told. ``sentence`` says so in words."""

    name: str
    title: str
    fetched: bool
    fits: bool | None
    sentence: str


def check(draft: str) -> None:
    """Refuse what is neither a word nor can be a model, before anything is fetched. Raises ``BadRequest``."""
    if draft in WORDS:
        return
    try:
        store.resolve(draft)
    except ModelNotFound as error:
        if references.may_be_hub(draft):
            return
        said = f"“{printable(draft, 200)}” cannot draft: it is neither a model nor one of {', '.join(WORDS)}."
        message = error.message if draft.endswith(".gguf") else said
        raise BadRequest(message, error.hint, param="draft") from error


def propose(
    target: ModelRef,
    draft: ModelRef | str,
    options: LoadOptions,
    advice: Advice,
    *,
    offline: bool,
    progress: Callable[[FetchProgress], None],
) -> Beside | None:
    """The model that drafts for ``target``, fetched if it was named and is not here; None where none is to be loaded.

    ``auto`` is the catalogue's pair of the target, if it is here already and there is a GPU for both (see
    ``placing.with_draft``). Raises ``BadRequest`` where the one that was named cannot draft for the target, and what
    ``acquire`` does.
    """
    if draft in ("lookup", "off"):
        return None
    if draft == "auto":
        return _paired(target, options, advice)
    if isinstance(draft, str):
        check(draft)
        if not offline and not _here(draft):
            mine = gguf.vocabulary_of(target.path)
            compare(target.name, mine.count, mine, look_up(draft, advice, Ask(), offline=False))
        draft = acquire(draft, offline=offline, progress=progress)
    return _beside(target, draft)


def compare(name: str, tokens: int, target: gguf.Vocabulary | None, draft: Looked) -> None:
    """Refuse a draft whose vocabulary is not that of the model ``name``, as far as that is known without having fetched
    both: of models that are not here, perhaps only how many ``tokens`` there are. Raises ``BadRequest``."""
    other = vocabulary(draft)
    others = other.count if other else draft.shape.vocabulary
    said = gguf.difference(target, other) if target and other else ""
    if not said and tokens and others and abs(tokens - others) > _MOST_PADDING:
        said = f"{others:,} tokens instead of {tokens:,}"
    if said:
        raise _refused(draft.entry.name, name, f"it has another vocabulary ({said})")


def _here(reference: str) -> bool:
    """Whether a model's files are on this machine."""
    with contextlib.suppress(ModelNotFound):
        ref = store.resolve(reference)
        return bool(ref.paths) and not store.missing(ref)
    return False


def _paired(target: ModelRef, options: LoadOptions, advice: Advice) -> Beside | None:
    if target.spec is None or not target.spec.draft or not _on_gpu(options, advice):
        return None
    try:
        pair = paired(target.spec, advice)
        if pair is None or not pair.here:
            return None
        draft = ModelRef(name=pair.name, paths=pair.paths, spec=pair.spec)
        return msgspec.structs.replace(_beside(target, draft), asked=False)
    except LocalInferError:  # nobody asked for it
        return None


def _on_gpu(options: LoadOptions, advice: Advice) -> bool:
    return choose(advice.machine, device=options.device or None, require_gpu=options.require_gpu).device != HOST


def _beside(target: ModelRef, draft: ModelRef) -> Beside:
    """``draft``, if its tokens are those of ``target``. Raises ``BadRequest`` and what reading the files raises."""
    headers = checked(draft)
    if any(path.samefile(other) for path in draft.paths for other in target.paths):
        raise _refused(draft.name, target.name, "it is the same file")
    if said := gguf.difference(gguf.vocabulary_of(target.path), gguf.vocabulary_of(draft.path)):
        raise _refused(draft.name, target.name, f"it has another vocabulary ({said})")
    shape = from_gguf(headers)
    if _recurrent(shape):
        raise _refused(draft.name, target.name, "it is recurrent, and cannot take back a token that was wrong")
    return Beside(
        draft=DraftModel(model=str(draft.path), parts=tuple(map(str, draft.paths[1:])), name=draft.name), shape=shape
    )


def _recurrent(shape: ModelShape) -> bool:
    return any(layer.state_bytes for layer in shape.layers)


def _refused(draft: str, target: str, reason: str) -> BadRequest:
    return BadRequest(
        f"{draft} cannot draft for {target}: {reason}.", "Name a smaller model of the same family.", param="draft"
    )


def offers(
    reference: str,
    options: LoadOptions,
    *,
    freed: Mapping[str, int] | None = None,
    advice: Advice | None = None,
) -> tuple[Offer, ...]:
    """The models that can draft for ``reference``, a model that is here and is loaded by ``options``: the catalogue's
    pair first, which may have to be fetched, then what is here, has the same vocabulary and fewer parameters.

    ``freed`` is what the loaded model would give back, by device. Files are read: it may take a second. Raises as
    ``store.resolve`` and ``checked``.
    """
    advice = advice or Advice(measure=False)
    target = store.resolve(reference)
    headers = checked(target)
    options = msgspec.structs.replace(
        options, model=str(target.path), parts=tuple(map(str, target.paths[1:])), name=target.name
    )
    device = choose(advice.machine, device=options.device or None).device
    ask, planned = planning(headers, options, advice, device, freed)
    plan = planned(ask)
    pair = paired(target.spec, advice)
    return tuple(
        offer(entry, advice.shape(entry), plan, ask, planned)[0]
        for entry in ([pair] if pair else []) + list(_alike(target, from_gguf(headers), pair, advice))
    )


def paired(spec: ModelSpec | None, advice: Advice) -> Entry | None:
    """The catalogue's draft for a model of the catalogue: what is here of it, else what would be fetched."""
    if spec is None or not spec.draft:
        return None
    pair = catalog().find(spec.draft)
    here = next((entry for entry in advice.here() if entry.spec == pair and entry.format == "gguf"), None)
    return here or of_spec(pair, advice.variant(pair))


def _alike(target: ModelRef, whole: ModelShape, pair: Entry | None, advice: Advice) -> Iterator[Entry]:
    """The models here that can draft for ``target``."""
    mine = gguf.vocabulary_of(target.path)
    for entry in advice.here():
        if entry.format != "gguf" or entry.paths == target.paths or (pair is not None and entry.paths == pair.paths):
            continue
        with contextlib.suppress(LocalInferError):  # one that cannot be read is none to offer
            shape = advice.shape(entry)
            near = abs(shape.vocabulary - whole.vocabulary) <= _MOST_PADDING
            smaller = shape.parameters < whole.parameters and not _recurrent(shape)
            if near and smaller and not gguf.difference(mine, gguf.vocabulary_of(entry.paths[0])):
                yield entry


def offer(
    entry: Entry, shape: ModelShape, plan: MemoryPlan, ask: Ask, planned: Callable[[Ask], MemoryPlan]
) -> tuple[Offer, MemoryPlan]:
    """Whether ``entry`` fits beside the model that lies by ``plan``, and the plan of both, or else of the model alone.
    ``planned`` is as in ``placing.with_draft``."""
    size = download_size(entry.download_bytes, approximate=entry.approximate)
    beside = Beside(draft=DraftModel(model="", name=entry.name), shape=shape)
    fits: bool | None = False
    if not plan.fits:
        said = "the model does not fit without it"
    elif plan.verdict == "unknown" or not shape.layers:
        fits, said = None, "whether it fits cannot be told"
    else:
        plan, draft = with_draft(plan, beside, ask, planned)
        needed = gib(fit.draft_bytes(shape, ask, plan.context))
        if draft is None:
            said = f"does not fit: {no_room(plan, beside, ask)}"
        elif draft.device == HOST:
            fits, said = True, f"fits in memory with {needed}; on a processor it hardly ever pays"
        else:
            fits, said = True, f"fits on the GPU with {needed}"
    return Offer(name=entry.name, title=entry.title, fetched=entry.here, fits=fits, sentence=f"{size}, {said}"), plan
