"""One sequence: decode and prefill speed against llama-bench.

    uv run python -m tests.bench.single MODEL [--busy]

Decode is 128 tokens from a depth of 256, prefill is 512 fresh tokens at depth 0; both sides at their default threads.
With ``--busy`` another program keeps one core busy meanwhile, as a browser or a compiler does.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from tests.bench.clients import Job, generate
from tests.bench.common import Row, interleave, parser, ratio_at_least, row, table
from tests.bench.native import llama_bench
from tests.bench.ours import worker
from tests.bench.prompts import token_ids

DEPTH, OUTPUT, PROMPT = 256, 128, 512
CONTEXT = 1024
DECODE, PREFILL = ratio_at_least(0.97), ratio_at_least(0.95)
BUSY_DECODE = ratio_at_least(1.6)


class Speed(msgspec.Struct, frozen=True):
    """Tokens per second of one sequence."""

    decode_tps: float
    prefill_tps: float


def measure(model: Path, pairs: int, *, busy: bool = False) -> list[Row]:
    """Decode and prefill, on an idle machine or beside a busy neighbour."""

    def ours(pair: int) -> Speed:
        with worker(model, slots=1, context=CONTEXT) as side:
            # The first token comes from the prefill: one more than OUTPUT makes OUTPUT passes.
            decode = generate(side, Job(token_ids(DEPTH, f"decode {pair}"), OUTPUT + 1))
            prefill = generate(side, Job(token_ids(PROMPT, f"prefill {pair}"), 1))
        return Speed(decode.decode_tps, prefill.prefill_tps)

    def peer(_pair: int) -> Speed:
        return Speed(llama_bench(model, output=OUTPUT, depth=DEPTH), llama_bench(model, prompt=PROMPT))

    with busy_core() if busy else nullcontext():
        taken = interleave(pairs, ours, peer)
    beside = " beside a busy core" if busy else ""
    decode, prefill = (BUSY_DECODE, None) if busy else (DECODE, PREFILL)
    return [
        row(f"decode at depth {DEPTH}{beside}, tok/s", decode, taken, lambda speed: speed.decode_tps),
        row(f"prefill of {PROMPT}{beside}, tok/s", prefill, taken, lambda speed: speed.prefill_tps),
    ]


@contextmanager
def busy_core() -> Iterator[None]:
    """Another program computes on one core."""
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.wait()


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--busy", action="store_true", help="keep one core busy meanwhile")
    given = arguments.parse_args()
    print(table(measure(given.model, given.pairs, busy=given.busy)))


if __name__ == "__main__":
    main()
