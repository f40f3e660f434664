"""What drafters make, and what every drafter is."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class Draft(msgspec.Struct, frozen=True):
    """Tokens that may come next. ``survival[i]`` is the estimated probability that token ``i`` and all before it are
    what the model says: it never grows."""

    tokens: Sequence[int] = ()
    survival: Sequence[float] = ()


NOTHING = Draft()


class Drafter(Protocol):
    """Proposes how sequences go on. Sequences are named by their job's id.

    It hears of every token of its sequences, drafted by it or not, and so learns how often it is right.
    """

    name: str

    def begin(self, id: int, tokens: Sequence[int], prediction: Sequence[int], place: int) -> None:
        """A sequence begins with the prompt ``tokens``; ``prediction`` is what it may repeat. ``place`` is its row in
        the model's cache: what was there before may share a prefix with it."""

    def extend(self, id: int, tokens: Sequence[int]) -> None:
        """The sequence goes on with ``tokens``."""

    def end(self, id: int) -> None:
        """The sequence is over. Unknown ids are ignored."""

    def draft(self, prices: Mapping[int, Sequence[float]]) -> Mapping[int, Draft]:
        """Drafts for several sequences at once; a sequence may be missing.

        ``prices[id][i]`` is the survival from which token ``i`` is worth its cost: a drafter whose tokens cost time
        stops where survival falls below it; none drafts more than ``len(prices[id])`` tokens.
        """
