"""The figures of one generation, as one line for people and as one object for programs."""

from localinfer.types import EngineStatus, Metrics

JSON_KEYS = (
    "ttft_s",
    "queue_s",
    "load_s",
    "prefill_s",
    "prompt_tokens",
    "cached_tokens",
    "prefill_tps",
    "completion_tokens",
    "tps",
    "itl_p50_ms",
    "itl_p90_ms",
    "itl_p99_ms",
    "drafts",
    "drafted",
    "accepted",
    "acceptance_rate",
    "mean_accepted_length",
    "accepted_by_position",
    "speculation_gain",
    "drafter",
    "speculation_off",
    "finish_reason",
)

DASH = "–"


def device(status: EngineStatus) -> str:
    """Where the model runs, as measured: "CPU ×2", "GPU 33/33 layers"."""
    if status.model is None:
        return DASH
    placement = status.model.placement
    return f"{placement} ×{status.threads}" if placement == "CPU" and status.threads else placement


def line(metrics: Metrics, status: EngineStatus, where: str = "", *, asked: bool = False) -> str:
    """One line: ``TTFT 0.21 s (load 0.1 · prefill 0.1, 96 cached) · 118 tok/s · 64 tokens · llama.cpp CPU ×2``.

    ``asked``: the person chose what drafts, and is told why nothing does.
    """
    parts = [
        f"{name} {value:.1f}"
        for name, value in (("queue", metrics.queue_s), ("load", metrics.load_s))
        if value and value >= 0.05
    ]
    if metrics.prefill_s is not None:
        cached = f", {metrics.cached_tokens} cached" if metrics.cached_tokens else ""
        parts.append(f"prefill {metrics.prefill_s:.1f}{cached}")
    ttft = f"TTFT {metrics.ttft_s:.2f} s" if metrics.ttft_s is not None else f"TTFT {DASH}"
    if parts:
        ttft += f" ({' · '.join(parts)})"
    speed = (
        f"{metrics.tps:.0f} tok/s"
        if metrics.tps is not None and metrics.tps >= 10
        else (f"{metrics.tps:.1f} tok/s" if metrics.tps is not None else f"{DASH} tok/s")
    )
    fields = [ttft, speed, f"{metrics.completion_tokens} tokens"]
    fields += speculation(metrics, status, asked=asked)
    if metrics.finish_reason in ("length", "cancelled"):
        fields.append({"length": "cut off at the limit", "cancelled": "stopped"}[metrics.finish_reason])
    backend = status.model.backend if status.model else ""
    fields.append(f"{backend} {where or device(status)}".strip())
    return " · ".join(fields)


def speculation(metrics: Metrics, status: EngineStatus, *, asked: bool = False) -> list[str]:
    """What drafting did: "drafts 91 % accepted", "1.62× plain"; why nothing drafts, where that was ``asked`` for."""
    off = metrics.speculation_off or (status.model.no_speculation if status.model else "")
    said = [f"no drafts: {off}"] if asked and off else []
    if metrics.acceptance_rate is None:
        return said
    gain = [f"{metrics.speculation_gain:.2f}× plain"] if metrics.speculation_gain is not None else []
    return [f"drafts {100 * metrics.acceptance_rate:.0f} % accepted", *gain, *said]


def json_object(metrics: Metrics, status: EngineStatus) -> dict[str, object]:
    """Every figure by its key; what was not measured is null."""
    model = status.model
    head: dict[str, object] = {
        "model": model.name if model else None,
        "backend": model.backend if model else None,
        "device": device(status) if model else None,
    }
    figures: dict[str, object] = {key: getattr(metrics, key) for key in JSON_KEYS}
    off = metrics.speculation_off or (model.no_speculation if model else "")
    return head | figures | {"drafter": metrics.drafter or None, "speculation_off": off or None}
