"""How much prefill one step may carry, learnt from the steps before.

While streams run, a step should last no longer than ``LOADED_S``, so that their cadence holds; without streams a step
should end within ``UNLOADED_S``, so that new requests and cancels are taken soon. It knows only counts and seconds.
"""

LOADED_S = 0.22
UNLOADED_S = 1.0
_SMOOTHING = 0.3
_GRAIN = 32
_FIRST_CHUNK = 64  # before anything is known


class Pace:
    """Estimates of what one prompt token and one decode pass cost here, now."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._token_s: float | None = None
        self._decode_s = 0.0

    def observe(self, prefill_tokens: int, decode_rows: int, elapsed_s: float) -> None:
        """A step fed ``prefill_tokens`` prompt tokens and one token of ``decode_rows`` streams in ``elapsed_s``."""
        if decode_rows and not prefill_tokens:
            self._decode_s += _SMOOTHING * (elapsed_s - self._decode_s)
        elif prefill_tokens >= _GRAIN // 2:
            cost = max(0.0, elapsed_s - (self._decode_s if decode_rows else 0.0)) / prefill_tokens
            self._token_s = cost if self._token_s is None else self._token_s + _SMOOTHING * (cost - self._token_s)

    def chunk(self, *, streaming: bool) -> int:
        """Prompt tokens the next step may feed."""
        budget = LOADED_S - self._decode_s if streaming else UNLOADED_S
        if self._token_s is None:
            return min(_FIRST_CHUNK if streaming else self._capacity, self._capacity)
        tokens = int(max(0.0, budget) / max(self._token_s, 1e-9))
        return max(_GRAIN, min(tokens // _GRAIN * _GRAIN, self._capacity))
