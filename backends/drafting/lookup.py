"""Prompt lookup: what followed the last time the text read like this (Saxena 2023; n-grams of the sequence itself).

The longest suffix of the sequence that occurs earlier is followed for as long as the text agrees with it; only after a
disagreement is it searched for anew. Search goes through an index of token pairs: sorted once for the prompt, a
dictionary for what is generated. A lookup therefore costs the length of the match, not that of the context. Whether a
proposal was right is seen in every token that comes, also where nothing was drafted: no pass is spent on finding out.
"""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from backends.drafting.drafts import Draft
from backends.drafting.odds import Experience, Odds

_LONGEST = 32  # tokens of context compared: longer matches tell no more
_CANDIDATES = 8  # earlier places compared, of the prompt and of the reply each
_NEAR = 32  # tokens after the last copied one within which text that is being edited goes on
_COPIED = 4  # agreeing tokens that make a place one that is copied from
_KEPT = 4.0  # times that a token counts as kept before it was seen
_LEAST = 0.02  # survival below which nothing pays
# Buckets are match lengths, first of matches somewhere, then of those where the text was copied from last.
_STEPS = (1, 2, 3, 4, 5, 7, 10, 16)
_LEVELS = [sum(length >= step for step in _STEPS[1:]) for length in range(_LONGEST + 1)]
_FAR_GUESSES = (0.2, 0.3, 0.45, 0.55, 0.62, 0.72, 0.82, 0.9)
_NEAR_GUESSES = (0.6, 0.7, 0.8, 0.86, 0.9, 0.93, 0.95, 0.97)


class PromptLookup:
    """The ``Drafter`` that needs no model."""

    name = "prompt lookup"

    def __init__(self) -> None:
        self._experience = Experience((*_FAR_GUESSES, *_NEAR_GUESSES))
        self._texts: dict[int, _Text] = {}

    def begin(self, id: int, tokens: Sequence[int], prediction: Sequence[int], place: int) -> None:
        self._texts[id] = _Text(tokens, prediction, Odds(self._experience))

    def extend(self, id: int, tokens: Sequence[int]) -> None:
        text = self._texts[id]
        for token in tokens:
            text.append(token)

    def end(self, id: int) -> None:
        self._texts.pop(id, None)

    def draft(self, prices: Mapping[int, Sequence[float]]) -> dict[int, Draft]:
        found = {}
        for id, wanted in prices.items():
            draft = self._texts[id].draft(len(wanted))
            if draft is not None:
                found[id] = draft
        return found


class _Text:
    """One sequence, and the place it is being copied from.

    ``_source`` is the index of the token that comes next if the text repeats itself, -1 where it does not;
    ``_length`` is how many tokens before it agree with the end of the text.
    """

    def __init__(self, tokens: Sequence[int], prediction: Sequence[int], odds: Odds) -> None:
        # No token equals the separator, so no match reaches across it, and no draft does.
        self._tokens: list[int] = [*prediction, -1, *tokens] if prediction else list(tokens)
        self._separator = len(prediction) if prediction else -1
        self._odds = odds
        self._pairs = _Pairs(self._tokens)
        self._recent: dict[tuple[int, int], list[int]] = {}
        self._source = -1
        self._length = 0
        self._base = 0  # of the buckets: near or far
        self._anchor = 0  # the place after the last token that was copied
        self._parted: dict[int, tuple[int, int]] = {}  # of tokens that were not copied: how often they were, and not
        self._find()

    def append(self, token: int) -> None:
        """The text goes on with ``token``."""
        tokens, source = self._tokens, self._source
        count = len(tokens)
        if count > 1:
            self._recent.setdefault((tokens[-2], tokens[-1]), []).append(count)
        tokens.append(token)
        if source >= 0:
            expected = tokens[source]
            right = expected == token
            if self._base or expected in self._parted:
                self._judge(expected, right)
            self._odds.learn(self._base + _LEVELS[self._length], right)
            if right:
                self._source = source + 1
                self._length = min(self._length + 1, _LONGEST)
                if self._length >= _COPIED:
                    self._anchor = source + 1
                return
        self._find()

    def _judge(self, expected: int, right: bool) -> None:
        """What was replaced once is likely to be replaced again."""
        kept, replaced = self._parted.get(expected, (0, 0))
        if replaced or not right:
            self._parted[expected] = (kept + right, replaced + (not right))

    def draft(self, most: int) -> Draft | None:
        """At most ``most`` tokens; None where the text does not repeat itself."""
        source = self._source
        if source < 0 or not most:
            return None
        chances, base, length = self._odds.chances, self._base, self._length
        if source <= self._separator:
            most = min(most, self._separator - source)
        tokens = self._tokens[source : source + most]
        period = len(self._tokens) - source
        while len(tokens) < most:  # the text repeats itself with this period
            tokens.append(tokens[-period])
        alive = 1.0
        survival = []
        parted = self._parted
        for token in tokens:
            chance = chances[base + _LEVELS[length]]
            if token in parted:
                kept, replaced = parted[token]
                chance = min(chance, (kept + _KEPT) / (kept + replaced + _KEPT))
            alive *= chance
            if alive < _LEAST:
                break
            survival.append(alive)
            length = min(length + 1, _LONGEST)
        tokens = tokens[: len(survival)]
        return Draft(tokens, survival) if tokens else None

    def _find(self) -> None:
        """The earlier place that agrees with the end of the text over the longest stretch; where several do, the one
        where the text was copied from last, else the latest."""
        tokens = self._tokens
        count = len(tokens)
        self._source, self._length = -1, 0
        if count < 2:
            return
        last = (tokens[-2], tokens[-1])
        best = 0
        for source in (*self._pairs.after(last, self._anchor), *islice(reversed(self._recent.get(last, ())), 8)):
            length = 2
            limit = min(_LONGEST, source)
            while length < limit and tokens[source - 1 - length] == tokens[count - 1 - length]:
                length += 1
            near = 0 <= source - self._anchor <= _NEAR
            score = length + _COPIED * near
            if score > best or (score == best and source > self._source and not near):
                best = score
                self._source, self._length = source, length
                self._base = len(_STEPS) if near else 0
        if not best and self._anchor:
            self._resume(last[1])

    def _resume(self, token: int) -> None:
        """After words that were put in or replaced, a single token may be where the copy goes on."""
        try:
            place = self._tokens.index(token, self._anchor, min(self._anchor + _NEAR, len(self._tokens) - 1))
        except ValueError:
            return
        self._source, self._length, self._base = place + 1, 1, len(_STEPS)


class _Pairs:
    """Where every pair of neighbouring tokens of a fixed text occurs."""

    def __init__(self, tokens: Sequence[int]) -> None:
        ids = np.asarray(tokens, np.int64)
        keys = (ids[:-2] << 32) | (ids[1:-1] & 0xFFFFFFFF)
        order = np.argsort(keys, kind="stable")
        self._keys: npt.NDArray[np.int64] = keys[order]
        self._after: npt.NDArray[np.int64] = order + 2

    def after(self, pair: tuple[int, int], anchor: int) -> list[int]:
        """Indices of what followed ``pair``: the latest few, and the few around ``anchor``."""
        key = (pair[0] << 32) | pair[1]
        first = int(self._keys.searchsorted(key))
        if first == len(self._keys) or self._keys[first] != key:
            return []
        end = int(self._keys.searchsorted(key + 1))
        if end - first <= _CANDIDATES:
            found: list[int] = self._after[first:end].tolist()
            return found
        middle = first + int(self._after[first:end].searchsorted(anchor))
        around = slice(max(first, middle - 1), min(end, middle + _CANDIDATES // 2))
        return [*self._after[around].tolist(), *self._after[end - _CANDIDATES // 2 : end].tolist()]
