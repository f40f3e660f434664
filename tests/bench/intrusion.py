"""A long prompt arrives while others are reading their answers, against llama-server.

    uv run python -m tests.bench.intrusion MODEL

Three streams run; a prompt of 3,000 tokens arrives. How long do the streams stand still, at worst, until its first
token is there? And how much slower is its prefill than on an unloaded engine?
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from tests.bench.clients import Job, Side, Trace, generate, wait_for
from tests.bench.common import Row, at_least, at_most, compare, parser, row, table
from tests.bench.prompts import token_ids

STREAMS = 3
CONTEXT = 4096
STREAM_PROMPT, LONG_PROMPT = 150, 3_000
SETTLED = 8  # pieces of text after which a stream counts as running
GAP_S, PREFILL_SHARE = at_most(0.4), at_least(0.5)


class Intrusion(msgspec.Struct, frozen=True):
    """``gap_s``: the longest stand of any stream; prefill rates of the long prompt beside the streams and alone."""

    gap_s: float
    ttft_s: float
    prefill_tps: float
    unloaded_tps: float

    @property
    def prefill_share(self) -> float:
        """Prefill rate beside the streams ÷ unloaded."""
        return self.prefill_tps / self.unloaded_tps


def intrude(side: Side, pair: int) -> Intrusion:
    """Let the long prompt arrive among the streams, then send another one when they have ended."""
    traces = [Trace() for _ in range(STREAMS)]
    with ThreadPoolExecutor(STREAMS) as pool:
        # As long as the context allows: they are stopped when the long prompt has been answered.
        jobs = [Job(token_ids(STREAM_PROMPT, f"{pair} {s}"), CONTEXT - STREAM_PROMPT - 1) for s in range(STREAMS)]
        streams = [pool.submit(side.generate, job, trace) for job, trace in zip(jobs, traces, strict=True)]
        try:
            wait_for(lambda: all(len(trace.arrivals_ns) >= SETTLED for trace in traces))
            intruder = generate(side, Job(token_ids(LONG_PROMPT, f"{pair} long"), 2))
        finally:
            for trace in traces:
                trace.stop = True
        for stream in streams:
            stream.result()
    alone = generate(side, Job(token_ids(LONG_PROMPT, f"{pair} alone"), 2))
    span = intruder.submitted_ns, intruder.arrivals_ns[0]
    return Intrusion(
        gap_s=max(trace.longest_gap_s(*span) for trace in traces),
        ttft_s=intruder.ttft_s,
        prefill_tps=intruder.prefill_tps,
        unloaded_tps=alone.prefill_tps,
    )


def measure(model: Path, pairs: int) -> list[Row]:
    """The longest gap, and the share of its prefill rate that the long prompt keeps."""
    taken = compare(model, intrude, slots=STREAMS + 1, context=CONTEXT, pairs=pairs)
    head = f"{LONG_PROMPT:,} tokens arrive among {STREAMS} streams"
    return [
        row(f"{head}: longest gap in a stream, s", GAP_S, taken, lambda intrusion: intrusion.gap_s),
        row(f"{head}: prefill rate ÷ unloaded", PREFILL_SHARE, taken, lambda intrusion: intrusion.prefill_share),
        row(f"{head}: prefill, tok/s", None, taken, lambda intrusion: intrusion.prefill_tps),
        row(f"{head}: its TTFT, s", None, taken, lambda intrusion: intrusion.ttft_s),
    ]


def main() -> None:
    given = parser(__doc__).parse_args()
    print(table(measure(given.model, given.pairs)))


if __name__ == "__main__":
    main()
