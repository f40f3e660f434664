"""Several clients at a time with nothing in common, against llama-server.

    uv run python -m tests.bench.concurrent MODEL

Each client sends a prompt of about 150 tokens that nobody has seen and reads 64 tokens; all arrive at once, and there
is a slot for each. TTFT is what the client saw.
"""

from pathlib import Path

from tests.bench.clients import Job, Load, Side, together
from tests.bench.common import Row, compare, parser, ratio_at_least, ratio_at_most, row, table
from tests.bench.prompts import token_ids

CLIENTS = (4, 8)
CONTEXT = 2048
PROMPT, OUTPUT = 150, 64
TOTAL, TTFT = ratio_at_least(0.98), {4: None, 8: ratio_at_most(0.65)}


def measure(model: Path, pairs: int) -> list[Row]:
    """Total speed and TTFT of 4 and of 8 clients."""
    return [row for clients in CLIENTS for row in _measure(model, pairs, clients)]


def _measure(model: Path, pairs: int, clients: int) -> list[Row]:
    def load(side: Side, pair: int) -> Load:
        jobs = [Job(token_ids(PROMPT + client, f"{pair} {client}"), OUTPUT) for client in range(clients)]
        return Load.of(together(side, jobs))

    taken = compare(model, load, slots=clients, context=CONTEXT, pairs=pairs)
    return [
        row(f"{clients} clients: total, tok/s", TOTAL, taken, lambda load: load.total_tps),
        row(f"{clients} clients: TTFT p50, s", TTFT[clients], taken, lambda load: load.ttft_p50_s),
        row(f"{clients} clients: TTFT p90, s", None, taken, lambda load: load.ttft_p90_s),
    ]


def main() -> None:
    given = parser(__doc__).parse_args()
    print(table(measure(given.model, given.pairs)))


if __name__ == "__main__":
    main()
