"""The arithmetic of samples: spreads, medians, and whether two sets of samples differ. Nothing is measured here."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

from localinfer.bench.values import Spread
from localinfer.metrics import percentile

_EXACT = 400  # pairs of samples up to which every arrangement is counted


def spread(samples: Iterable[float | None], pooled: Iterable[float] | None = None) -> Spread | None:
    """The spread of what was measured of ``samples``; its percentiles are of ``pooled`` where that is given. None
    where nothing was."""
    kept = tuple(value for value in samples if value is not None)
    values = sorted(kept if pooled is None else pooled)
    if not kept or not values:
        return None
    p50, p90, p99 = (percentile(values, fraction) for fraction in (0.5, 0.9, 0.99))
    return Spread(p50=p50, p90=p90, p99=p99, samples=kept)


def median(values: Sequence[float]) -> float:
    """The median of a non-empty sequence."""
    return percentile(sorted(values), 0.5)


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p of the Mann-Whitney U test: how likely so unequal an order is if both come from one distribution.

    Exact, by counting arrangements, for few samples without ties; else the normal approximation with correction for
    ties and continuity (Mann and Whitney 1947; Lehmann, Nonparametrics, 1975). 1.0 where a side is empty.
    """
    m, n = len(first), len(second)
    if not m or not n:
        return 1.0
    u = sum((a > b) + 0.5 * (a == b) for a in first for b in second)
    ties = [len(list(group)) for _, group in groupby(sorted((*first, *second)))]
    if m * n <= _EXACT and max(ties) == 1:
        counts = _arrangements(m, n)
        tail = sum(counts[: round(min(u, m * n - u)) + 1])
        return min(1.0, 2 * tail / math.comb(m + n, m))
    total = m + n
    variance = m * n / 12 * ((total + 1) - sum(t**3 - t for t in ties) / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    distance = max(0.0, abs(u - m * n / 2) - 0.5)
    return math.erfc(distance / math.sqrt(2 * variance))


def least_p(m: int, n: int) -> float:
    """The smallest p that so many samples can give."""
    return min(1.0, 2 / math.comb(m + n, m)) if m and n else 1.0


def _arrangements(m: int, n: int) -> list[int]:
    """In how many orders of ``m`` and ``n`` samples each value of U, from 0, arises: the coefficients of the Gaussian
    binomial."""
    size = m * n + 1
    counts = [1] + [0] * (size - 1)
    for i in range(1, m + 1):
        for at in range(size - 1, n + i - 1, -1):  # × (1 − q^(n+i))
            counts[at] -= counts[at - n - i]
        for at in range(i, size):  # ÷ (1 − q^i)
            counts[at] += counts[at - i]
    return counts
