"""Eight clients that share a system text of 1,000 tokens, against llama-server.

    uv run python -m tests.bench.shared MODEL

An agent that fans out, or a team behind one system prompt. However the clients arrive, the shared text should be
prefilled once: the fresh tokens of all clients together are then the shared text and everybody's own tail.
"""

from pathlib import Path

from tests.bench.clients import Job, Load, Side, generate, together
from tests.bench.common import Row, at_most, compare, parser, ratio_at_least, ratio_at_most, row, table
from tests.bench.ours import worker
from tests.bench.prompts import token_ids

CLIENTS = 8
CONTEXT = 2048
SHARED, TAIL, OUTPUT = 1_000, 24, 64
LATER_S = (0.3, 1.0)
TOTAL, TTFT_P90 = ratio_at_least(2.4), ratio_at_most(0.2)
# The shared text once and every tail, with 2 % for positions at which a cache has to stop.
FRESH = at_most(round(1.02 * (SHARED + CLIENTS * TAIL)))


def measure(model: Path, pairs: int) -> list[Row]:
    """Everybody at once on both sides, then other patterns of arrival on ours."""

    def load(side: Side, pair: int) -> Load:
        return Load.of(together(side, jobs(str(pair))))

    taken = compare(model, load, slots=CLIENTS, context=CONTEXT, pairs=pairs)
    head = f"{CLIENTS} clients sharing {SHARED:,} tokens"
    return [
        row(f"{head}: total, tok/s", TOTAL, taken, lambda load: load.total_tps),
        row(f"{head}: TTFT p50, s", None, taken, lambda load: load.ttft_p50_s),
        row(f"{head}: TTFT p90, s", TTFT_P90, taken, lambda load: load.ttft_p90_s),
        row(f"{head}, all at once: fresh prompt tokens", FRESH, taken, lambda load: load.fresh_tokens),
        *(Row(f"{head}, {pattern}: fresh prompt tokens", FRESH, (fresh,)) for pattern, fresh in arrivals(model)),
    ]


def arrivals(model: Path) -> list[tuple[str, float]]:
    """How one client came first and the others followed, and the fresh tokens of all."""
    found: list[tuple[str, float]] = []
    for later_s in LATER_S:
        with worker(model, slots=CLIENTS, context=CONTEXT) as side:
            traces = together(side, jobs("later"), [0.0] + [later_s] * (CLIENTS - 1))
        found.append((f"one {later_s:g} s before the others", Load.of(traces).fresh_tokens))
    with worker(model, slots=CLIENTS, context=CONTEXT) as side:
        first, *others = jobs("after")
        traces = [generate(side, first), *together(side, others)]
    return [*found, ("the others after the first has finished", Load.of(traces).fresh_tokens)]


def jobs(seed: str) -> list[Job]:
    """Everybody's job: the same beginning, each with an end of its own."""
    shared = token_ids(SHARED, seed)
    return [Job(shared + token_ids(TAIL, f"{seed} {client}"), OUTPUT) for client in range(CLIENTS)]


def main() -> None:
    given = parser(__doc__).parse_args()
    print(table(measure(given.model, given.pairs)))


if __name__ == "__main__":
    main()
