"""Where a model is to be loaded: its plan, the options that follow, and smaller ones should memory run out after all.

It also compares what was planned with what a load measured, so that the next plan is better.
"""

from collections.abc import Callable, Mapping

import msgspec
import psutil

from localinfer.advice import Advice, refine, tight
from localinfer.errors import DoesNotFit, LocalInferError
from localinfer.machine import choose, look, short, way
from localinfer.models import fit, lessons
from localinfer.models.explain import gib, usable
from localinfer.models.gguf import Header
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.models.shape import ModelShape, from_gguf
from localinfer.types import DraftModel, EngineStatus, LoadOptions, Metrics, Value

_LEAST_CONTEXT = 2048
_SLOW = 0.5  # of the least speed that was to be expected


class Beside(Value, frozen=True):
    """A model that may draft for another one: its files, and what decides its memory. ``asked``: the person named it,
    so it may lie in the machine's own memory too, and what keeps it from being loaded is told."""

    draft: DraftModel
    shape: ModelShape
    asked: bool = True


class Placing(Value, frozen=True):
    """How to load a model, its device in words, and what was free there before. ``fallbacks`` are tried in order when
    memory runs out while loading."""

    options: LoadOptions
    plan: MemoryPlan
    where: str
    free_before_bytes: int | None = None
    fallbacks: tuple[LoadOptions, ...] = ()


class Judgement(Value, frozen=True):
    """Where a model really runs, as in "CUDA · RTX 4060 · 33/33 layers · as expected", and what is wrong with that."""

    text: str
    problem: str = ""


def place(
    headers: tuple[Header, ...],
    options: LoadOptions,
    advice: Advice,
    *,
    force: bool = False,
    freed: Mapping[str, int] | None = None,
    beside: Beside | None = None,
) -> Placing:
    """Where the model goes. ``force`` loads it whatever the plan says; ``freed`` is what the model that it replaces
    gives back, by device. ``beside`` drafts for it where there is room: the model itself lies as it would alone.

    Raises ``DoesNotFit``, ``BackendUnavailable`` and ``BadRequest`` for a device that cannot be had.
    """
    choice = choose(advice.machine, device=options.device or None, require_gpu=options.require_gpu)
    ask, planned = planning(headers, options, advice, choice.device, freed)
    plan = planned(ask)
    if not force:
        _check(plan, options)
    if options.require_gpu and plan.gpu_layers == 0 and plan.verdict != "unknown":
        raise DoesNotFit(f"No layer of {options.name} fits on {choice.device}.", plan.sentence)
    chosen = _options(options, plan)
    notices = [f"{choice.warning} {choice.fix}".strip()] if choice.warning else []
    if plan.context < plan.asked_context:
        notices.append(f"The context is {plan.context:,} tokens: {plan.asked_context:,} do not fit.")
    if beside is not None:
        plan, draft = with_draft(plan, beside, ask, planned, force=force)
        chosen = msgspec.structs.replace(chosen, draft=draft)
        if beside.asked and draft is None:
            notices.append(f"{beside.draft.name} does not draft: {no_room(plan, beside, ask)}.")
        elif beside.asked and beside.shape.parameters > from_gguf(headers).parameters:
            notices.append(f"{beside.draft.name} is larger than {options.name}: its drafts will hardly pay.")
    chosen = msgspec.structs.replace(chosen, notices=tuple(notices))
    device = next(one for one in advice.machine.devices if one.id == plan.device)
    where = "CPU" if plan.device == HOST else f"{way(device)} · {short(device.name)}"
    return Placing(
        options=chosen,
        plan=plan,
        where=where,
        free_before_bytes=None if freed else device.free_bytes,  # measured while another model lay there
        fallbacks=_smaller(chosen, plan),
    )


def planning(
    headers: tuple[Header, ...],
    options: LoadOptions,
    advice: Advice,
    device: str,
    freed: Mapping[str, int] | None = None,
) -> tuple[Ask, Callable[[Ask], MemoryPlan]]:
    """What is asked of a plan for a model that is here, on ``device``, and how it and its like are planned: with the
    library's own figures where they matter."""
    shape = from_gguf(headers)

    def planned(asked: Ask) -> MemoryPlan:
        plan = fit.plan(shape, advice.machine, asked, lessons=advice.lessons)
        if device == HOST and not tight(plan):
            return plan
        try:
            return refine(shape, advice.machine, asked, advice.lessons, (options.model, *options.parts))
        except LocalInferError:
            return plan

    ask = Ask(
        context=options.context, slots=options.slots, kv_type=options.kv_type, device=device, freed=dict(freed or {})
    )
    return ask, planned


def with_draft(
    plan: MemoryPlan, beside: Beside, ask: Ask, planned: Callable[[Ask], MemoryPlan], *, force: bool = False
) -> tuple[MemoryPlan, DraftModel | None]:
    """The plan of a model and its draft, and how the draft is loaded; ``plan`` and None where there is no room.

    ``planned`` plans what it is asked for. The model is never placed otherwise for the sake of a draft. One that nobody
    asked for has to lie on a GPU, with the whole of the model. On a processor, where a pass over eight tokens costs
    four to seven times a pass over one, a server with a draft model a third of the target's size was measured at half
    of its plain speed, although two thirds and more of the drafts were right: memory would be spent for nothing.
    """
    if not beside.asked and plan.verdict not in ("full", "full_short_ctx"):
        return plan, None
    for device in dict.fromkeys((plan.device, HOST) if beside.asked else (plan.device,)):
        draft = msgspec.structs.replace(beside.draft, device=device, gpu_layers=0 if device == HOST else -1)
        both = planned(msgspec.structs.replace(ask, draft=beside.shape, draft_device=device))
        if (force and beside.asked) or plan.verdict == "unknown" or _lies(both) == _lies(plan):
            return both, draft
    return plan, None


def no_room(plan: MemoryPlan, beside: Beside, ask: Ask) -> str:
    """Why a draft does not fit beside the model that lies by ``plan``, in words."""
    needed = fit.draft_bytes(beside.shape, ask, plan.context)
    return f"it takes {gib(needed)}, and beside the model {usable(plan, beside=True)} are left"


def _lies(plan: MemoryPlan) -> tuple[object, ...]:
    """Where a model is, whatever is beside it."""
    devices = tuple(load.id for load in plan.devices)
    return plan.verdict, plan.context, plan.device, plan.gpu_layers, plan.expert_layers, devices


def _check(plan: MemoryPlan, options: LoadOptions) -> None:
    """Refuse what would not fit, and a context that was asked for and cannot be had."""
    if plan.verdict == "too_big":
        raise DoesNotFit(
            f"{options.name}: {plan.sentence}",
            "Choose a smaller model or quantization, or load it all the same (--force).",
        )
    if options.context is not None and plan.context < options.context:
        raise DoesNotFit(
            f"A context of {options.context:,} tokens does not fit for {options.name}: {plan.context:,} do.",
            f"Ask for {min(plan.context, plan.trained_context or plan.context):,} or fewer, or for a q8_0 KV cache.",
        )


def _options(options: LoadOptions, plan: MemoryPlan) -> LoadOptions:
    if plan.verdict == "unknown":
        return options
    gpus = [load.id for load in plan.devices if load.id != HOST]
    return msgspec.structs.replace(
        options,
        context=plan.context,
        device=HOST if not gpus else gpus[0] if len(gpus) == 1 else None,
        gpu_layers=plan.gpu_layers if gpus else 0,
        expert_layers=plan.expert_layers,
    )


def _smaller(options: LoadOptions, plan: MemoryPlan) -> tuple[LoadOptions, ...]:
    """One step down: half the context while that is enough to talk with, else half the layers on the GPU; before that,
    the same without a draft model."""
    if options.draft is not None:
        told = f"Memory ran out while loading; {options.draft.name} does not draft."
        alone = msgspec.structs.replace(options, draft=None, notices=(*options.notices, told))
        return alone, *_smaller(alone, plan)
    context = options.context or plan.context
    if context >= 2 * _LEAST_CONTEXT:
        smaller = msgspec.structs.replace(options, context=context // 2)
        told = f"Memory ran out while loading; the context is {context // 2:,} tokens instead of {context:,}."
    elif options.gpu_layers > 1:
        smaller = msgspec.structs.replace(options, gpu_layers=options.gpu_layers // 2)
        told = f"Memory ran out while loading; {options.gpu_layers // 2} layers are on the GPU."
    else:
        return ()
    return (msgspec.structs.replace(smaller, notices=(*options.notices, told)),)


def gives_back(placing: Placing, status: EngineStatus) -> dict[str, int]:
    """What becomes free when the model is unloaded, bytes by device, beyond what is called free while it is loaded.

    Weights in the machine's own memory are pages of their file, which the system counts as available: they are none of
    it. No more is promised there than the worker holds.
    """
    plan = _held(placing.plan, status)
    freed = {load.id: load.needed_bytes for load in plan.devices}
    mapped = sum(t.size_bytes for t in plan.terms if t.device == HOST and t.kind in ("weights", "draft"))
    freed[HOST] = max(0, min(freed.get(HOST, 0) - mapped, status.rss_bytes or 0))
    return freed


def judge(placing: Placing, status: EngineStatus, metrics: Metrics) -> Judgement:
    """Where it really runs, measured after the load and by the speed of a reply that was long enough to tell."""
    plan, info = placing.plan, status.model
    if info is None or plan.device == HOST or plan.verdict == "unknown":
        return Judgement(text="")
    text = f"{placing.where} · {info.gpu_layers}/{info.layers} layers"
    if info.gpu_layers < plan.gpu_layers:
        wanted = f"{plan.gpu_layers} were to be there. The driver may have failed since: see “localinfer doctor”."
        return Judgement(text=text, problem=f"Only {info.gpu_layers} layers are on the GPU; {wanted}")
    plain_tps = _plain_tps(metrics)
    if plain_tps is None or plan.decode_tps is None or metrics.completion_tokens < lessons.LEAST_TOKENS:
        return Judgement(text=text)
    if plain_tps < _SLOW * plan.decode_tps.low:
        expected = f"{plan.decode_tps.low:.0f} to {plan.decode_tps.high:.0f} were to be expected"
        problem = f"{plain_tps:.1f} tok/s is slow for this device: {expected}. See “localinfer doctor”."
        return Judgement(text=f"{text} · slower than expected", problem=problem)
    return Judgement(text=f"{text} · as expected")


def learn(placing: Placing, status: EngineStatus, metrics: Metrics) -> None:
    """Keep what a load and a reply taught."""
    plan = _held(placing.plan, status)
    if status.model is None or plan.verdict in ("unknown", "too_big"):
        return
    held = _resident_bytes(status.pid) if plan.device == HOST else _taken_bytes(placing)
    decode = _plain_tps(metrics) if metrics.completion_tokens >= lessons.LEAST_TOKENS else None
    fresh = (metrics.prompt_tokens or 0) - (metrics.cached_tokens or 0)
    prefill = metrics.prefill_tps if fresh >= lessons.LEAST_TOKENS else None
    lessons.keep(lessons.compare(plan, status.model.name, held_bytes=held, decode_tps=decode, prefill_tps=prefill))


def _held(plan: MemoryPlan, status: EngineStatus) -> MemoryPlan:
    """The plan without a draft model that is not loaded after all."""
    absent = [term for term in plan.terms if term.kind == "draft"]
    if not absent or status.model is None or status.model.draft:
        return plan
    devices = []
    for load in plan.devices:
        less = sum(term.size_bytes for term in absent if term.device == load.id)
        devices.append(msgspec.structs.replace(load, needed_bytes=load.needed_bytes - less))
    terms = tuple(term for term in plan.terms if term.kind != "draft")
    return msgspec.structs.replace(plan, terms=terms, devices=tuple(devices))


def _plain_tps(metrics: Metrics) -> float | None:
    """The speed that the model itself would have had without drafts."""
    return metrics.tps / metrics.speculation_gain if metrics.tps and metrics.speculation_gain else metrics.tps


def _taken_bytes(placing: Placing) -> int | None:
    """How much less is free on the GPU than before the load, as its driver tells. What other programs did meanwhile
    counts too, which is why lessons are medians."""
    before = placing.free_before_bytes
    now = next((one.free_bytes for one in look().devices if one.id == placing.plan.device), None)
    return before - now if before is not None and now is not None and now < before else None


def _resident_bytes(pid: int | None) -> int | None:
    """What the worker holds in memory, mapped files included."""
    try:
        return int(psutil.Process(pid).memory_info().rss) if pid else None
    except psutil.Error:
        return None
