"""What this machine can run: the models that are here and those of the catalogue, each with its memory plan.

It brings together what machine, catalogue, found files, plans and the oracle know. It loads and fetches nothing.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from localinfer import kept, machine, settings
from localinfer.errors import BackendUnavailable, LocalInferError
from localinfer.machine import Build, Choice, Machine
from localinfer.models import fit, gguf, lessons, oracle, shapes
from localinfer.models.catalog import Mlx, ModelSpec, Quantization, catalog, shape
from localinfer.models.found import FoundModel, Survey, survey
from localinfer.models.layout import Lessons, Oracle
from localinfer.models.plan import Ask, MemoryPlan
from localinfer.models.recommend import Pick, recommend, variants
from localinfer.models.shape import ModelShape
from localinfer.models.sizes import SizeRequest, outputs
from localinfer.probing import known_build
from localinfer.types import Value

_RECOMMENDED = "recommended.json"
_TIGHT = 0.25  # of what is needed
_ROUNDS = 3  # how often the oracle may send a plan back


class Entry(Value, frozen=True):
    """One model in one quantization. ``paths`` are its files if it is here; ``origin`` is where it is or comes from."""

    name: str
    title: str
    quantization: str
    size_bytes: int
    origin: str
    format: Literal["gguf", "mlx"] = "gguf"
    approximate: bool = False
    paths: tuple[Path, ...] = ()
    spec: ModelSpec | None = None
    variant: Quantization | Mlx | None = None

    @property
    def here(self) -> bool:
        """Whether it is on this machine."""
        return bool(self.paths)

    @property
    def download_bytes(self) -> int:
        """What is fetched to have it, which may be less than it takes here."""
        return self.variant.download_bytes if self.variant is not None else self.size_bytes


class Planned(Value, frozen=True):
    """An entry and its plan; ``error`` where its file cannot be read."""

    entry: Entry
    plan: MemoryPlan | None
    error: str = ""


class Advice:
    """Everything that can be said about running models here. What it asks, it asks once.

    ``measure``: the bandwidth of the memory may be measured if it is not known, which takes a second.
    """

    def __init__(self, *, measure: bool = True) -> None:
        self._measure = measure
        self._plans: dict[tuple[object, ...], MemoryPlan] = {}

    @cached_property
    def machine(self) -> Machine:
        """This machine, with what the installed builds can use of it."""
        return machine.look(builds=self._builds, measure=self._measure)

    @cached_property
    def choice(self) -> Choice:
        """What models run with."""
        return machine.choose(self.machine, device=settings.load().device)

    @cached_property
    def lessons(self) -> Lessons:
        """What earlier loads taught."""
        return lessons.learnt()

    @cached_property
    def survey(self) -> Survey:
        """The models that are here."""
        return survey(settings.load())

    @cached_property
    def _builds(self) -> tuple[Build, ...]:
        try:
            return (known_build(),)
        except LocalInferError:  # the machine is described all the same; doctor says what is wrong
            return ()

    def here(self) -> tuple[Entry, ...]:
        """The models on this machine."""
        return tuple(map(of_found, self.survey.models))

    def offered(self, *, every: bool = False) -> tuple[Entry, ...]:
        """The catalogue's chat models that are not here, best first: what suits this machine of each, or ``every``."""
        present = {(model.spec.id, model.variant.name) for model in self.survey.models if model.spec and model.variant}
        found = []
        for spec in sorted((spec for spec in catalog().models if spec.chat), key=lambda spec: -spec.rank):
            known = [of_spec(spec, variant) for variant in self._variants(spec, every)]
            missing = [entry for entry in known if (spec.id, entry.quantization) not in present]
            if every:
                found += missing
            elif len(missing) == len(known):
                found.append(self._best(missing))
        return tuple(found)

    def plan(self, entry: Entry, ask: Ask, *, exact: bool = False) -> MemoryPlan:
        """How ``entry`` would lie in memory; ``exact`` asks the library about a file that is here.

        Raises ``ModelFileInvalid``, ``StorageUnavailable``, for a device ``BadRequest`` and ``BackendUnavailable``, and
        what ``oracle.measure`` does.
        """
        if ask.device is not None:
            machine.choose(self.machine, device=ask.device)  # that it is there, and can be used
        if entry.format == "mlx" and self.choice.backend != "mlx":
            raise BackendUnavailable(f"{entry.title} is for MLX, which runs on Apple Silicon.", "Take a GGUF model.")
        known = self.shape(entry)
        if exact and entry.here and entry.format == "gguf":
            return refine(known, self.machine, ask, self.lessons, tuple(map(str, entry.paths)))
        question = (entry.name, entry.quantization, entry.format, entry.paths, msgspec.json.encode(ask))
        if question not in self._plans:
            self._plans[question] = fit.plan(known, self.machine, ask, lessons=self.lessons)
        return self._plans[question]

    def planned(self, entries: tuple[Entry, ...], ask: Ask) -> Iterator[Planned]:
        """Each entry with its plan."""
        for entry in entries:
            try:
                yield Planned(entry=entry, plan=self.plan(entry, ask))
            except LocalInferError as error:
                yield Planned(entry=entry, plan=None, error=error.message)

    def shape(self, entry: Entry) -> ModelShape:
        """The shape of a model: of its file if it is here, else what the catalogue knows."""
        if entry.here and (known := shapes.known(entry.paths)) is not None:
            return known
        if entry.spec is not None and entry.variant is not None:
            return shape(entry.spec, entry.variant)
        return shapes.read(entry.paths)

    def recommended(self, context: int | None = None, freed: Mapping[str, int] | None = None) -> Pick | None:
        """The best model of the catalogue for this machine; ``freed`` is what the loaded one would give back. It is
        remembered, so that the advice is steady."""
        device = next(one for one in self.machine.devices if one.id == self.choice.device)
        file = settings.state_dir() / _RECOMMENDED
        known = kept.load(file, dict[str, tuple[str, str]], {})
        place = f"{self.choice.backend} {device.id} {device.name} {context or ''}".strip()
        pick = recommend(
            catalog().models,
            self.machine,
            device=device,
            backend=self.choice.backend,
            context=context,
            lessons=self.lessons,
            freed=freed,
            before=known.get(place),
        )
        if pick is not None and (now := (pick.spec.id, pick.variant.name)) != known.get(place):
            kept.save(file, known | {place: now})
        return pick

    def best_here(self) -> Entry | None:
        """The best chat model on this machine that fits; None without one."""
        ranked = [entry for entry in self.here() if entry.spec is not None and entry.spec.chat]
        ranked.sort(key=lambda entry: (-(entry.spec.rank if entry.spec else 0), -entry.size_bytes))
        strangers = [entry for entry in self.here() if entry.spec is None and entry.format == "gguf"]
        strangers.sort(key=lambda entry: -entry.size_bytes)
        good = ("full", "full_short_ctx", "moe_offload", "partial", "cpu")
        for item in self.planned((*ranked, *strangers), Ask()):
            if item.plan and item.plan.verdict in good and (item.entry.spec or _talks(item.entry)):
                return item.entry
        return None

    def variant(self, spec: ModelSpec) -> Quantization:
        """The GGUF quantization of ``spec`` to take on this machine."""
        entries = [of_spec(spec, variant) for variant in variants(spec, "llama.cpp")]
        chosen = self._best(entries).variant
        return chosen if isinstance(chosen, Quantization) else spec.quantizations[0]

    def _variants(self, spec: ModelSpec, every: bool) -> tuple[Quantization | Mlx, ...]:
        if every:
            return spec.variants if self.choice.backend == "mlx" else spec.quantizations
        return tuple(variants(spec, self.choice.backend))

    def _best(self, entries: list[Entry]) -> Entry:
        """Of a model's quantizations, best first, the one to take here."""
        order = ("full", "full_short_ctx", "moe_offload", "cpu", "partial", "unknown", "too_big")
        plans = [item.plan for item in self.planned(tuple(entries), Ask())]
        verdicts = [order.index(plan.verdict if plan else "unknown") for plan in plans]
        best = min(verdicts)
        if order[best] == "too_big":
            return min(entries, key=lambda entry: entry.size_bytes)
        return entries[verdicts.index(best)]


def _talks(entry: Entry) -> bool:
    """Whether a model nobody vouches for was made for conversations."""
    try:
        return gguf.check(entry.paths[0]).has_chat_template
    except LocalInferError:
        return False


def of_found(model: FoundModel) -> Entry:
    """The entry of a model that is here."""
    return Entry(
        name=model.spec.id if model.spec and model.variant in model.spec.variants[:1] else model.name,
        title=model.spec.name if model.spec else model.name,
        quantization=model.quantization,
        size_bytes=model.size_bytes,
        origin=model.origin,
        format=model.format,
        paths=model.paths,
        spec=model.spec,
        variant=model.variant,
    )


def of_spec(spec: ModelSpec, variant: Quantization | Mlx) -> Entry:
    """The entry of a model of the catalogue that may have to be fetched."""
    return Entry(
        name=spec.id if variant is spec.quantizations[0] else f"{spec.id}:{variant.name}",
        title=spec.name,
        quantization=variant.name,
        size_bytes=variant.size_bytes,
        origin="package index" if isinstance(variant, Quantization) and variant.pypi else "hub",
        format="mlx" if isinstance(variant, Mlx) else "gguf",
        approximate=variant.approximate,
        spec=spec,
        variant=variant,
    )


def refine(
    known: ModelShape,
    here: Machine,
    ask: Ask,
    learnt: Lessons,
    paths: tuple[str, ...],
    header_hash: str | None = None,
    child: oracle.SizingChild | None = None,
) -> MemoryPlan:
    """A plan the library agrees with: it is asked about each placement until it sends none back.

    ``paths`` may be sparse copies, if ``header_hash`` says of what; ``child`` is asked if there is one. Raises what
    ``oracle.measure`` does.
    """
    plan = fit.plan(known, here, ask, lessons=learnt)
    for _ in range(_ROUNDS):
        if plan.verdict in ("too_big", "unknown") or plan.expert_layers or len(plan.devices) > 2:
            return plan
        request = SizeRequest(
            paths=paths,
            context=plan.context,
            slots=plan.slots,
            kv_type=plan.kv_type,
            device=plan.device,
            gpu_layers=plan.gpu_layers,
            micro_batch=ask.micro_batch,
            outputs=outputs(plan.slots),
        )
        said = Oracle(request=request, sizes=oracle.measure(request, header_hash=header_hash, child=child))
        again = fit.plan(known, here, ask, lessons=learnt, oracle=said)
        same = (again.device, again.gpu_layers, again.context) == (plan.device, plan.gpu_layers, plan.context)
        plan = again
        if same:
            break
    return plan


def tight(plan: MemoryPlan) -> bool:
    """Whether an estimate that is a little off would change the verdict: then the library is to be asked."""
    return plan.verdict == "too_big" or any(load.spare_bytes < _TIGHT * load.needed_bytes for load in plan.devices)
