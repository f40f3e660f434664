"""A reply while it is written: what has come of it, how long the model thought, and what of it is on disk.

It knows events and the store; it does not know who shows them. ``observe`` and ``save`` may be called from different
threads.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from localinfer.history.values import Turn, TurnState
from localinfer.types import Done, Event, FinishReason, Metrics, Reasoning, Text

_STATES: dict[FinishReason, TurnState] = {"stop": "whole", "length": "cut", "cancelled": "stopped"}


class Keeps(Protocol):
    """The part of ``History`` a reply needs."""

    def grow(self, turn_id: int, *, content: str, reasoning: str) -> None: ...

    def finish(
        self,
        turn_id: int,
        *,
        content: str,
        reasoning: str,
        state: TurnState,
        metrics: Metrics | None = None,
        thought_s: float | None = None,
        thought_tokens: int = 0,
        note: str = "",
    ) -> object: ...


class Growing:
    """The reply ``turn``, which is in ``history`` already. Both of its texts only grow."""

    def __init__(self, history: Keeps, turn: Turn) -> None:
        self._history = history
        self._turn = turn
        self._answer: list[str] = []
        self._thoughts: list[str] = []
        self._saved = (0, 0)
        self._thinking_since_ns = 0
        self._thought_s: float | None = None
        self._thought_tokens = 0

    def observe(self, event: Event) -> None:
        """Take in one event of the generation."""
        match event:
            case Reasoning():
                self._thinking_since_ns = self._thinking_since_ns or event.at_ns
                self._thought_s = (event.at_ns - self._thinking_since_ns) / 1e9
                self._thought_tokens += event.tokens
                if event.text:
                    self._thoughts.append(event.text)
            case Text(text=text) if text:
                if self._thinking_since_ns and not self._answer:
                    self._thought_s = (event.at_ns - self._thinking_since_ns) / 1e9
                self._answer.append(text)
            case _:
                pass

    @property
    def turn(self) -> Turn:
        """The reply as far as it has come."""
        return msgspec.structs.replace(
            self._turn,
            content="".join(self._answer),
            reasoning="".join(self._thoughts),
            thought_s=self._thought_s,
            thought_tokens=self._thought_tokens,
        )

    def save(self) -> None:
        """Put what has come on disk, if anything has since the last time. Raises ``StorageUnavailable``."""
        come = len(self._answer), len(self._thoughts)
        if come != self._saved:
            now = self.turn
            self._history.grow(now.id, content=now.content, reasoning=now.reasoning)
            self._saved = come

    def end(self, done: Done | None, note: str = "") -> tuple[Turn, Callable[[], object]]:
        """The reply as it stays, and what puts it on disk (and raises ``StorageUnavailable``). Without ``done`` it has
        failed, as ``note`` says."""
        turn = msgspec.structs.replace(
            self.turn,
            state=_STATES[done.finish_reason] if done else "failed",
            metrics=done.metrics if done else None,
            note=note,
        )
        return turn, lambda: self._history.finish(
            turn.id,
            content=turn.content,
            reasoning=turn.reasoning,
            state=turn.state,
            metrics=turn.metrics,
            thought_s=turn.thought_s,
            thought_tokens=turn.thought_tokens,
            note=turn.note,
        )
