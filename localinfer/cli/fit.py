"""``localinfer fit`` and ``show``: the memory plan of one model, term by term."""

import json
import shutil
import textwrap
from collections.abc import Iterable

import msgspec

from localinfer import drafts
from localinfer.advice import Advice, Entry
from localinfer.cli import console, words
from localinfer.lookup import Looked, look_up, vocabulary
from localinfer.models.explain import SOURCES, TERMS
from localinfer.models.plan import HOST, Ask, DeviceLoad, MemoryPlan, Term
from localinfer.models.shape import ModelShape

_FULL, _MARGIN, _FREE = "█", "▒", "░"


def fit(reference: str, ask: Ask, *, draft: str | None = None, offline: bool, as_json: bool) -> None:
    """Write the plan of one model, with that of ``draft`` if one is named and fits. Raises ``LocalInferError``."""
    if draft is not None:
        drafts.check(draft)
    advice = Advice()
    looked = look_up(reference, advice, ask, offline=offline, say=console.note)
    offer, plan = _suggested(looked, advice, ask), looked.plan
    if draft is not None and draft not in drafts.WORDS:
        offer, plan = _beside(draft, looked, reference, advice, ask, offline=offline)
    if as_json:
        found = {
            "name": looked.entry.name,
            "size_bytes": looked.entry.size_bytes,
            "plan": plan_object(plan),
            "draft": msgspec.to_builtins(offer),
        }
        console.write(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
        return
    _head(looked.entry, plan)
    if offer is not None:
        said = f"{'Draft' if draft else 'Could draft'}: {offer.name}, {offer.sentence}."
        console.write("".join(f"{line}\n" for line in textwrap.wrap(said, _width())))
    _plan(plan)


def _suggested(looked: Looked, advice: Advice, ask: Ask) -> drafts.Offer | None:
    """The catalogue's draft for a model."""
    pair = drafts.paired(looked.entry.spec, advice)
    if pair is None or looked.entry.format == "mlx":
        return None

    def planned(asked: Ask) -> MemoryPlan:
        return advice.plan(looked.entry, asked, exact=looked.entry.here)

    return drafts.offer(pair, advice.shape(pair), looked.plan, ask, planned)[0]


def _beside(
    draft: str, looked: Looked, reference: str, advice: Advice, ask: Ask, *, offline: bool
) -> tuple[drafts.Offer, MemoryPlan]:
    """The model that is to draft, and the plan of both, or else of the model alone. Raises ``LocalInferError``."""
    other = look_up(draft, advice, Ask(kv_type=ask.kv_type, device=ask.device), offline=offline, say=console.note)
    drafts.compare(looked.entry.name, looked.shape.vocabulary, vocabulary(looked), other)
    exact = reference if looked.entry.here else looked.entry.name  # the same quantization again

    def planned(asked: Ask) -> MemoryPlan:
        return look_up(exact, advice, asked, offline=offline, say=console.note).plan

    return drafts.offer(other.entry, other.shape, looked.plan, ask, planned)


def show(reference: str, ask: Ask, *, offline: bool) -> None:
    """Write what a model is, its quantizations and its plan. Raises ``LocalInferError``."""
    advice = Advice()
    looked = look_up(reference, advice, ask, offline=offline, say=console.note)
    _facts(looked, _suggested(looked, advice, ask))
    if looked.variants:
        console.write("\n")
        rows = [
            (
                variant.quantization or words.DASH,
                words.download_size(variant.size_bytes, approximate=variant.approximate),
                words.verdict(plan),
                words.speed(plan.decode_tps) if plan else words.DASH,
                "here" if variant.here else "",
            )
            for variant, plan in looked.variants
        ]
        words.table(("QUANT", "SIZE", "RUNS", "TOK/S", ""), rows, right=(1, 3))
    console.write("\n")
    _head(looked.entry, looked.plan)
    _plan(looked.plan)


def plan_object(plan: MemoryPlan) -> dict[str, object]:
    """A plan as JSON has it, with the sums a reader would otherwise have to make."""
    made: dict[str, object] = msgspec.to_builtins(plan)
    made.pop("traffic", None)
    made["total_bytes"] = plan.total_bytes
    made["terms"] = [
        {"kind": term.kind, "device": term.device, "size_bytes": term.size_bytes, "source": term.source}
        for term in plan.terms
    ]
    made["devices"] = [
        {**msgspec.to_builtins(load), "spare_bytes": load.spare_bytes, "freed_bytes": load.freed_bytes}
        for load in plan.devices
    ]
    made.setdefault("decode_tps", None)
    made.setdefault("prefill_tps", None)
    made.setdefault("notes", [])
    return made


def _facts(looked: Looked, draft: drafts.Offer | None) -> None:
    entry, shape = looked.entry, looked.shape
    spec = entry.spec
    console.write(f"{entry.title}\n")
    facts = [
        ("architecture", _architecture(shape)),
        ("parameters", _parameters(shape, spec.active_parameters if spec else 0)),
        ("context", f"{shape.context:,} tokens" if shape.context else ""),
        ("licence", spec.licence if spec else looked.licence),
        ("can", ", ".join(spec.capabilities) if spec else ""),
        ("could draft", f"{draft.name}, {draft.sentence}" if draft else ""),
        ("where", ", ".join(map(str, entry.paths)) if entry.here else f"on the {entry.origin}"),
    ]
    for name, value in facts:
        if value:
            first, *more = textwrap.wrap(value, max(40, _width() - 16), break_on_hyphens=False) or [""]
            console.write(f"  {name:<13} {first}\n" + "".join(f"{'':16}{line}\n" for line in more))


def _architecture(shape: ModelShape) -> str:
    layers = shape.layers
    if not layers:
        return f"{shape.architecture or 'unknown'}: its layers are not understood"
    windowed = sum(bool(layer.window) for layer in layers)
    recurrent = sum(bool(layer.state_bytes) for layer in layers)
    latent = any(layer.keys and not layer.values for layer in layers)
    parts = [shape.architecture, f"{len(layers)} layers", f"{shape.heads} heads", f"width {shape.embedding:,}"]
    if windowed:
        parts.append(f"{windowed} with a window of {max(layer.window for layer in layers):,} tokens")
    if recurrent:
        parts.append(f"{recurrent} recurrent")
    if latent:
        parts.append("latent attention")
    if shape.experts:
        parts.append(f"{shape.experts_used} of {shape.experts} experts")
    return ", ".join(part for part in parts if part)


def _parameters(shape: ModelShape, active: int) -> str:
    total = words.count(shape.parameters)
    return f"{total}, {words.count(active)} of them active" if active and active < shape.parameters else total


def _head(entry: Entry, plan: MemoryPlan) -> None:
    size = words.download_size(entry.size_bytes, approximate=entry.approximate)
    named = ", ".join(part for part in (entry.quantization, size) if part)
    slots = f" in each of {plan.slots} slots" if plan.slots > 1 else ""
    kv = f", {plan.kv_type} KV cache" if plan.kv_type != "f16" else ""
    console.write(f"{entry.title} ({named}) with {plan.context:,} tokens of context{slots}{kv}\n")
    for line in textwrap.wrap(plan.sentence, _width()):
        console.write(line + "\n")
    for remark in plan.notes:
        console.write(remark + "\n")


def _plan(plan: MemoryPlan) -> None:
    for load in plan.devices:
        terms = [term for term in plan.terms if term.device == load.id]
        if terms:
            console.write("\n")
            _device(load, terms)
    speeds = [
        f"{words.speed(expected)} tok/s {doing}"
        for expected, doing in ((plan.decode_tps, "decoding"), (plan.prefill_tps, "reading the prompt"))
        if expected is not None
    ]
    if speeds:
        console.write(f"\nExpected: {', '.join(speeds)}.\n")


def _device(load: DeviceLoad, terms: Iterable[Term]) -> None:
    name = "memory" if load.id == HOST else load.name
    free = load.free_bytes + load.freed_bytes
    console.write(f"{name}: {words.gib(load.needed_bytes)} of {words.gib(free)} free\n")
    width = _width() - 2
    whole = max(1, load.needed_bytes + load.margin_bytes, free)
    filled = round(width * load.needed_bytes / whole)
    kept = min(width - filled, round(width * load.margin_bytes / whole))
    console.write(f"  {_FULL * filled}{_MARGIN * kept}{_FREE * (width - filled - kept)}\n")
    for term in sorted(terms, key=lambda term: [*TERMS].index(term.kind)):
        console.write(f"  {TERMS[term.kind]:<20} {words.gib(term.size_bytes):>9}  {SOURCES[term.source]}\n")
    console.write(f"  {'left free on purpose':<20} {words.gib(load.margin_bytes):>9}\n")


def _width() -> int:
    return max(60, min(100, shutil.get_terminal_size().columns))
