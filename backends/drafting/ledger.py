"""What speculation won and lost in seconds against plain decoding, and what it may still lose.

Estimates are wrong at times. Whatever they say, a pass may not lose more than what was won lately and a small
allowance; after a loss nothing is drafted until the time spent since has made up for it, or until the drafts that were
withheld have come true often enough to trust the estimates again.
"""

_LOSS = 0.005  # of decode time that speculation may lose
_ALLOWANCE = 2.0  # plain passes that it may lose besides
_SAVED = 8.0  # plain passes won earlier that may be lost again
_SAVED_SHARE = 0.15  # of all that was won, where that is more
_TRUST = 3.0  # plain passes that withheld drafts can earn


class Ledger:
    """The account of the sequences that run together."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Nothing was won or lost yet."""
        self._won_s = 0.0
        self._balance_s = 0.0  # what is left of it, and may be lost
        self._trust_s = 0.0

    def limit_s(self, plain_s: float) -> float:
        """What the next pass may take if all that it checks turns out wrong; a plain one takes ``plain_s``."""
        left_s = self._balance_s + (self._trust_s if self._balance_s < 0 else 0.0)
        return plain_s * (1 + _ALLOWANCE) + min(left_s, max(self._balance_s, 0.0))

    def book(self, won_s: float, spent_s: float, plain_s: float) -> None:
        """A pass that took ``spent_s`` won so much, or lost it; a plain one would have taken ``plain_s``."""
        self._won_s += won_s
        self._trust_s = 0.0
        self._earn(won_s, spent_s, plain_s)

    def wait(self, lost_s: float, spent_s: float, plain_s: float) -> None:
        """A plain pass, before which ``lost_s`` were spent on drafts that were not checked."""
        self._earn(-lost_s, spent_s, plain_s)

    def withheld(self, saved_s: float, plain_s: float, *, right: bool) -> None:
        """A token of a draft that was not to be risked, and would have saved ``saved_s``, came true or did not."""
        self._trust_s = min(self._trust_s + saved_s, _TRUST * plain_s) if right else 0.0

    def _earn(self, won_s: float, spent_s: float, plain_s: float) -> None:
        most_s = max(_SAVED * plain_s, _SAVED_SHARE * self._won_s)
        self._balance_s = min(self._balance_s + won_s + _LOSS * spent_s, most_s)
