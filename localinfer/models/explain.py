"""Sizes and memory plans in words, for a person."""

from collections.abc import Callable

from localinfer.models.plan import HOST, MemoryPlan, Range, Source, TermKind

GIB = 2**30
DASH = "–"

TERMS: dict[TermKind, str] = {
    "weights": "weights",
    "repacked": "weights, repacked",
    "kv": "KV cache",
    "state": "recurrent state",
    "compute": "compute buffers",
    "projector": "projector",
    "draft": "draft model",
    "speech": "speech model",
    "overhead": "the program itself",
}
SOURCES: dict[Source, str] = {"oracle": "said by llama.cpp", "formula": "estimated", "measured": "measured here"}


def gib(size_bytes: float) -> str:
    """A size as people read it on the label of their memory."""
    if abs(size_bytes) >= GIB:
        return f"{size_bytes / GIB:.1f} GiB"
    return f"{size_bytes / 2**20:.0f} MiB" if abs(size_bytes) >= 2**20 else f"{size_bytes / 2**10:.0f} KiB"


def download_size(size_bytes: int, *, approximate: bool = False) -> str:
    """A size as a download has it: "98 MB", "~2.7 GB"."""
    size = f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 999.5e6 else f"{size_bytes / 1e6:.0f} MB"
    return f"~{size}" if approximate else size


def speed(expected: Range | None) -> str:
    """Tokens per second: "35–85", "0.3–0.8"; a dash where nothing is known."""
    if expected is None:
        return DASH
    low, high = (f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" for value in (expected.low, expected.high))
    return low if low == high else f"{low}–{high}"


def tokens(number: int) -> str:
    """A context in seven characters: "8,192", "262,144", "1.0M"."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:.1f}M"


def count(number: int) -> str:
    """Parameters: "135M", "8.2B"."""
    return f"{number / 1e9:.1f}B" if number >= 999.5e6 else f"{number / 1e6:.0f}M"


def sentence(plan: MemoryPlan, missing: Callable[[int], int], smaller_kv: bool) -> str:
    """What the plan means. ``missing`` gives the bytes a longer context lacks; ``smaller_kv``: a q8_0 cache helps."""
    device = next((load for load in plan.devices if load.id == plan.device), plan.devices[-1])
    spare = min(load.spare_bytes for load in plan.devices)
    hint = " A q8_0 KV cache would make room." if smaller_kv else ""
    where = "in memory, on the CPU" if plan.device == HOST else f"on {device.name}"
    match plan.verdict:
        case "full":
            return f"Fits {where} with {gib(spare)} to spare{_longer(plan, missing)}.{hint}"
        case "full_short_ctx":
            return f"Fits {where} with {_shorter(plan, missing)}.{hint}"
        case "moe_offload":
            experts = f"the experts of {plan.expert_layers} of {plan.layers} layers"
            return f"Fits {where} if {experts} stay in the machine's own memory, which is slower.{hint}"
        case "partial":
            on_gpu = plan.gpu_layers - 1
            return f"{on_gpu} of {plan.layers} layers fit {where}; the CPU computes the others and sets the pace.{hint}"
        case "cpu" if _short(plan):
            return f"Fits in memory and runs on the CPU with {_shorter(plan, missing)}.{hint}"
        case "cpu":
            return f"Fits in memory and runs on the CPU, with {gib(spare)} to spare{_longer(plan, missing)}.{hint}"
        case "too_big":
            return f"Does not fit: it needs {gib(plan.total_bytes)}, and {usable(plan)} can be used.{hint}"
        case "unknown":
            return "Cannot be estimated: its architecture is not known here. Loading it will show."


def _short(plan: MemoryPlan) -> bool:
    return plan.context < plan.asked_context


def _shorter(plan: MemoryPlan, missing: Callable[[int], int]) -> str:
    """The context there is room for, and what the one that was asked for lacks."""
    lacks = gib(missing(plan.asked_context))
    return f"{plan.context:,} tokens of context; {plan.asked_context:,} would need {lacks} more"


def usable(plan: MemoryPlan, *, beside: bool = False) -> str:
    """What each device has for a model; ``beside``: for another one beside that of the plan."""
    sizes = [(load, max(0, load.spare_bytes + (0 if beside else load.needed_bytes))) for load in plan.devices]
    return " and ".join(f"{gib(size)} {'of memory' if load.id == HOST else f'on {load.name}'}" for load, size in sizes)


def _longer(plan: MemoryPlan, missing: Callable[[int], int]) -> str:
    """How far the context can grow, and what the next doubling beyond that lacks."""
    if not plan.max_context or _short(plan) or plan.context >= plan.trained_context:
        return ""
    if plan.max_context >= plan.trained_context:
        return f"; all its {plan.trained_context:,} tokens of context fit too"
    following = plan.context
    while following <= plan.max_context:
        following *= 2
    following = min(following, plan.trained_context)
    return f"; {following:,} tokens of context would need {gib(missing(following))} more"
