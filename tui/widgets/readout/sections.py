"""The sections of the column that tell of a reply: time to first text, speed, context, speculation, roofline.

Each is rows of exactly the width it is given. How many there are does not depend on what is going on, so that nothing
moves while a reply comes.
"""

from localinfer.types import Metrics
from tui.widgets.readout import bars, figures
from tui.widgets.readout.figures import DASH
from tui.widgets.readout.rows import Row, Span, both, cell_len, named, pair, row, words, wrap
from tui.widgets.readout.values import Reading

# Glyph and style of each part of a bar; the legend shows the same.
_LOAD = Span("░", "load")
_QUEUE = Span("┄", "queue")
_CACHED = Span("▒", "cached")
_PREFILL = Span("█", "prefill")
_FIRST = Span("▓", "first")
_SYSTEM = Span("░", "system")
_HISTORY = Span("▓", "history")
_REPLY = Span("█", "reply")
_FREE = Span("·", "empty")
_NEARLY_FULL = 0.9
_PLACES = 11  # of a draft, that there is room for
_MOST_REASON = 3  # lines


def time_to_first_text(reading: Reading, width: int) -> list[Row]:
    """TTFT, and where it went or goes."""
    metrics, parts = reading.metrics, reading.parts
    cached = metrics.cached_tokens if metrics else None
    rate = metrics.prefill_tps if metrics else None
    growing = metrics is None or metrics.ttft_s is None
    load = f" {figures.percent(reading.load_progress)}" if growing and reading.load_progress is not None else ""
    elapsed = figures.seconds(reading.elapsed_s)
    if reading.elapsed_s is None:
        elapsed = figures.getting(reading.phase, reading.load_progress) or elapsed
    queue = f" · {reading.ahead:,} ahead" if reading.ahead else ""
    bar = [
        (parts.load_s or 0.0, *_LOAD),
        (parts.queue_s or 0.0, *_QUEUE),
        (parts.cached_s or 0.0, *_CACHED),
        (parts.prefill_s or 0.0, *_PREFILL),
        (parts.first_s or 0.0, *_FIRST),
    ]
    return [
        row("ttft", width, [Span("TTFT · first text", "title")], [Span(elapsed, "big")]),
        bars.stacked("", width, bar),
        _part("load", width, _LOAD, f"load{load}", parts.load_s),
        _part("queue", width, _QUEUE, f"queue{queue}", parts.queue_s),
        _part("cached", width, _CACHED, f"cached {figures.count(cached)}", parts.cached_s),
        _part("prefill", width, _PREFILL, f"prefill {_fresh(reading)}", parts.prefill_s),
        row("prefill_tps", width, [Span("  prefill speed", "label")], [Span(figures.rate(rate))]),
        _part("first", width, _FIRST, "first token", parts.first_s),
    ]  # fmt: skip


def speed(reading: Reading, width: int) -> list[Row]:
    """Tokens per second now and in the last minute, and the gaps between tokens."""
    metrics = reading.metrics
    mean = metrics.tps if metrics else None
    now = reading.live_tps if reading.phase == "decode" else mean
    p50, p99 = (metrics.itl_p50_ms, metrics.itl_p99_ms) if metrics else (None, None)
    out = metrics.completion_tokens if metrics else None
    line = bars.spark(reading.history, width, reading.history_second)
    return [
        row("tps", width, [Span("Speed", "title")], [Span(figures.rate(now), "big")]),
        row("history", width, [Span(line, "spark")]),
        row("mean", width, [Span("mean", "label")], [Span(figures.rate(mean))]),
        row(
            "itl",
            width,
            [Span("ITL", "label")],
            [Span(f"p50 {figures.milliseconds(p50):>4} · p99 {figures.milliseconds(p99):>4} ms")],
        ),
        row(
            "tokens",
            width,
            [Span("tokens", "label")],
            [Span(f"{figures.count(reading.prompt_tokens)} in · {figures.count(out):>5} out")],
        ),
    ]


def context(reading: Reading, width: int) -> list[Row]:
    """Where the tokens of the context go."""
    budget = reading.budget
    if budget is None:
        total, cached, full = f"{DASH} tokens", None, False
        system = history = reply = free = DASH
        bar = Row("", (Span(bars.EMPTY * width, "empty"),))
    else:
        total = f"{budget.used:,} of {budget.context:,} tokens"
        full = budget.used >= _NEARLY_FULL * budget.context
        counts = (budget.system, budget.history, budget.reply, budget.free)
        system, history, reply, free = map(figures.count, counts)
        cached = budget.cached
        shown = zip(counts, (_SYSTEM, _HISTORY, _REPLY, _FREE), strict=True)
        bar = bars.stacked("", width, [(count, *part) for count, part in shown])
    return [
        row("context", width, [Span("Context", "title")], [Span(total, "warning" if full else "strong")]),
        bar,
        pair(width, named("system", _SYSTEM, "system", system), named("earlier", _HISTORY, "history", history)),
        pair(width, named("reply", _REPLY, "reply", reply), named("room", _FREE, "free", free)),
        row("reused", width, [Span("cached of the prompt", "label")], [Span(figures.count(cached))])._replace(
            spare=True
        ),
    ]


def speculation(reading: Reading, width: int) -> list[Row]:
    """What drafts and what it gains, or why nothing does; no rows where nothing is known of it."""
    metrics = reading.metrics if reading.metrics is not None and reading.metrics.drafted else Metrics()
    title = Span("Speculation", "title")
    off = words(reading.off)
    if not reading.drafter and not metrics.drafted:
        reason = [row("drafter", width, [Span(line, "label")]) for line in wrap(off, width)[:_MOST_REASON]]
        return [row("speculation", width, [title], [Span("off", "strong")]), *reason] if reason else []
    said = off or words(reading.drafter) or DASH
    drafted = metrics.drafted or None
    gain = Span(f"gain {figures.factor(metrics.speculation_gain)}", "strong")
    if off:
        gain = Span("paused" if metrics.speculation_gain is None else f"paused · {gain.text}", "strong")
    return [
        both(width, ("speculation", [title]), ("gain", [gain])),
        row("drafter", width, [Span(said, "label")])._replace(more=off if cell_len(off) > width else ""),
        row(
            "acceptance",
            width,
            [Span("accepted", "label")],
            [Span(f"{figures.percent(metrics.acceptance_rate)} of {figures.count(drafted):>5} drafted")],
        ),
        both(
            width,
            ("passes", [Span("per pass ", "label"), Span(figures.tenths(metrics.mean_accepted_length))]),
            ("places", [Span("places ", "label"), *bars.shares(metrics.accepted_by_position, _PLACES)]),
        )._replace(spare=True),
    ]


def roofline(reading: Reading, width: int) -> list[Row]:
    """How near decoding comes to what the memory allows."""
    reached = reading.roofline
    text = f"{DASH} %"
    if reached is not None:
        about = "≈" if reached.estimate else ""
        text = f"{figures.percent(reached.share)} of {about}{figures.bandwidth(reached.bandwidth)}"
    return [
        row("roofline", width, [Span("Roofline", "title")], [Span(text, "strong")]),
        Row("", bars.level(reached.share if reached else None, width)),
    ]


def _part(figure: str, width: int, glyph: Span, name: str, took_s: float | None) -> Row:
    return row(figure, width, [glyph, Span(f" {name}", "label")], [Span(figures.seconds(took_s))])


def _fresh(reading: Reading) -> str:
    """Prompt tokens computed of those to be computed: "120/310", "310"."""
    metrics = reading.metrics
    if metrics is None or metrics.prompt_tokens is None or metrics.cached_tokens is None:
        return DASH
    total = metrics.prompt_tokens - metrics.cached_tokens
    whole = f"{total:,}"
    if reading.prefilled is None and metrics.completion_tokens:  # a reply of the past
        return whole
    if reading.prefilled is None:
        return f"{DASH}/{whole}"
    done = reading.prefilled - metrics.cached_tokens
    return whole if done >= total else f"{max(0, done):>{len(whole)},}/{whole}"
