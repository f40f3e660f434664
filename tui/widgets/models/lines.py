"""The lines of the list of models: what is here, what the catalogue offers, what the hub found, in which order.

Values and pure functions, but for ``look`` and ``find``, which ask the disk or the hub and are run in threads. Nothing
is drawn here.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from localinfer.types import Value

if TYPE_CHECKING:
    from localinfer.advice import Advice, Entry, Planned
    from localinfer.downloads import Download
    from localinfer.models.hub import Found
    from localinfer.models.plan import Ask, MemoryPlan
    from localinfer.models.recommend import Pick

Section = Literal["fetching", "here", "offered", "heavy", "hub"]

SLOW_TPS = 5.0  # about as fast as people read
HUB_LIMIT = 20

TITLES: dict[Section, str] = {  # in the order of the list
    "fetching": "Downloads",
    "here": "On this machine",
    "offered": "In the catalogue: ★ suits this machine best, then by quality",
    "heavy": "In the catalogue, too big or slower than people read",
    "hub": "On the hub, most downloaded first",
}


class Line(Value, frozen=True):
    """One model. ``key`` tells it from the others. ``variants`` are all quantizations of it with their plans, the one
    to take first looked at as ``usual``; none before a repository of the hub was looked into.

    ``licence``, ``capabilities`` and ``facts`` are in words; ``gated``: its terms must be accepted on the hub first.
    """

    key: str
    section: Section
    title: str
    variants: "tuple[Planned, ...]" = ()
    usual: int = 0
    capabilities: tuple[str, ...] = ()
    licence: str = ""
    facts: tuple[str, ...] = ()
    recommended: bool = False
    gated: bool = False

    @property
    def words(self) -> str:
        """Everything a person may look for."""
        told = (self.title, self.key, self.licence, *self.capabilities, *(v.entry.quantization for v in self.variants))
        return " ".join(told).casefold()


class Listing(Value, frozen=True):
    """All that is known without the hub. ``free_disk_bytes`` is where the hub's models go."""

    lines: tuple[Line, ...]
    notices: tuple[str, ...] = ()
    machine: str = ""
    free_disk_bytes: int | None = None


def reference(entry: "Entry") -> str:
    """How this very file is named to whoever fetches or loads it."""
    spec, variant = entry.spec, entry.variant
    if spec is None or variant is None or entry.format == "mlx":
        return entry.name
    return f"{spec.id}:{variant.name}"


def look(advice: "Advice", ask: "Ask") -> Listing:
    """What is here and what the catalogue offers, with plans. May take a second. Raises ``LocalInferError``."""
    from localinfer.downloads import free_disk_bytes

    pick = advice.recommended(ask.context, ask.freed)
    here = [_here(advice, ask, entry) for entry in advice.here()]
    here.sort(key=lambda line: (-_rank(line), line.title.casefold()))
    offered = [_offered(advice, ask, entry, pick) for entry in advice.offered()]
    offered.sort(key=lambda line: (line.section == "heavy", not line.recommended))
    return Listing(
        lines=(*here, *offered),
        notices=advice.survey.notices,
        machine=advice.choice.reason,
        free_disk_bytes=free_disk_bytes(),
    )


def find(query: str, *, offline: bool) -> tuple[Line, ...]:
    """What the hub has. Raises ``LocalInferError``."""
    from localinfer.models.hub import Hub

    return tuple(map(of_hub, Hub(offline=offline).search(query, HUB_LIMIT)))


def of_hub(found: "Found") -> Line:
    """The line of a repository that has not been looked into."""
    facts = [f"{short_count(found.downloads)} downloads"]
    if found.updated:
        facts.append(f"changed {found.updated[:10]}")
    if found.format == "mlx":
        facts.append("for MLX")
    return Line(
        key=found.id, section="hub", title=found.id, licence=found.licence, facts=tuple(facts), gated=found.gated
    )


def exactly(line: Line, variant: int, advice: "Advice", ask: "Ask", *, offline: bool) -> Line:
    """The line with what takes longer to find out: the plan as the library says it, what a repository holds.

    Raises ``LocalInferError``.
    """
    if not line.variants:
        return _looked_into(line, advice, ask, offline=offline)
    planned = line.variants[variant]
    if not planned.entry.here or planned.entry.format != "gguf" or planned.plan is None:
        return line
    plan = advice.plan(planned.entry, ask, exact=True)
    variants = [*line.variants]
    variants[variant] = msgspec.structs.replace(planned, plan=plan)
    return msgspec.structs.replace(line, variants=tuple(variants))


def matching(lines: Iterable[Line], query: str) -> tuple[Line, ...]:
    """The lines in which every word of ``query`` occurs."""
    wanted = query.casefold().split()
    return tuple(line for line in lines if all(word in line.words for word in wanted))


def short_count(number: int) -> str:
    """A count in a few characters: "1.2M", "35k", "812"."""
    return f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k" if number >= 1e4 else f"{number:,}"


def worthwhile(plan: "MemoryPlan | None") -> bool:
    """Whether it can be used here with some patience."""
    return plan is not None and plan.fits and (plan.decode_tps is None or plan.decode_tps.middle >= SLOW_TPS)


def _rank(line: Line) -> int:
    spec = line.variants[0].entry.spec
    return spec.rank if spec is not None and spec.chat else -1


def _here(advice: "Advice", ask: "Ask", entry: "Entry") -> Line:
    """A model that is here, with the other quantizations of it."""
    return _line("here", entry, f"{entry.name}\n{entry.paths[0]}", _variants(advice, ask, entry))


def _offered(advice: "Advice", ask: "Ask", entry: "Entry", pick: "Pick | None") -> Line:
    variants = _variants(advice, ask, entry)
    recommended = pick is not None and pick.spec == entry.spec
    if recommended and pick is not None:
        entry = next((one.entry for one in variants if one.entry.variant == pick.variant), entry)
    plan = next((one.plan for one in variants if one.entry == entry), None)
    assert entry.spec is not None
    line = _line("offered" if worthwhile(plan) else "heavy", entry, entry.spec.id, variants)
    return msgspec.structs.replace(line, recommended=recommended)


def _line(section: Section, entry: "Entry", key: str, variants: "tuple[Planned, ...]") -> Line:
    from localinfer.models.explain import count

    spec = entry.spec
    facts = []
    if spec is not None:
        active = f", {count(spec.active_parameters)} active" if spec.active_parameters else ""
        facts = [f"{count(spec.parameters)} parameters{active}", f"trained with {spec.context:,} tokens"]
        if not spec.chat:
            facts.append("a base model: it continues text and does not chat")
    return Line(
        key=key,
        section=section,
        title=entry.title,
        variants=variants,
        usual=next(index for index, one in enumerate(variants) if one.entry == entry),
        capabilities=spec.capabilities if spec else (),
        licence=spec.licence if spec else "",
        facts=tuple(facts),
    )


def _variants(advice: "Advice", ask: "Ask", entry: "Entry") -> "tuple[Planned, ...]":
    """All quantizations of the same model, ``entry`` among them."""
    from localinfer.advice import of_found, of_spec

    spec = entry.spec
    if spec is None or entry.variant is None:
        return tuple(advice.planned((entry,), ask))
    here = {model.variant: of_found(model) for model in advice.survey.models if model.spec == spec}
    offered = spec.variants if advice.choice.backend == "mlx" or entry.format == "mlx" else spec.quantizations
    entries = [
        entry if variant == entry.variant else here.get(variant) or of_spec(spec, variant) for variant in offered
    ]
    return tuple(advice.planned(tuple(entries), ask))


def _looked_into(line: Line, advice: "Advice", ask: "Ask", *, offline: bool) -> Line:
    from localinfer.advice import Planned
    from localinfer.lookup import look_up
    from localinfer.models.explain import count

    looked = look_up(line.key, advice, ask, offline=offline)
    variants = [
        Planned(entry=entry, plan=looked.plan if entry.name == looked.entry.name else plan)
        for entry, plan in looked.variants
    ] or [Planned(entry=looked.entry, plan=looked.plan)]
    shape = looked.shape
    facts = [f"{count(shape.parameters)} parameters"]
    if shape.context:
        facts.append(f"trained with {shape.context:,} tokens")
    return msgspec.structs.replace(
        line,
        variants=tuple(variants),
        usual=next((n for n, one in enumerate(variants) if one.entry.name == looked.entry.name), 0),
        licence=line.licence or looked.licence,
        facts=(*facts, *line.facts),
    )


def current(known: Iterable[Line], model: str) -> str:
    """The key of the line whose file is ``model``, which is loaded; "" without one."""
    here = [line for line in known if line.section == "here"] if model else []
    return next((line.key for line in here if line.variants[line.usual].entry.paths[:1] == (Path(model),)), "")


def unlisted(downloads: "Iterable[Download]", known: Sequence[Line]) -> tuple[Line, ...]:
    """Lines for downloads of models that are not listed otherwise."""
    listed = {line.key for line in known}
    listed |= {reference(one.entry) for line in known for one in line.variants}
    return tuple(
        Line(key=one.reference, section="fetching", title=one.title)
        for one in downloads
        if one.state != "done" and one.reference not in listed
    )


def sectioned(lines: Iterable[Line]) -> Mapping[Section, list[Line]]:
    """The lines under their headings, in the order of the list."""
    found: dict[Section, list[Line]] = {section: [] for section in TITLES}
    for line in lines:
        found[line.section].append(line)
    return {section: inside for section, inside in found.items() if inside}
