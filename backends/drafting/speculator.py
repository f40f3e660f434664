"""Speculation for the sequences of one loaded model: who drafts, for whom, how much, and what it gained.

Prompt lookup costs nothing and is asked first; where it has nothing that pays, a draft model may be asked, which costs
time. ``policy`` chooses the lengths from what ``costs`` measured. A ledger compares the seconds that drafts took with
those of plain decoding: where the estimates were wrong and time was lost, nothing is drafted until the loss is no more
than ``_LOSS`` of the time since. It knows neither the model nor how tokens are sampled.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from backends.base import DraftingChanged
from backends.drafting.costs import Part, Parts, PassCosts
from backends.drafting.drafts import NOTHING, Draft, Drafter
from backends.drafting.ledger import Ledger
from backends.drafting.lookup import PromptLookup
from backends.drafting.policy import best_length, best_lengths, prices
from localinfer.types import Speculation

# The parts that a pass over so many rows of the sequences at these places is computed in.
Layout: TypeAlias = Callable[[Sequence[int], Sequence[int]], Parts]

_MODEL_MOST = 16  # tokens that a draft model drafts for a pass
_PLAIN_EVERY = 64  # passes with drafts after which one is plain: what it takes has to be known
_TRIALS = 8.0  # tokens that a draft model that does not pay may draft one after the other, to be tried again
_TRIAL_EVERY = 32  # tokens for which it may draft one such token
_NEVER = 2.0  # no draft is as sure
_QUIET = 32  # tokens without a draft after which the reason is told
_LIKELY = 256  # tokens that a reply is expected to go on for, where nothing limits it


class DraftModel(Drafter, Protocol):
    """A drafter whose tokens cost time, and which has to read a sequence before it can draft for it."""

    def chance(self, id: int) -> float:
        """The share of its tokens that are right, as far as this sequence tells."""

    def token_s(self, sequences: int) -> float:
        """Seconds of one more drafted token for each of so many sequences."""

    def behind_s(self, id: int) -> float:
        """Seconds that reading what it has not read of the sequence takes, beyond what a draft reads by itself."""

    def read(self, id: int) -> float:
        """Read one piece of it; the seconds that took."""


class Wish(msgspec.Struct, frozen=True):
    """A sequence of the next pass, and how many drafted tokens it has room for."""

    id: int
    room: int


class Proposal(msgspec.Struct, frozen=True):
    """What the next pass checks of each sequence, in order. ``rows`` are one more than its draft, or more where filling
    up to equal numbers makes the pass cheaper."""

    drafts: Sequence[Sequence[int]]
    rows: Sequence[int]


class Withheld(msgspec.Struct, frozen=True):
    """The first token of a draft that was not risked, and the seconds that it would have saved."""

    id: int
    token: int
    saved_s: float


class _Sequence:
    """One sequence: who may draft for it, and how long nobody did."""

    def __init__(self, id: int, place: int, speculation: Speculation, left: int | None) -> None:
        self.id = id
        self.place = place
        self.most = speculation.most
        self.lookup = speculation.drafter in ("auto", "lookup")
        self.model = speculation.drafter in ("auto", "model")
        self.left = left
        self.said = 0
        self.quiet = 0
        self.why = ""
        self.off = ""
        self.trials = _TRIALS / 2
        self.trial_at = 0  # tokens said
        self.trusted = 0.0  # the draft model's chance at the last trial

    def tries(self, chance: float) -> bool:
        """Whether a draft model that does not pay, right with ``chance``, drafts a token to see whether that changed:
        the next ones while it does, else one now and then."""
        if self.trials < 1 or (self.said < self.trial_at and chance <= self.trusted):
            return False
        self.trials -= 1
        self.trusted = chance
        self.trial_at = self.said + _TRIAL_EVERY
        return True


class Speculator:
    """Drafts for every sequence of one model.

    ``layout`` says how a pass is computed; ``equalises``: filling sequences up to the same number of rows may make it
    cheaper. ``budget`` bounds the drafted tokens of a pass. ``rollback_s`` is what it takes, beyond the pass, that a
    draft can be taken back: 0 where a cache drops its tail.
    """

    def __init__(
        self,
        costs: PassCosts,
        layout: Layout,
        *,
        budget: int,
        equalises: bool = False,
        model: DraftModel | None = None,
        rollback_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.costs = costs
        self._layout = layout
        self._equalises = equalises
        self._budget = budget
        self._lookup = PromptLookup()
        self._model = model
        self._rollback_s = rollback_s
        self._sequences: dict[int, _Sequence] = {}
        self._news: list[DraftingChanged] = []
        self._ledger = Ledger()
        self._reading_s = 0.0  # of the draft model since the last pass
        self._withheld: Withheld | None = None
        self._drafting = 0  # passes since the last plain one

    @property
    def active(self) -> bool:
        """Whether anything may be drafted."""
        return bool(self._sequences)

    def begin(
        self,
        id: int,
        tokens: Sequence[int],
        speculation: Speculation,
        *,
        place: int = 0,
        prediction: Sequence[int] = (),
        left: int | None = None,
    ) -> None:
        """A sequence has read its prompt ``tokens`` and decodes from here on, ``left`` tokens at most."""
        if not self._sequences:
            self._ledger.clear()
        sequence = _Sequence(id, place, speculation, left)
        sequence.model = sequence.model and self._model is not None
        if speculation.drafter == "off" or not speculation.most:
            self._news.append(DraftingChanged(id, "", "switched off"))
            return
        if not (sequence.lookup or sequence.model):
            self._news.append(DraftingChanged(id, "", "no draft model is loaded"))
            return
        self._sequences[id] = sequence
        for drafter in self._drafters(sequence):
            drafter.begin(id, tokens, prediction, place)
        self._tell(sequence)

    def extend(self, id: int, tokens: Sequence[int], drafted: int) -> None:
        """The sequence goes on with ``tokens``, of which ``drafted`` were checked."""
        sequence = self._sequences.get(id)
        if sequence is None:
            return
        for drafter in self._drafters(sequence):
            drafter.extend(id, tokens)
        withheld, self._withheld = self._withheld, None
        if withheld is not None and withheld.id == id:
            self._ledger.withheld(withheld.saved_s, self.costs.plain_s or 0.0, right=tokens[0] == withheld.token)
        sequence.said += len(tokens)
        sequence.trials = min(sequence.trials + len(tokens) / _TRIAL_EVERY, _TRIALS)
        if drafted:
            sequence.quiet = 0
            if sequence.off:
                sequence.off = ""
                self._tell(sequence)
        else:
            sequence.quiet += len(tokens)
            if sequence.quiet >= _QUIET and sequence.off != sequence.why:
                sequence.quiet = 0
                sequence.off = sequence.why
                self._tell(sequence)

    def end(self, id: int) -> None:
        """The sequence is over. Unknown ids are ignored."""
        sequence = self._sequences.pop(id, None)
        if sequence is not None:
            for drafter in self._drafters(sequence):
                drafter.end(id)

    def news(self) -> list[DraftingChanged]:
        """What changed since the last call."""
        news, self._news = self._news, []
        return news

    def propose(self, wishes: Sequence[Wish], places: Sequence[int]) -> Proposal | None:
        """What to check in the next pass of these sequences at these places; None where a plain pass is best."""
        known = self._sequences
        drafts = [NOTHING] * len(wishes)
        asked = {}
        for index, wish in enumerate(wishes):
            sequence = known.get(wish.id)
            if sequence is None or not (room := min(wish.room, sequence.most, self._budget)):
                continue
            sequence.why = "nothing repeats at present"
            if sequence.lookup:
                found = self._lookup.draft({wish.id: range(room)})
                if found:
                    drafts[index] = found[wish.id]
            if sequence.model:
                asked[index] = room
        if not asked and all(draft is NOTHING for draft in drafts):
            return None
        if self.costs.plain_s is None or self._drafting >= _PLAIN_EVERY:
            return None
        return self._choose(wishes, places, drafts, asked)

    def passed(
        self,
        places: Sequence[int],
        rows: Sequence[int],
        tokens: int,
        elapsed_s: float,
        drafting_s: float,
        *,
        beside_prefill: bool = False,
    ) -> float:
        """A pass took ``elapsed_s``, after ``drafting_s`` of drafting, and yielded ``tokens``; the seconds that a plain
        one would have taken. What a pass that carried prompt tokens too took says nothing of its other rows."""
        parts = self._layout(places, rows)
        count = len(places)
        if beside_prefill:
            return max(0.0, elapsed_s - self.costs.seconds(parts) + self._plain_s(places))
        self.costs.observe(parts, elapsed_s)
        plain_s = self._plain_s(places)
        # What the draft model reads is an investment of its own: whether it pays was decided before.
        drafting_s, self._reading_s = max(0.0, drafting_s - self._reading_s), 0.0
        spent_s = elapsed_s + drafting_s
        if sum(rows) > count:
            self._drafting += 1
            self._ledger.book(plain_s * tokens / count - spent_s, spent_s, plain_s)
        else:
            self._drafting = 0
            self._ledger.wait(drafting_s, spent_s, plain_s)
        return plain_s

    # Choosing

    def _choose(
        self, wishes: Sequence[Wish], places: Sequence[int], drafts: list[Draft], asked: dict[int, int]
    ) -> Proposal | None:
        plain_s = self._plain_s(places)
        # If all of it is wrong, the pass may not lose more than there is to lose.
        limit_s = self._ledger.limit_s(plain_s)
        lengths = self._lengths(drafts, places, limit_s)
        wanting = {index: room for index, room in asked.items() if not lengths[index]}
        if wanting and self._ask_model(wishes, places, drafts, wanting, limit_s):
            lengths = self._lengths(drafts, places, limit_s)
        if not any(lengths):
            self._withhold(wishes, places, drafts)
            for wish, draft in zip(wishes, drafts, strict=True):
                if draft is not NOTHING and (sequence := self._sequences.get(wish.id)) and not sequence.model:
                    sequence.why = self._too_dear(draft)
            return None
        rows = [1 + length for length in lengths]
        if self._equalises and len(rows) > 1:
            rows = min((rows, [max(rows)] * len(rows)), key=lambda each: self.costs.seconds(self._layout(places, each)))
        return Proposal([draft.tokens[:length] for draft, length in zip(drafts, lengths, strict=True)], rows)

    def _withhold(self, wishes: Sequence[Wish], places: Sequence[int], drafts: Sequence[Draft]) -> None:
        """Remember a draft that pays by all estimates, and is not risked."""
        if len(drafts) > 1 or not drafts[0].tokens:
            return
        curve = self.costs.curve()
        choice = best_length(drafts[0].survival, curve, math.inf)
        if choice.lengths[0] and wishes[0].id in self._sequences:
            self._withheld = Withheld(wishes[0].id, drafts[0].tokens[0], curve[1] - 1 / choice.rate)

    def _lengths(self, drafts: Sequence[Draft], places: Sequence[int], limit_s: float) -> Sequence[int]:
        rollback_s = self._rollback_s()
        if rollback_s:  # and what was right is fed once more
            curve = self.costs.curve()
            rollback_s += curve[3] - curve[1]
        if len(drafts) == 1:
            return best_length(drafts[0].survival, self.costs.curve(), limit_s, fixed_s=rollback_s).lengths

        def seconds(lengths: Sequence[int]) -> float:
            rows = [1 + length for length in lengths]
            least = self.costs.seconds(self._layout(places, rows))
            if self._equalises and any(lengths):
                least = min(least, self.costs.seconds(self._layout(places, [max(rows)] * len(rows))))
            return least + rollback_s * sum(length > 0 for length in lengths)

        return best_lengths(drafts, seconds, limit_s, rows=self._budget).lengths

    def _ask_model(
        self,
        wishes: Sequence[Wish],
        places: Sequence[int],
        drafts: list[Draft],
        wanting: dict[int, int],
        limit_s: float,
    ) -> bool:
        """Have the draft model draft where that is likely to pay; whether it did."""
        model = self._model
        assert model is not None
        token_s = model.token_s(len(wanting)) / len(wanting)
        curve = self._shared_curve(places)
        others = len(places) - 1
        asked: dict[int, Sequence[float]] = {}
        for index, room in wanting.items():
            sequence = self._sequences[wishes[index].id]
            chance = model.chance(sequence.id)
            most = min(room, _MODEL_MOST)
            survival = [chance**count for count in range(1, most + 1)]
            planned = best_length(survival, curve, limit_s, extra_s=token_s, others=others)
            length = planned.lengths[0]
            behind_s = model.behind_s(sequence.id)
            if not length:
                sequence.why = self._model_too_dear(chance, token_s, curve)
                if curve[1] + behind_s + token_s < limit_s and sequence.tries(chance):
                    asked[sequence.id] = [_NEVER]
            elif behind_s:
                expected = sum(survival[:length])
                saved_s = (1 + others + expected) * (curve[1] / (1 + others) - 1 / planned.rate)
                left = _LIKELY if sequence.left is None else min(sequence.left - sequence.said, _LIKELY)
                if behind_s > 0.5 * saved_s * left / (1 + expected):
                    sequence.why = "reading for a draft would take longer than it saves"
                else:
                    self._reading_s += model.read(sequence.id)
            else:
                asked[sequence.id] = prices(curve, planned.rate, token_s, most)
        if not asked:
            return False
        found = model.draft(asked)
        for index in wanting:
            drafts[index] = found.get(wishes[index].id, drafts[index])
        return bool(found)

    def _shared_curve(self, places: Sequence[int]) -> Sequence[float]:
        """Seconds of the pass by the rows of one of its sequences, the others having one each."""
        others = len(places) - 1
        if not others:
            return self.costs.curve()
        curve = self.costs.curve(len(places))
        return [0.0, *curve[1 + others :]]

    # What things cost and what was won

    def _plain_s(self, places: Sequence[int]) -> float:
        return self.costs.seconds(self._layout(places, [1] * len(places)))

    def _drafters(self, sequence: _Sequence) -> list[Drafter]:
        drafters: list[Drafter] = [self._lookup] if sequence.lookup else []
        if sequence.model and self._model is not None:
            drafters.append(self._model)
        return drafters

    # What is told

    def _tell(self, sequence: _Sequence) -> None:
        names = " + ".join(drafter.name for drafter in self._drafters(sequence))
        self._news.append(DraftingChanged(sequence.id, names, sequence.off))

    def _too_dear(self, draft: Draft) -> str:
        curve = self.costs.curve()
        if draft.survival and draft.survival[0] > 0.5:
            return f"a check costs {_passes(curve[2] / curve[1] - 1)}"
        return "what repeats goes on otherwise"

    def _model_too_dear(self, chance: float, token_s: float, curve: Sequence[float]) -> str:
        if chance < 0.5:
            return f"only {chance:.0%} of its tokens are right"
        cost = (token_s + curve[2] - curve[1]) / curve[1]
        return f"a draft costs {_passes(cost)}"


def _passes(cost: float) -> str:
    return f"{cost:.2f} of a pass" if cost < 2 else "much more than a pass"


def one_part(places: Sequence[int], rows: Sequence[int]) -> Parts:
    """The layout of a backend that computes all rows of a pass together."""
    return (Part(len(rows), sum(rows)),)
