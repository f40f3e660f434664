"""Which model to take on a machine: the choice rule, and why in one sentence.

Quality first: of the chat models that fit whole, with the context asked for, at a speed one can read along with, the
best by the catalogue's rank. Where none does, a smaller KV cache is tried, then a shorter context, then experts in the
machine's own memory, then a quarter of the layers on the CPU, then anything that loads.

Speeds are estimates, and what is free in memory changes by the minute. So that advice does not change with them, what
was recommended before stays until a better model has its place, or it has become clearly too slow.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from localinfer.machine import Device, Machine
from localinfer.models import fit
from localinfer.models.catalog import Mlx, ModelSpec, Quantization, shape
from localinfer.models.explain import download_size
from localinfer.models.layout import NOTHING_LEARNT, Lessons
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.types import Value

FLOOR_TPS = 10.0  # about twice as fast as people read
STEADY = 0.7  # of the floor, for what was recommended before
LARGE = 24_000_000_000  # parameters from which 3 bits per weight lose little

_BITS = re.compile(
    r"(\d+)\s*[-_]?\s*bit|(?:^|[-_])I?Q(\d)|MXFP(\d)|(?:^|[-_])BF?(16)|(?:^|[-_])F(16|32)", re.IGNORECASE
)
_MOSTLY = 0.75


class Pick(Value, frozen=True):
    """One variant of one model, how it would lie in memory, and why it."""

    spec: ModelSpec
    variant: Quantization | Mlx
    plan: MemoryPlan
    sentence: str


def bits(name: str) -> int:
    """Bits per weight that the name of a quantization announces; 4 where it does not say."""
    match = _BITS.search(name)
    return int(next(group for group in match.groups() if group)) if match else 4


def recommend(
    models: Iterable[ModelSpec],
    machine: Machine,
    *,
    device: Device,
    backend: str = "llama.cpp",
    context: int | None = None,
    floor_tps: float = FLOOR_TPS,
    lessons: Lessons = NOTHING_LEARNT,
    freed: Mapping[str, int] | None = None,
    before: tuple[str, str] | None = None,
) -> Pick | None:
    """The best of ``models`` to run on ``device``; None where nothing can be loaded at all. ``freed`` is what the model
    it would replace gives back, by device; ``before`` is what was recommended last: a model and its variant."""
    ranked = sorted((model for model in models if model.chat), key=lambda model: -model.rank)
    for accept, kv_type, floor in _stages(floor_tps, cpu_only=device.id == HOST):
        ask = Ask(context=context, kv_type=kv_type, device=device.id, freed=dict(freed or {}))
        for spec in ranked:
            offered = sorted(variants(spec, backend), key=lambda one: (spec.id, one.name) != before)
            for variant in offered:
                plan = fit.plan(shape(spec, variant), machine, ask, lessons=lessons)
                least = floor * STEADY if (spec.id, variant.name) == before else floor
                if accept(plan) and (plan.decode_tps is None or plan.decode_tps.middle >= least):
                    return Pick(spec=spec, variant=variant, plan=plan, sentence=_why(spec, variant, plan, floor))
    return None


def variants(spec: ModelSpec, backend: str) -> Iterator[Quantization | Mlx]:
    """The variants worth taking, best first: up to 6 bits per weight, since more is better spent on a larger model;
    finer ones only where there are no others, and 3 bits only of large models."""
    offered: list[Quantization | Mlx] = [*spec.mlx] if backend == "mlx" and spec.mlx else [*spec.quantizations]
    least = 3 if spec.parameters >= LARGE else 4
    usual = [one for one in offered if least <= bits(one.name) <= 6]
    finer = [one for one in offered if bits(one.name) > 6]
    yield from sorted(usual, key=lambda one: (-bits(one.name), one.size_bytes))
    yield from sorted(finer, key=lambda one: one.size_bytes)


def _stages(floor_tps: float, *, cpu_only: bool) -> Iterator[tuple[Callable[[MemoryPlan], bool], str, float]]:
    """What is acceptable, with which KV cache and from which speed on; the best stage first.

    On a machine without a GPU the CPU is the whole of it; with one, it is the last resort.
    """

    def whole(plan: MemoryPlan) -> bool:
        return plan.verdict == "full" or (cpu_only and plan.verdict == "cpu" and plan.context == plan.asked_context)

    def short(plan: MemoryPlan) -> bool:
        return plan.verdict == "full_short_ctx" or (cpu_only and plan.verdict == "cpu")

    def anyhow(plan: MemoryPlan) -> bool:
        return plan.verdict not in ("too_big", "unknown")

    yield whole, "f16", floor_tps
    yield whole, "q8_0", floor_tps
    yield short, "f16", floor_tps
    yield (lambda plan: plan.verdict == "moe_offload"), "f16", floor_tps
    yield (lambda plan: plan.verdict == "partial" and plan.gpu_layers > _MOSTLY * plan.layers), "f16", floor_tps
    yield anyhow, "f16", floor_tps
    yield anyhow, "f16", 0.0


def _why(spec: ModelSpec, variant: Quantization | Mlx, plan: MemoryPlan, floor: float) -> str:
    size = download_size(variant.download_bytes, approximate=variant.approximate)
    speed = "at a speed one can read along with" if floor else "at all"
    what = f"{spec.name} ({variant.name}, {size})"
    return f"{what} is the best model of the catalogue that runs here {speed}. {plan.sentence}"
