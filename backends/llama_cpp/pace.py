"""How much prefill one step may carry, learnt from the steps before.

While streams run, a step should last no longer than ``LOADED_S``, so that their cadence holds; when several prompts
wait, it may last longer, because more people gain. Without streams a step should end within
``UNLOADED_S``, so that new requests and cancels are taken soon. It knows only counts and seconds.
"""

import math

LOADED_S = 0.32
LOADED_LIMIT_S = 0.3  # of prefill in a step beside streams, if that makes a piece of the prompt whole
UNLOADED_S = 1.0
_SMOOTHING = 0.3
_SMALLEST = 16
_SHORT = 2.5  # chunks
# Attention is computed by another kernel, which rounds otherwise, for pieces of a prompt shorter than this; such a
# piece also costs more per token. A prompt is cut into shorter ones only where the machine is too slow for longer.
_WHOLE = 64


class Pace:
    """Estimates of what one prompt token and one decode pass cost here, now."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._token_s: float | None = None
        self._decode_s = 0.0
        self._decode_rows = 1

    def observe(self, prefill_tokens: int, decode_rows: int, elapsed_s: float) -> None:
        """A step fed ``prefill_tokens`` prompt tokens and one token of ``decode_rows`` streams in ``elapsed_s``."""
        if not prefill_tokens:
            self._decode_s += _SMOOTHING * (elapsed_s - self._decode_s)
            self._decode_rows = decode_rows
        elif prefill_tokens >= _SMALLEST:
            cost = max(elapsed_s - self._decoding_s(decode_rows), elapsed_s / 2) / prefill_tokens
            self._token_s = cost if self._token_s is None else self._token_s + _SMOOTHING * (cost - self._token_s)

    def chunk(self, *, streams: int, waiting: int) -> int:
        """Prompt tokens the next step may feed beside ``streams`` running; ``waiting`` prompts are not prefilled."""
        if self._token_s is None:
            return min(_WHOLE if streams else self._capacity, self._capacity)
        budget_s = UNLOADED_S
        if streams:
            budget_s = min(UNLOADED_S, LOADED_S * (1 + 2 * (waiting - 1) / streams)) - self._decoding_s(streams)
        tokens = int(max(0.0, budget_s) / max(self._token_s, 1e-9))
        if tokens < _WHOLE and _WHOLE * self._token_s <= LOADED_LIMIT_S:
            tokens = _WHOLE
        grain = _WHOLE // 2 if tokens >= _WHOLE else _SMALLEST
        return max(_SMALLEST, min(tokens // grain * grain, self._capacity))

    def _decoding_s(self, rows: int) -> float:
        """A pass over twice the rows takes about one and a half times as long."""
        return self._decode_s * (1 + 0.5 * (rows / self._decode_rows - 1))


def cut(remaining: int, chunk: int, *, begun: bool) -> int:
    """How many of ``remaining`` prompt tokens to feed: about ``chunk``, in pieces of equal length.

    A short prompt that is not ``begun`` is fed whole: one longer step disturbs the streams less than several.
    """
    if not begun and remaining <= chunk * _SHORT:
        return remaining
    pieces = max(1, math.ceil(remaining / chunk - 0.4))
    return math.ceil(remaining / pieces)
