"""The figures of a reply in words: one line under it, and all of them."""

from collections.abc import Iterator

from localinfer.types import Metrics
from tui.widgets.readout import figures as shown


def figures(metrics: Metrics | None) -> str:
    """The line under a reply; "" where nothing was measured."""
    return " · ".join(_line(metrics)) if metrics is not None else ""


def _line(metrics: Metrics) -> Iterator[str]:
    if metrics.ttft_s is not None:
        yield f"TTFT {shown.seconds(metrics.ttft_s)}"
    if metrics.tps is not None:
        yield shown.rate(metrics.tps)
    if metrics.completion_tokens:
        yield f"{metrics.completion_tokens:,} token{'' if metrics.completion_tokens == 1 else 's'}"
    if metrics.cached_tokens:
        yield f"{metrics.cached_tokens:,} of {metrics.prompt_tokens or 0:,} prompt tokens cached"
    if metrics.acceptance_rate is not None:
        yield f"drafts {shown.percent(metrics.acceptance_rate)} accepted"


def rows(metrics: Metrics) -> list[tuple[str, str]]:
    """Every figure by name."""
    accepted = f"{metrics.accepted:,} of {metrics.drafted:,} drafts accepted"
    speculation = [("speculation", f"{accepted} ({shown.percent(metrics.acceptance_rate)})")] if metrics.drafted else []
    return [
        ("TTFT", shown.seconds(metrics.ttft_s)),
        ("  load", shown.seconds(metrics.load_s)),
        ("  queue", shown.seconds(metrics.queue_s)),
        ("  cached prefill", shown.seconds(metrics.cached_prefill_s)),
        ("  prefill", f"{shown.seconds(metrics.prefill_s)} · {shown.rate(metrics.prefill_tps)}"),
        ("  first decode", shown.seconds(metrics.first_decode_s)),
        (
            "prompt",
            f"{shown.count(metrics.prompt_tokens)} tokens, {shown.count(metrics.cached_tokens)} cached",
        ),
        ("reply", f"{metrics.completion_tokens:,} tokens"),
        ("speed", shown.rate(metrics.tps)),
        ("ITL p50", f"{shown.milliseconds(metrics.itl_p50_ms)} ms"),
        ("ITL p90", f"{shown.milliseconds(metrics.itl_p90_ms)} ms"),
        ("ITL p99", f"{shown.milliseconds(metrics.itl_p99_ms)} ms"),
        *speculation,
    ]
