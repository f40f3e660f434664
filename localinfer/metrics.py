"""From events to figures: the one place where durations and rates of a generation are computed.

All instants are ``time.perf_counter_ns`` (monotonic and shared by the processes of one machine). Rates come from counts
and instants, never from other rates. The definitions are those of the README.
"""

import time
from collections.abc import Sequence

from localinfer.types import Done, Drafting, Event, Metrics, Piece, Prefilled, Queued

now_ns = time.perf_counter_ns


def percentile(sorted_values: Sequence[float], fraction: float) -> float:
    """The value at ``fraction`` (0 to 1) of a sorted, non-empty sequence, by linear interpolation."""
    position = (len(sorted_values) - 1) * fraction
    low = int(position)
    high = min(low + 1, len(sorted_values) - 1)
    return sorted_values[low] + (sorted_values[high] - sorted_values[low]) * (position - low)


def seconds(start_ns: int | None, end_ns: int | None) -> float | None:
    """Time between two instants in seconds, None when either is unknown."""
    return None if start_ns is None or end_ns is None else max(0, end_ns - start_ns) / 1e9


class Stopwatch:
    """Collects the instants and counts of one generation; ``metrics`` may be read at any moment."""

    def __init__(self, submitted_ns: int) -> None:
        self._submitted_ns = submitted_ns
        self._loaded_ns: int | None = None
        self._prompt_tokens: int | None = None
        self._prefill: Prefilled | None = None
        self._first_text_ns: int | None = None
        self._first_token_ns = 0
        self._last_token_ns = 0
        self._tokens = self._passes = 0
        self._gaps_ms: list[float] = []
        self._drafts = self._drafted = self._accepted = 0
        self._positions: list[list[int]] = []  # of each place in a draft: tokens drafted there, and accepted
        self._plain_s = 0.0  # what plain decoding would have taken since the first token
        self._drafting = Drafting(drafter="")
        self._done: Done | None = None

    def loaded(self, at_ns: int) -> None:
        """The model became ready at ``at_ns``, while this generation was waiting for it."""
        self._loaded_ns = max(at_ns, self._submitted_ns)

    def observe(self, event: Event, received_ns: int) -> None:
        """Take in one event, received by the application at ``received_ns``."""
        match event:
            case Queued():
                self._prompt_tokens = event.prompt_tokens
            case Prefilled():
                self._prefill = event
            case Piece():
                self._count(event)
                if event.text and self._first_text_ns is None:
                    self._first_text_ns = received_ns
            case Drafting():
                self._drafting = event
            case Done():
                self._done = event
            case _:
                pass

    def _count(self, event: Piece) -> None:
        if event.drafted:
            self._count_draft(event)
        if not event.tokens:
            return
        if self._tokens:
            gap_s = (event.at_ns - self._last_token_ns) / 1e9
            self._gaps_ms.append(gap_s * 1e3)
            self._plain_s += event.tokens * event.plain_s if event.drafted else gap_s
        else:
            self._first_token_ns = event.at_ns
        self._gaps_ms.extend([0.0] * (event.tokens - 1))
        self._tokens += event.tokens
        self._passes += 1
        self._last_token_ns = event.at_ns

    def _count_draft(self, event: Piece) -> None:
        self._drafts += 1
        self._drafted += event.drafted
        self._accepted += event.accepted
        self._positions.extend([0, 0] for _ in range(event.drafted - len(self._positions)))
        for position in self._positions[: event.drafted]:
            position[0] += 1
        for position in self._positions[: event.accepted]:
            position[1] += 1

    def _gain(self, decode_s: float) -> float | None:
        """Against plain decoding, which makes one token in a pass: no pass with drafts is faster than a plain one, so
        that more than the tokens of a pass cannot have been gained, whatever a neighbour did to the measurement."""
        if not self._drafts or decode_s <= 0:
            return None
        return min(self._plain_s / decode_s, (self._tokens - 1) / (self._passes - 1))

    def metrics(self) -> Metrics:
        """The figures so far."""
        ready_ns = self._loaded_ns or self._submitted_ns
        prefill = self._prefill
        complete = prefill is not None and prefill.done_tokens >= prefill.prompt_tokens
        prefill_s = seconds(prefill.started_ns, prefill.at_ns) if prefill else None
        fresh = prefill.done_tokens - prefill.cached_tokens if prefill else 0
        decode_s = (self._last_token_ns - self._first_token_ns) / 1e9
        gaps = self._gaps_ms
        gaps.sort()  # in place: what was sorted at the last call is not sorted again
        return Metrics(
            ttft_s=seconds(self._submitted_ns, self._first_text_ns),
            queue_s=seconds(ready_ns, prefill.admitted_ns) if prefill else None,
            load_s=seconds(self._submitted_ns, ready_ns),
            cached_prefill_s=seconds(prefill.admitted_ns, prefill.started_ns) if prefill else None,
            prefill_s=prefill_s,
            first_decode_s=seconds(prefill.at_ns, self._first_text_ns) if prefill and complete else None,
            prompt_tokens=self._prompt_tokens,
            cached_tokens=prefill.cached_tokens if prefill else None,
            prefill_tps=fresh / prefill_s if prefill_s and fresh else None,
            completion_tokens=self._tokens,
            tps=(self._tokens - 1) / decode_s if self._tokens > 1 and decode_s > 0 else None,
            itl_p50_ms=percentile(gaps, 0.5) if gaps else None,
            itl_p90_ms=percentile(gaps, 0.9) if gaps else None,
            itl_p99_ms=percentile(gaps, 0.99) if gaps else None,
            drafts=self._drafts,
            drafted=self._drafted,
            accepted=self._accepted,
            acceptance_rate=self._accepted / self._drafted if self._drafted else None,
            mean_accepted_length=1 + self._accepted / self._drafts if self._drafts else None,
            accepted_by_position=tuple(accepted / drafted for drafted, accepted in self._positions),
            speculation_gain=self._gain(decode_s),
            drafter=self._drafting.drafter,
            speculation_off=self._drafting.off,
            finish_reason=self._done.finish_reason if self._done else None,
        )
