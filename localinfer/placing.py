"""Where a model is to be loaded: its plan, the options that follow, and smaller ones should memory run out after all.

It also compares what was planned with what a load measured, so that the next plan is better.
"""

from collections.abc import Mapping

import msgspec
import psutil

from localinfer.advice import Advice, refine, tight
from localinfer.errors import DoesNotFit, LocalInferError
from localinfer.machine import choose, look, short, way
from localinfer.models import fit, lessons
from localinfer.models.gguf import Header
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.models.shape import from_gguf
from localinfer.types import EngineStatus, LoadOptions, Metrics, Value

_LEAST_CONTEXT = 2048
_SLOW = 0.5  # of the least speed that was to be expected


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
) -> Placing:
    """Where the model goes. ``force`` loads it whatever the plan says; ``freed`` is what the model that it replaces
    gives back, by device.

    Raises ``DoesNotFit``, ``BackendUnavailable`` and ``BadRequest`` for a device that cannot be had.
    """
    machine = advice.machine
    choice = choose(machine, device=options.device or None, require_gpu=options.require_gpu)
    shape = from_gguf(headers)
    ask = Ask(
        context=options.context,
        slots=options.slots,
        kv_type=options.kv_type,
        device=choice.device,
        freed=dict(freed or {}),
    )
    plan = fit.plan(shape, machine, ask, lessons=advice.lessons)
    if choice.device != HOST or tight(plan):
        plan = _refined(plan, shape_of=headers, options=options, advice=advice, ask=ask)
    if not force:
        _check(plan, options)
    if options.require_gpu and plan.gpu_layers == 0 and plan.verdict != "unknown":
        raise DoesNotFit(f"No layer of {options.name} fits on {choice.device}.", plan.sentence)
    chosen = _options(options, plan)
    notices = [f"{choice.warning} {choice.fix}".strip()] if choice.warning else []
    if plan.context < plan.asked_context:
        notices.append(f"The context is {plan.context:,} tokens: {plan.asked_context:,} do not fit.")
    chosen = msgspec.structs.replace(chosen, notices=tuple(notices))
    device = next(one for one in machine.devices if one.id == plan.device)
    where = "CPU" if plan.device == HOST else f"{way(device)} · {short(device.name)}"
    return Placing(
        options=chosen,
        plan=plan,
        where=where,
        free_before_bytes=None if freed else device.free_bytes,  # measured while another model lay there
        fallbacks=_smaller(chosen, plan),
    )


def _refined(
    plan: MemoryPlan, *, shape_of: tuple[Header, ...], options: LoadOptions, advice: Advice, ask: Ask
) -> MemoryPlan:
    """The plan with the library's own figures, as far as it gives any."""
    try:
        paths = (options.model, *options.parts)
        return refine(from_gguf(shape_of), advice.machine, ask, advice.lessons, paths)
    except LocalInferError:
        return plan


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
    """One step down: half the context while that is enough to talk with, else half the layers on the GPU."""
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
    plan = placing.plan
    freed = {load.id: load.needed_bytes for load in plan.devices}
    mapped = sum(term.size_bytes for term in plan.terms if term.device == HOST and term.kind == "weights")
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
    if metrics.tps is None or plan.decode_tps is None or metrics.completion_tokens < lessons.LEAST_TOKENS:
        return Judgement(text=text)
    if metrics.tps < _SLOW * plan.decode_tps.low:
        expected = f"{plan.decode_tps.low:.0f} to {plan.decode_tps.high:.0f} were to be expected"
        problem = f"{metrics.tps:.1f} tok/s is slow for this device: {expected}. See “localinfer doctor”."
        return Judgement(text=f"{text} · slower than expected", problem=problem)
    return Judgement(text=f"{text} · as expected")


def learn(placing: Placing, status: EngineStatus, metrics: Metrics) -> None:
    """Keep what a load and a reply taught."""
    plan = placing.plan
    if status.model is None or plan.verdict in ("unknown", "too_big"):
        return
    held = _resident_bytes(status.pid) if plan.device == HOST else _taken_bytes(placing)
    decode = metrics.tps if metrics.completion_tokens >= lessons.LEAST_TOKENS else None
    fresh = (metrics.prompt_tokens or 0) - (metrics.cached_tokens or 0)
    prefill = metrics.prefill_tps if fresh >= lessons.LEAST_TOKENS else None
    lessons.keep(lessons.compare(plan, status.model.name, held_bytes=held, decode_tps=decode, prefill_tps=prefill))


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
