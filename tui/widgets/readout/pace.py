"""How fast tokens come, second by second and just now, from the instants at which they were sampled."""

from collections import deque

from localinfer.types import Piece
from tui.widgets.readout.values import HISTORY_S

SECOND_NS = 1_000_000_000
_NOW_S = 2.0
_PATIENCE_S = 0.5  # silence of this length, or of one and a half usual gaps, slows the live figure down


class Pace:
    """The last minute of tokens, and the speed of the last two seconds of the reply that is running."""

    def __init__(self) -> None:
        self._seconds: dict[int, tuple[float, float]] = {}  # by second of the clock: tokens, and time they took
        self._recent: deque[tuple[int, int]] = deque()  # instants, and tokens of this reply until then
        self._tokens = 0
        self._first_ns = 0

    def begin(self) -> None:
        """Another reply: the time before its first token is nobody's decoding."""
        self._recent.clear()
        self._tokens = 0

    def take(self, piece: Piece) -> None:
        """Count the tokens of one step. They took the time since the step before."""
        if not piece.tokens:
            return
        if self._recent:
            self._spread(piece.tokens, self._recent[-1][0], piece.at_ns)
        else:
            self._first_ns = piece.at_ns
        self._tokens += piece.tokens
        self._recent.append((piece.at_ns, self._tokens))
        while len(self._recent) > 2 and self._recent[1][0] <= piece.at_ns - _NOW_S * SECOND_NS:
            self._recent.popleft()

    def live_tps(self, now_ns: int) -> float | None:
        """Tokens per second over the last two seconds, or over one gap where that is longer; None before the second
        step."""
        if len(self._recent) < 2:
            return None
        last = self._tokens
        begin = now_ns - _NOW_S * SECOND_NS
        start_ns, start = next((one for one in reversed(self._recent) if one[0] <= begin), self._recent[0])
        if start == last:
            start_ns, start = self._recent[-2]
        took_ns = self.until_ns(now_ns) - start_ns
        return (last - start) * SECOND_NS / took_ns if took_ns > 0 else None

    def until_ns(self, now_ns: int) -> int:
        """How far the running reply can be judged: up to its last token, if the silence since is not unusually long."""
        if not self._recent:
            return now_ns
        last_ns, tokens = self._recent[-1][0], self._tokens
        gap_ns = (last_ns - self._first_ns) / (tokens - 1) if tokens > 1 else 0
        return max(last_ns, now_ns - int(max(_PATIENCE_S * SECOND_NS, 1.5 * gap_ns)))

    def history(self, until_ns: int) -> tuple[int, tuple[float | None, ...]]:
        """The number of the second that ``until_ns`` ends or is in, and tokens per second of decoding in each of the
        seconds up to it; None where there was none."""
        now = (until_ns - 1) // SECOND_NS
        self._seconds = {second: entry for second, entry in self._seconds.items() if second > now - HISTORY_S}
        entries = [self._seconds.get(second) for second in range(now - HISTORY_S + 1, now + 1)]
        return now, tuple(entry[0] / entry[1] if entry and entry[1] > 0 else None for entry in entries)

    def _spread(self, tokens: int, start_ns: int, end_ns: int) -> None:
        """Share a step out among the seconds it went through."""
        took_ns = end_ns - start_ns
        start_ns = max(start_ns, end_ns - HISTORY_S * SECOND_NS)
        if took_ns <= 0:
            self._add(end_ns // SECOND_NS, tokens, 0.0)
            return
        for second in range(start_ns // SECOND_NS, end_ns // SECOND_NS + 1):
            inside = min(end_ns, (second + 1) * SECOND_NS) - max(start_ns, second * SECOND_NS)
            if inside > 0:
                self._add(second, tokens * inside / took_ns, inside / SECOND_NS)

    def _add(self, second: int, tokens: float, took_s: float) -> None:
        counted, took = self._seconds.get(second, (0.0, 0.0))
        self._seconds[second] = (counted + tokens, took + took_s)
