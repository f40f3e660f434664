"""One model reference, looked up wherever models are: here, in the catalogue, on the hub, without fetching it."""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from localinfer.advice import Advice, Entry, of_found, of_spec, refine, tight
from localinfer.errors import DownloadFailed, LocalInferError, ModelFileInvalid, ModelNotFound
from localinfer.models import fit, found, gguf, oracle, recommend, references, store
from localinfer.models.catalog import catalog
from localinfer.models.gguf import Header
from localinfer.models.hub import Hub, Repo
from localinfer.models.plan import Ask, MemoryPlan
from localinfer.models.quantizations import RepoQuantization
from localinfer.models.ranges import RemoteSource
from localinfer.models.shape import ModelShape, from_gguf
from localinfer.types import Value

_LONG_BYTES = 8_000_000
_ORDER = ("full", "full_short_ctx", "moe_offload", "cpu", "partial", "unknown", "too_big")


class Looked(Value, frozen=True):
    """One model, its shape and plan, and its other quantizations with theirs. ``start`` is the beginning of its first
    file, if it is on the hub."""

    entry: Entry
    shape: ModelShape
    plan: MemoryPlan
    variants: tuple[tuple[Entry, MemoryPlan | None], ...] = ()
    licence: str = ""
    start: bytes = b""


def look_up(
    reference: str, advice: Advice, ask: Ask, *, offline: bool, say: Callable[[str], None] = lambda _: None
) -> Looked:
    """What ``reference`` names, planned as exactly as can be without fetching it. ``say`` hears of every wait.

    Raises ``ModelNotFound``, ``ModelFileInvalid``, ``Gated``, ``Offline``, ``DownloadFailed``, ``BadRequest``.
    """
    name, _, wanted = reference.rpartition(":")
    spec = catalog().get(reference) or (catalog().get(name) if name else None)
    if spec is not None:
        present = {model.variant: of_found(model) for model in advice.survey.models if model.spec == spec}
        runnable = spec.variants if advice.choice.backend == "mlx" else spec.quantizations
        entries = [present.get(variant) or of_spec(spec, variant) for variant in runnable]
        named = [entry for entry in entries if entry.quantization.casefold() == wanted.strip().casefold()]
        if catalog().get(reference) is None and not named:
            names = ", ".join(variant.name for variant in runnable)
            raise ModelNotFound(f"{spec.name} has no quantization “{wanted}”.", f"It has: {names}.")
        return _of_entries(named or entries, entries, advice, ask)
    try:
        ref = store.resolve(reference)
    except ModelNotFound:
        if not references.may_be_hub(reference):
            raise
        return _on_hub(reference, advice, ask, Hub(offline=offline, say=say))
    model = found.match(advice.survey.models, reference)
    entry = of_found(model) if model and model.paths == ref.paths else _of_file(ref.name, ref.paths)
    return _of_entries([entry], [], advice, ask)


def _of_file(name: str, paths: tuple[Path, ...]) -> Entry:
    size = sum(path.stat().st_size for path in paths)
    return Entry(name=name, title=name, quantization="", size_bytes=size, origin="file", paths=paths)


def _of_entries(candidates: list[Entry], all_of_it: list[Entry], advice: Advice, ask: Ask) -> Looked:
    """The best of the candidates: one that is here, else the one to take on this machine."""
    planned = list(advice.planned(tuple(candidates), ask))
    here = [item for item in planned if item.entry.here]
    spec = candidates[0].spec
    if here or spec is None or len(candidates) == 1:
        verdicts = [_ORDER.index(item.plan.verdict if item.plan else "unknown") for item in here or planned]
        entry = (here or planned)[verdicts.index(min(verdicts))].entry
    else:
        suited = advice.variant(spec)
        entry = next(entry for entry in candidates if entry.variant == suited)
    plan = advice.plan(entry, ask, exact=entry.here)
    variants = tuple((item.entry, item.plan) for item in advice.planned(tuple(all_of_it), ask))
    return Looked(entry=entry, shape=advice.shape(entry), plan=plan, variants=variants)


def _on_hub(reference: str, advice: Advice, ask: Ask, hub: Hub) -> Looked:
    asked = references.parse(reference)
    with oracle.SizingChild() as child:
        repo = hub.repo(asked.repo, asked.revision)
        child.start()  # it gets ready while the headers come
        named = repo.find(asked)
        sample, headers, starts = _sample(hub, repo, named)
        shape = from_gguf(headers)
        offered = _offered(repo)
        plans = _plans(offered, sample, shape, advice, ask)
        chosen = named or best(offered, plans, shape.parameters)
        if chosen is not sample:
            headers, starts = _headers(hub, repo, chosen)
            shape = from_gguf(headers)
        plan = _asked_of_library(chosen, headers, starts, shape, advice, ask, child)
    variants = tuple((_of_repo(repo, one), plans[one.name]) for one in offered)
    return Looked(
        entry=_of_repo(repo, chosen), shape=shape, plan=plan, variants=variants, licence=repo.licence, start=starts[0]
    )


def vocabulary(looked: Looked) -> gguf.Vocabulary | None:
    """The vocabulary of a model that was looked up; None where no file of it was looked into.

    Raises ``ModelFileInvalid``, ``ModelNotFound``, ``StorageUnavailable``.
    """
    if looked.entry.here and looked.entry.format == "gguf":
        return gguf.vocabulary_of(looked.entry.paths[0])
    return gguf.vocabulary(gguf.Start(looked.start, looked.entry.name)) if looked.start else None


def choose_on_hub(hub: Hub, repo: Repo, advice: Advice, ask: Ask) -> RepoQuantization:
    """The quantization of ``repo`` to take on this machine; where none can be looked into, one of 4 bits.

    Raises ``ModelNotFound``, ``Offline``.
    """
    offered = _offered(repo)
    if len(offered) == 1:
        return offered[0]
    try:
        sample, headers, _ = _sample(hub, repo, None)
        shape = from_gguf(headers)
    except (DownloadFailed, ModelFileInvalid):
        return min(offered, key=lambda one: (abs(recommend.bits(one.name) - 4), one.size_bytes))
    return best(offered, _plans(offered, sample, shape, advice, ask), shape.parameters)


def _offered(repo: Repo) -> list[RepoQuantization]:
    return [one for one in repo.quantizations if one.format == "gguf" and not one.missing]


def _nothing(repo: Repo) -> ModelNotFound:
    """That ``repo`` has no model to take."""
    if torn := [one for one in repo.quantizations if one.missing]:
        missing = ", ".join(torn[0].missing[:3])
        return ModelNotFound(
            f"{repo.id} is incomplete: it lacks {missing}.", "Search for another: localinfer search NAME"
        )
    if any(one.format == "mlx" for one in repo.quantizations):
        return ModelNotFound(f"{repo.id} holds a model for MLX alone.", "Search for one whose format is GGUF.")
    return ModelNotFound(f"{repo.id} holds no GGUF model.", "Search for another: localinfer search NAME")


def _sample(
    hub: Hub, repo: Repo, named: RepoQuantization | None
) -> tuple[RepoQuantization, tuple[Header, ...], list[bytes]]:
    """One quantization and its headers: the one that is meant, else one from the middle."""
    offered = _offered(repo)
    if named is None and not offered:
        raise _nothing(repo)
    sample = named or offered[len(offered) // 2]
    headers, starts = _headers(hub, repo, sample)
    return sample, headers, starts


def _plans(
    offered: list[RepoQuantization], sample: RepoQuantization, shape: ModelShape, advice: Advice, ask: Ask
) -> dict[str, MemoryPlan]:
    """A plan for each quantization, from the header of one."""
    return {
        one.name: fit.plan(
            scaled(shape, one.size_bytes / sample.size_bytes), advice.machine, ask, lessons=advice.lessons
        )
        for one in offered
    }


def best(offered: list[RepoQuantization], plans: dict[str, MemoryPlan], parameters: int) -> RepoQuantization:
    """The quantization to take: by the rule of ``recommend.variants`` the finest that fits, up to 6 bits."""
    least = 3 if parameters >= recommend.LARGE else 4
    usual = [one for one in offered if least <= recommend.bits(one.name) <= 6] or offered
    return min(
        usual, key=lambda one: (_ORDER.index(plans[one.name].verdict), -recommend.bits(one.name), one.size_bytes)
    )


def scaled(shape: ModelShape, factor: float) -> ModelShape:
    """The same model in a quantization ``factor`` times the size: close enough to choose by."""
    layers = tuple(
        msgspec.structs.replace(
            layer, weights_bytes=int(layer.weights_bytes * factor), expert_bytes=int(layer.expert_bytes * factor)
        )
        for layer in shape.layers
    )
    return msgspec.structs.replace(
        shape,
        layers=layers,
        embedding_bytes=int(shape.embedding_bytes * factor),
        output_bytes=int(shape.output_bytes * factor),
        other_bytes=int(shape.other_bytes * factor),
    )


def _of_repo(repo: Repo, unit: RepoQuantization) -> Entry:
    return Entry(
        name=f"{repo.id}:{unit.name}",
        title=repo.id,
        quantization=unit.name,
        size_bytes=unit.size_bytes,
        origin="hub",
        format=unit.format,
    )


def _headers(hub: Hub, repo: Repo, unit: RepoQuantization) -> tuple[tuple[Header, ...], list[bytes]]:
    """The headers of all files of a quantization, and the bytes they were read from."""
    headers, starts = [], []
    for file in unit.files:
        source = Recording(hub.header(repo, file))
        headers.append(gguf.read(source))
        starts.append(source.start(headers[-1].header_bytes))
    return tuple(headers), starts


class Recording:
    """A source that keeps what was read from it, so that a header need not be asked for twice."""

    def __init__(self, source: RemoteSource) -> None:
        self._source = source
        self._pieces: dict[int, bytes] = {}
        self.name = source.name
        self.size_bytes = source.size_bytes

    def read(self, offset: int, count: int) -> bytes:
        """As the source."""
        data = self._source.read(offset, count)
        self._pieces[offset] = data
        return data

    def start(self, count: int) -> bytes:
        """The first ``count`` bytes, as far as they were read without a gap."""
        joined = bytearray()
        for offset, piece in sorted(self._pieces.items()):
            if offset > len(joined):
                break
            joined[offset:] = piece
        return bytes(joined[:count])


def _asked_of_library(
    unit: RepoQuantization,
    headers: tuple[Header, ...],
    starts: list[bytes],
    shape: ModelShape,
    advice: Advice,
    ask: Ask,
    child: oracle.SizingChild,
) -> MemoryPlan:
    """The plan with the library's own figures, from the headers alone; by closed forms where it does not know them.

    A long header is a large vocabulary, which the library takes longer to read than a person waits: where its answer
    cannot change the verdict it is not asked.
    """
    formed = fit.plan(shape, advice.machine, ask, lessons=advice.lessons)
    if sum(map(len, starts)) > _LONG_BYTES and not tight(formed):
        return formed
    digest = hashlib.sha256(b"".join(starts)).hexdigest()
    try:
        with tempfile.TemporaryDirectory() as folder:
            paths = tuple(
                str(oracle.sparse_copy(start, header.file_size_bytes, Path(folder), Path(file.path).name))
                for start, header, file in zip(starts, headers, unit.files, strict=True)
            )
            return refine(shape, advice.machine, ask, advice.lessons, paths, digest, child)
    except LocalInferError:
        return formed
