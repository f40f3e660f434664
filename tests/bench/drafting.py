"""What the choice of drafts costs: microseconds of a step with a context of 32k tokens, median and 99th percentile.

    uv run python -m tests.bench.drafting

No model: what is timed is everything of a step that plain decoding has not.
"""

import random
import time
from statistics import quantiles

from backends.drafting import CPU_GUESS, PassCosts, Speculator, Wish, one_part
from localinfer.types import Speculation
from tests.backends.drafting.texts import TEXTS

CONTEXT, STEPS = 32_768, 2_000
MOST_S = 50e-6


def measure(text: str) -> list[float]:
    """Seconds of each step."""
    chance = random.Random(1)
    prompt: list[int] = []
    while len(prompt) < CONTEXT:
        prompt += [token for part in TEXTS[text](chance, 2_000) for token in part]
    answer = prompt[500 : 500 + STEPS]
    costs = PassCosts(64, CPU_GUESS)
    costs.calibrate({rows: 0.02 * (1 + 0.3 * (rows - 1)) for rows in range(1, 65)})
    speculator = Speculator(costs, one_part, budget=63)
    speculator.begin(0, prompt[:CONTEXT], Speculation())
    taken = []
    for token in answer:
        started = time.perf_counter()
        proposal = speculator.propose([Wish(0, 63)], [0])
        rows = [1] if proposal is None else proposal.rows
        speculator.passed([0], rows, 1, 0.02, 0.0)
        speculator.extend(0, [token], rows[0] - 1)
        speculator.news()
        taken.append(time.perf_counter() - started)
    return taken


def main() -> None:
    for text in TEXTS:
        cut = quantiles(measure(text), n=100)
        verdict = "" if cut[49] <= MOST_S else f"  more than {MOST_S * 1e6:.0f} µs"
        print(f"{text:12} p50 {cut[49] * 1e6:6.1f} µs   p99 {cut[98] * 1e6:6.1f} µs{verdict}")


if __name__ == "__main__":
    main()
