"""How often drafted tokens turn out right, learnt from those that were seen before.

What is known of a token beforehand is its bucket, a small number that a drafter makes of a match's length or of a
probability. A sequence begins with what all sequences before it taught and soon trusts its own text more.
"""

from collections.abc import Sequence

_PRIOR = 8.0  # observations that a drafter's own guess counts for
_SHARED = 4.0  # observations that what other sequences taught counts for
_SHARED_KEEP = 0.995  # of what was seen, at each observation: the last few hundred count
_OWN_KEEP = 0.94  # the last sixteen or so count: text changes


class Experience:
    """What all sequences taught. ``guesses`` are the chances to begin with, one per bucket."""

    def __init__(self, guesses: Sequence[float]) -> None:
        self._right = [guess * _PRIOR for guess in guesses]
        self._seen = [_PRIOR] * len(guesses)

    def __len__(self) -> int:
        return len(self._seen)

    def chance(self, bucket: int) -> float:
        """Share of the tokens in ``bucket`` that were right."""
        return self._right[bucket] / self._seen[bucket]

    def learn(self, bucket: int, right: bool) -> None:
        """A token of this bucket was right or wrong."""
        self._right[bucket] = self._right[bucket] * _SHARED_KEEP + right
        self._seen[bucket] = self._seen[bucket] * _SHARED_KEEP + 1


class Odds:
    """What one sequence taught, on top of ``shared``. ``chances`` has the chance of each bucket, kept up to date."""

    def __init__(self, shared: Experience) -> None:
        self._shared = shared
        self._right = [0.0] * len(shared)
        self._seen = [0.0] * len(shared)
        self.chances = [shared.chance(bucket) for bucket in range(len(shared))]

    def learn(self, bucket: int, right: bool) -> None:
        """A token of this bucket was right or wrong."""
        self._right[bucket] = self._right[bucket] * _OWN_KEEP + right
        self._seen[bucket] = self._seen[bucket] * _OWN_KEEP + 1
        self._shared.learn(bucket, right)
        expected = _SHARED * self._shared.chance(bucket)
        self.chances[bucket] = (expected + self._right[bucket]) / (_SHARED + self._seen[bucket])
