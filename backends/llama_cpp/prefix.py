"""The prefix cache: which tokens every sequence holds, and how a new prompt reuses the longest common prefix.

A ``Row`` mirrors one sequence of the native cache. A prompt may reuse its own row, a copy of another row (also of one
that is still being prefilled) or a snapshot of an evicted row kept in host memory, LRU under a budget of tokens.
Where the memory cannot drop a sequence's tail (recurrent and hybrid models) or has forgotten early cells (sliding
window), a row goes back to a checkpoint of that part of its state. It knows nothing of jobs or of the model.
"""

import time
from collections.abc import Iterable
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from localinfer.errors import LocalInferError

Tokens = npt.NDArray[np.int32]
State = npt.NDArray[np.uint8]

WORTHWHILE = 32  # tokens: below this, prefilling is not slower than keeping, copying or waiting
_SMOOTHING = 0.2
CHECKPOINTS = 4  # per row
CHECKPOINT_EVERY = 512  # tokens between the checkpoints of a long prompt


class Cells(Protocol):
    """What the native context does with sequences; see ``native.NativeContext``."""

    def trim(self, sequence: int, length: int) -> bool: ...
    def clear(self, sequence: int) -> None: ...
    def copy(self, source: int, target: int) -> None: ...
    def first_position(self, sequence: int) -> int: ...
    def save(self, sequence: int, *, partial: bool) -> State: ...
    def restore(self, sequence: int, state: State, *, partial: bool) -> bool: ...


class Checkpoint(msgspec.Struct, frozen=True, eq=False):
    """Partial state of a row when it held ``length`` tokens."""

    length: int
    state: State


class Row:
    """The tokens one sequence holds. ``planned`` is the prompt being prefilled into it, if any."""

    def __init__(self, index: int, context: int) -> None:
        self.index = index
        self.length = 0
        self.used = 0
        self.planned: Tokens | None = None
        self.checkpoints: tuple[Checkpoint, ...] = ()
        self._tokens = np.zeros(context, np.int32)

    @property
    def tokens(self) -> Tokens:
        """What it holds now, shape (length,)."""
        return self._tokens[: self.length]

    def append(self, tokens: Tokens | int) -> None:
        """Tokens were decoded after those it held."""
        if isinstance(tokens, int):
            self._tokens[self.length] = tokens
            self.length += 1
        else:
            self._tokens[self.length : self.length + len(tokens)] = tokens
            self.length += len(tokens)

    def hold(self, tokens: Tokens, checkpoints: tuple[Checkpoint, ...]) -> None:
        """It now holds exactly ``tokens``."""
        self._tokens[: len(tokens)] = tokens
        self.cut(len(tokens))
        self.length = len(tokens)
        self.checkpoints = checkpoints

    def cut(self, length: int) -> None:
        """It now holds the first ``length`` of its tokens."""
        self.length = length
        self.checkpoints = tuple(c for c in self.checkpoints if c.length <= length)


class Snapshot(msgspec.Struct, frozen=True, eq=False):
    """A whole sequence in host memory."""

    tokens: Tokens
    state: State
    checkpoints: tuple[Checkpoint, ...]


class Match(msgspec.Struct, frozen=True, eq=False):
    """The best source for a prompt: ``length`` tokens of it are there or, if ``pending``, will be."""

    source: Row | Snapshot | None
    length: int

    @property
    def pending(self) -> bool:
        """Whether the source is still being prefilled up to that length."""
        return isinstance(self.source, Row) and self.source.length < self.length


def common_prefix(a: Tokens, b: Tokens) -> int:
    """Number of equal leading tokens."""
    limit = min(len(a), len(b))
    different = a[:limit] != b[:limit]
    return int(different.argmax()) if different.any() else limit


class PrefixCache:
    """Rows and snapshots over the native ``cells``.

    ``window`` is the sliding window in tokens (0: none). ``trims``: whether the memory can drop a sequence's tail.
    ``snapshot_tokens`` bounds the snapshots.
    """

    def __init__(
        self, cells: Cells, rows: int, context: int, *, window: int, trims: bool, snapshot_tokens: int
    ) -> None:
        self.rows = tuple(Row(index, context) for index in range(rows))
        self._cells = cells
        self._window = window
        self._trims = trims
        self._budget = snapshot_tokens
        self._snapshots: list[Snapshot] = []  # least recently used first
        self._clock = 0
        self.rollback_s = 0.0  # what a mark and the way back to it took lately

    @property
    def rolls_back_freely(self) -> bool:
        """Whether any row can go back to any length without a checkpoint."""
        return self._trims and not self._window

    def match(self, prompt: Tokens, earlier: Iterable[Row]) -> Match:
        """The longest prefix of ``prompt`` that any row or snapshot has, or an ``earlier`` row will have.

        At least the last token of the prompt is left over, because its logits are needed.
        """
        usable = prompt[:-1]
        waitable = {row.index for row in earlier}
        best = Match(source=None, length=0)
        for row in self.rows:
            held = common_prefix(usable, row.tokens)
            if held > best.length:
                best = Match(source=row, length=held)
        for snapshot in self._snapshots:
            held = common_prefix(usable, snapshot.tokens)
            if held > best.length + WORTHWHILE:
                best = Match(source=snapshot, length=held)
        for row in self.rows:
            if row.planned is not None and row.index in waitable:
                promised = common_prefix(usable, row.planned)
                if promised > max(best.length, row.length) + WORTHWHILE:
                    best = Match(source=row, length=promised)
        return best

    def choose(self, prompt: Tokens, match: Match, idle: Iterable[Row]) -> Row:
        """The idle row to put ``prompt`` in: the matching one if most of it is reused, else the least valuable."""
        rows = sorted(idle, key=lambda row: (row.length > 0, row.used))
        source = match.source
        if isinstance(source, Row) and source in rows and (match.length * 2 >= source.length or len(rows) == 1):
            return source
        others = [row for row in rows if row is not source]
        return (others or rows)[0]

    def take(self, row: Row, match: Match) -> int:
        """Make ``row`` hold the matched prefix, as much of it as its memory allows; the tokens it then holds."""
        source = match.source
        if source is row:
            return self._roll_back(row, match.length)
        if isinstance(source, Snapshot):
            self._snapshots.remove(source)
        self._keep(row)
        if source is None:
            return self._empty(row)
        if isinstance(source, Row):
            self._cells.copy(source.index, row.index)
        else:
            if match.length < len(source.tokens):
                self._snapshots.append(source)
            if not self._cells.restore(row.index, source.state, partial=False):
                return self._empty(row)
        row.hold(source.tokens, source.checkpoints)
        return self._roll_back(row, match.length)

    def checkpoint(self, row: Row) -> None:
        """Keep the partial state of ``row`` as it is, so that it can come back here."""
        if any(c.length == row.length for c in row.checkpoints):
            return
        state = self._cells.save(row.index, partial=True)
        row.checkpoints = (*row.checkpoints, Checkpoint(row.length, state))[-CHECKPOINTS:]

    @property
    def trims(self) -> bool:
        """Whether the newest tokens of a row can be dropped; else a row goes back to a ``mark``."""
        return self._trims

    def mark(self, row: Row) -> Checkpoint:
        """The state of a row now, to come back to when what is decoded next is to be dropped."""
        started = time.perf_counter()
        mark = Checkpoint(row.length, self._cells.save(row.index, partial=True))
        # The way back takes about as long.
        self.rollback_s += _SMOOTHING * (2 * (time.perf_counter() - started) - self.rollback_s)
        return mark

    def go_back(self, row: Row, mark: Checkpoint) -> None:
        """Make ``row`` hold what it held at ``mark``. Raises ``LocalInferError`` where the memory refuses."""
        restored = self._cells.restore(row.index, mark.state, partial=True)
        if not (restored and self._cells.trim(row.index, mark.length)):
            raise LocalInferError("The state of this sequence could not be restored.", "Switch speculation off.")
        row.cut(mark.length)

    def retract(self, row: Row) -> None:
        """Drop what was decoded after the tokens of ``row``. Raises ``LocalInferError`` where the memory refuses."""
        if not self._cells.trim(row.index, row.length):
            raise LocalInferError("Drafted tokens could not be taken back.", "Switch speculation off.")

    def release(self, row: Row) -> None:
        """The row's job is over; it keeps what it holds until its cells are needed."""
        row.planned = None
        self._clock += 1
        row.used = self._clock

    def drop(self, row: Row) -> bool:
        """Forget a row to make room; False when it was empty."""
        if not row.length:
            return False
        self._keep(row)
        self._empty(row)
        return True

    def _roll_back(self, row: Row, length: int) -> int:
        if length == row.length:
            return length
        early = self._cells.first_position(row.index)
        whole = not self._window or early <= max(0, length - self._window)
        if self._trims and whole and self._cells.trim(row.index, length):
            row.cut(length)
            return length
        for checkpoint in reversed(row.checkpoints):
            if checkpoint.length > length:
                continue
            restored = self._cells.restore(row.index, checkpoint.state, partial=True)
            if restored and self._cells.trim(row.index, checkpoint.length):
                row.cut(checkpoint.length)
                return checkpoint.length
        return self._empty(row)

    def _empty(self, row: Row) -> int:
        self._cells.clear(row.index)
        row.cut(0)
        return 0

    def _keep(self, row: Row) -> None:
        """Move what the row holds to a snapshot, unless it is small or held elsewhere."""
        if row.length < WORTHWHILE or row.length > self._budget:
            return
        others = [other.tokens for other in self.rows if other is not row]
        others += [snapshot.tokens for snapshot in self._snapshots]
        if any(common_prefix(row.tokens, tokens) == row.length for tokens in others):
            return
        self._snapshots = [s for s in self._snapshots if common_prefix(s.tokens, row.tokens) < len(s.tokens)]
        state = self._cells.save(row.index, partial=False)
        self._snapshots.append(Snapshot(row.tokens.copy(), state, row.checkpoints))
        while sum(len(kept.tokens) for kept in self._snapshots) > self._budget:
            self._snapshots.pop(0)
