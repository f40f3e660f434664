"""How models, sizes, speeds and verdicts read in a terminal, and tables of them."""

from collections.abc import Sequence

from localinfer.cli import console
from localinfer.models.explain import DASH, count, download_size, gib, speed, tokens
from localinfer.models.plan import HOST, MemoryPlan

GAP = "  "

__all__ = ["DASH", "count", "download_size", "gib", "speed", "table", "tokens", "verdict"]


def verdict(plan: MemoryPlan | None) -> str:
    """Where and how it runs, in three words."""
    if plan is None:
        return "cannot run here"
    match plan.verdict:
        case "full":
            return "on the GPU"
        case "full_short_ctx":
            return "on the GPU, shorter"
        case "moe_offload":
            return "GPU + experts in RAM"
        case "partial":
            return f"GPU {plan.gpu_layers - 1}/{plan.layers} layers"
        case "cpu":
            return "on the CPU" if plan.device == HOST and plan.context >= plan.asked_context else "on the CPU, shorter"
        case "too_big":
            return "too big"
        case "unknown":
            return "unknown, will try"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), width: int = 80) -> None:
    """Write rows in columns under a head, those in ``right`` flush right; the first column gives way where the width
    is short."""
    cells = [list(map(console.safe, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    widths[0] = max(12, widths[0] - max(0, over))
    for number, row in enumerate((head, *cells)):
        line = GAP.join(
            _fitted(cell, size, right=index in right)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        console.write(line, console.DIM if number == 0 else "")
        console.write("\n")


def _fitted(text: str, width: int, *, right: bool) -> str:
    short = text if len(text) <= width else text[: width - 1] + "…"
    return short.rjust(width) if right else short.ljust(width)
