"""Figures from events, without a process."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.metrics import Stopwatch, now_ns, percentile
from localinfer.types import Done, Prefilled, Queued, Text

MS = 1_000_000


def prefilled(done: int, at_ms: int, *, prompt: int = 100, cached: int = 40) -> Prefilled:
    return Prefilled(
        prompt_tokens=prompt,
        cached_tokens=cached,
        done_tokens=done,
        admitted_ns=10 * MS,
        started_ns=15 * MS,
        at_ns=at_ms * MS,
    )


def test_every_part_of_ttft() -> None:
    watch = Stopwatch(0)
    watch.loaded(4 * MS)
    watch.observe(Queued(prompt_tokens=100, ahead=0, at_ns=5 * MS), 5 * MS)
    watch.observe(prefilled(100, 45), 45 * MS)
    watch.observe(Text(text="", tokens=1, at_ns=45 * MS), 46 * MS)
    watch.observe(Text(text="a", tokens=1, at_ns=55 * MS), 56 * MS)
    metrics = watch.metrics()
    assert metrics.load_s == pytest.approx(0.004)
    assert metrics.queue_s == pytest.approx(0.006)
    assert metrics.cached_prefill_s == pytest.approx(0.005)
    assert metrics.prefill_s == pytest.approx(0.030)
    assert metrics.prefill_tps == pytest.approx(60 / 0.030)
    assert metrics.first_decode_s == pytest.approx(0.011)
    assert metrics.ttft_s == pytest.approx(0.056)


def test_tps_counts_tokens_not_chunks() -> None:
    watch = Stopwatch(0)
    for index, tokens in enumerate((1, 4, 1, 2)):
        watch.observe(Text(text="x", tokens=tokens, at_ns=(100 + 10 * index) * MS), 0)
    metrics = watch.metrics()
    assert metrics.completion_tokens == 8
    assert metrics.tps == pytest.approx(7 / 0.030)
    assert metrics.itl_p50_ms == 0
    assert metrics.itl_p99_ms == pytest.approx(10)


def drafted_reply(plain_ms: float) -> Stopwatch:
    """Five plain tokens of 10 ms each, then 30 ms for three of four drafted ones and their next."""
    watch = Stopwatch(0)
    for index in range(5):
        watch.observe(Text(text="a", tokens=1, at_ns=index * 10 * MS), 0)
    watch.observe(Text(text="b", tokens=4, at_ns=70 * MS, drafted=4, accepted=3, plain_s=plain_ms / 1e3), 0)
    return watch


def test_the_gain_is_that_of_the_whole_reply() -> None:
    metrics = drafted_reply(10).metrics()
    assert metrics.speculation_gain == pytest.approx((40 + 4 * 10) / 70)
    assert (metrics.drafts, metrics.drafted, metrics.accepted) == (1, 4, 3)
    assert metrics.mean_accepted_length == 4
    assert metrics.accepted_by_position == (1, 1, 1, 0)


def test_no_more_is_gained_than_passes_were_saved() -> None:
    """However dear a disturbed measurement makes plain passes: 8 tokens came in 5 passes."""
    assert drafted_reply(500).metrics().speculation_gain == pytest.approx(8 / 5)


def test_what_was_not_measured_is_none() -> None:
    metrics = Stopwatch(0).metrics()
    for field in ("ttft_s", "queue_s", "prefill_s", "prefill_tps", "tps", "itl_p50_ms", "acceptance_rate"):
        assert getattr(metrics, field) is None
    assert Stopwatch(0).metrics().finish_reason is None


def test_live_prefill_has_a_rate_but_no_first_decode() -> None:
    watch = Stopwatch(0)
    watch.observe(prefilled(70, 25), 25 * MS)
    metrics = watch.metrics()
    assert metrics.prefill_tps == pytest.approx(30 / 0.010)
    assert metrics.first_decode_s is None
    assert metrics.ttft_s is None


def test_the_reason_it_finished() -> None:
    watch = Stopwatch(0)
    watch.observe(Done(finish_reason="length", at_ns=0), 0)
    assert watch.metrics().finish_reason == "length"


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 100)), min_size=2, max_size=60), st.integers(0, 60))
def test_reading_along_does_not_change_the_figures(steps: list[tuple[int, int]], every: int) -> None:
    read, unread = Stopwatch(0), Stopwatch(0)
    at_ms = 0
    for number, (tokens, gap_ms) in enumerate(steps):
        at_ms += gap_ms
        for watch in (read, unread):
            watch.observe(Text(text="x", tokens=tokens, at_ns=at_ms * MS), at_ms * MS)
        if every and number % every == 0:
            read.metrics()
    assert read.metrics() == unread.metrics()


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_lies_among_the_values_and_grows_with_the_fraction(values: list[float], fraction: float) -> None:
    ordered = sorted(values)
    value = percentile(ordered, fraction)
    assert ordered[0] <= value <= ordered[-1] or value == pytest.approx(ordered[0])
    assert percentile(ordered, 0) == ordered[0]
    assert percentile(ordered, 1) == ordered[-1]


def test_two_processes_agree_on_the_clock() -> None:
    code = "import time, sys; sys.stdout.write(str(time.perf_counter_ns()))"
    before = now_ns()
    other = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
    assert before < other < now_ns()
