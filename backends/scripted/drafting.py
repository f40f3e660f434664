"""What drafts for a script: a simulated draft model, and drafts of a fixed length for deterministic pictures.

Both know what the script will say and are right about each token with a given probability, by its position alone.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from backends.base import DraftingChanged
from backends.drafting import Draft, Experience, Odds, Proposal, Wish
from backends.scripted.device import Device
from localinfer.types import Speculation

NAME = "scripted draft"
# The next tokens that a sequence will say, so many at most.
Upcoming = Callable[[int, int], Sequence[int]]

_GUESS = 0.65  # of the chance that a token is right, before any was seen
_LITTLE = 8  # unread tokens that a draft reads on its way


def guess(id: int, position: int, token: int, acceptance: float) -> int:
    """``token``, which is what comes, or another one."""
    return token if random.Random(f"draft {id} {position}").random() < acceptance else (token + 1) % 256


class _Text:
    """One sequence of the draft model: its tokens read and unread, how many were said, and the draft being judged."""

    def __init__(self, unread: int, odds: Odds) -> None:
        self.unread = unread
        self.said = 0
        self.judged: Sequence[int] = ()
        self.odds = odds


class ScriptedDraft:
    """``backends.drafting.DraftModel``: a drafted token takes ``draft_s`` times the device's curve over sequences, a
    token that is read ``read_s``, at most ``chunk`` of them at a time."""

    name = NAME

    def __init__(
        self, device: Device, upcoming: Upcoming, *, draft_s: float, read_s: float, chunk: int, acceptance: float
    ) -> None:
        self._device = device
        self._upcoming = upcoming
        self._draft_s = draft_s
        self._read_s = read_s
        self._chunk = chunk
        self._acceptance = acceptance
        self._experience = Experience((_GUESS,))
        self._texts: dict[int, _Text] = {}

    def begin(self, id: int, tokens: Sequence[int], prediction: Sequence[int], place: int) -> None:
        self._texts[id] = _Text(len(tokens), Odds(self._experience))

    def extend(self, id: int, tokens: Sequence[int]) -> None:
        text = self._texts[id]
        read = 0
        for token, drafted in zip(tokens, text.judged, strict=False):
            text.odds.learn(0, token == drafted)
            if token != drafted:
                break
            read += 1
        text.judged = ()
        text.said += len(tokens)
        text.unread += len(tokens) - read

    def end(self, id: int) -> None:
        self._texts.pop(id, None)

    def chance(self, id: int) -> float:
        return self._texts[id].odds.chances[0]

    def token_s(self, sequences: int) -> float:
        return self._draft_s * self._device.relative(sequences)

    def behind_s(self, id: int) -> float:
        unread = self._texts[id].unread
        return unread * self._read_s if unread > _LITTLE else 0.0

    def read(self, id: int) -> float:
        text = self._texts[id]
        count = min(text.unread, self._chunk)
        text.unread -= count
        return self._device.spend(count * self._read_s)

    def draft(self, prices: Mapping[int, Sequence[float]]) -> dict[int, Draft]:
        drafts = {}
        for id, wanted in prices.items():
            text = self._texts[id]
            text.unread = 0
            chance = self.chance(id)
            survival = [chance**count for count in range(1, len(wanted) + 1)]
            worth = next((index for index, alive in enumerate(survival) if alive < wanted[index]), len(wanted))
            # Whoever is asked drafts a token at least, and so learns, also where it is not worth its check.
            coming = self._upcoming(id, min(max(worth, 1), len(wanted)))
            text.judged = [guess(id, text.said + index, token, self._acceptance) for index, token in enumerate(coming)]
            drafts[id] = Draft(text.judged[:worth], survival[: min(worth, len(coming))])
        lengths = [len(self._texts[id].judged) for id in drafts]
        for step in range(max(lengths, default=0)):
            self._device.spend(self.token_s(sum(length > step for length in lengths)))
        return {id: draft for id, draft in drafts.items() if draft.tokens}


class FixedDrafts:
    """Has what a scheduler asks of ``backends.drafting.Speculator``; drafts ``length`` tokens whatever it costs."""

    def __init__(self, upcoming: Upcoming, pace_s: float, *, length: int, acceptance: float) -> None:
        self._upcoming = upcoming
        self._pace_s = pace_s
        self._length = length
        self._acceptance = acceptance
        self._said: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._news: list[DraftingChanged] = []

    @property
    def active(self) -> bool:
        return bool(self._said)

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
        if not self._length:
            return
        if speculation.drafter in ("auto", "model") and speculation.most:
            self._said[id] = 0
            self._most[id] = speculation.most
            self._news.append(DraftingChanged(id, NAME))
        else:
            self._news.append(DraftingChanged(id, "", "switched off"))

    def extend(self, id: int, tokens: Sequence[int], drafted: int) -> None:
        if id in self._said:
            self._said[id] += len(tokens)

    def end(self, id: int) -> None:
        self._said.pop(id, None)

    def news(self) -> list[DraftingChanged]:
        news, self._news = self._news, []
        return news

    def propose(self, wishes: Sequence[Wish], places: Sequence[int]) -> Proposal | None:
        drafts = [self._draft(wish) for wish in wishes]
        return Proposal(drafts, [1 + len(draft) for draft in drafts]) if any(drafts) else None

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
        return self._pace_s

    def _draft(self, wish: Wish) -> Sequence[int]:
        said = self._said.get(wish.id)
        if said is None:
            return ()
        coming = self._upcoming(wish.id, min(self._length, self._most[wish.id], wish.room))
        return [guess(wish.id, said + index, token, self._acceptance) for index, token in enumerate(coming)]
