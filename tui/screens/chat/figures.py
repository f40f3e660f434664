"""The figures of a reply in words: one line under it, and all of them."""

from collections.abc import Iterator

from localinfer.types import Metrics
from tui.widgets.readout import figures as shown

_PLACES = 12  # of a draft, in one line


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
    if metrics.speculation_gain is not None:
        yield f"gain {shown.factor(metrics.speculation_gain)}"


def rows(metrics: Metrics) -> list[tuple[str, str]]:
    """Every figure by name."""
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
        *_speculation(metrics),
    ]


def _speculation(metrics: Metrics) -> Iterator[tuple[str, str]]:
    """What drafted and what it gained; nothing where nothing is known of it."""
    if not (metrics.drafter or metrics.speculation_off or metrics.drafted):
        return
    off = f"off: {metrics.speculation_off}" if metrics.speculation_off else ""
    yield "speculation", " · ".join(filter(None, (metrics.drafter, off))) or shown.DASH
    if metrics.drafted:
        rate = shown.percent(metrics.acceptance_rate)
        yield "  accepted", f"{metrics.accepted:,} of {metrics.drafted:,} drafted tokens · {rate}"
        yield "  per pass", f"{shown.tenths(metrics.mean_accepted_length)} tokens"
        places = " ".join(shown.percent(share).removesuffix(" %") for share in metrics.accepted_by_position[:_PLACES])
        more = " …" if len(metrics.accepted_by_position) > _PLACES else ""
        yield "  places", f"{places}{more} %"
        yield "  gain", f"{shown.factor(metrics.speculation_gain)} plain decoding"
