"""A small model that drafts for the loaded one, in a context of its own in the same process.

Its KV cache follows each sequence: what it drafted and the model did not say is dropped, what was said without it is
read before it drafts again. It proposes its likeliest token each time; how often a token of that probability turns out
right is learnt as it runs.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np

from backends.drafting import Draft, Experience, Odds
from backends.llama_cpp.native import ContextOptions, Logits, NativeContext, NativeModel
from localinfer.errors import LocalInferError
from localinfer.types import DraftModel

_BATCH = 512
_LITTLE = 8  # unread tokens that a draft reads on its way
_PIECE_S = 0.05  # of reading at a time, so that nobody waits for it
_LEAST_PIECE = 32
_SMOOTHING = 0.2
# Buckets: the draft model's own probability of its token, and last all of them together.
_BOUNDS = (0.3, 0.5, 0.7, 0.85, 0.95, 0.99)
_GUESSES = (0.2, 0.4, 0.55, 0.7, 0.85, 0.93, 0.97, 0.65)
_ANY = len(_GUESSES) - 1


class _Text:
    """One sequence: its tokens, and how many of them the cache holds. ``ahead``: drafted, and in the cache after them.

    ``judged`` are the last draft's tokens with their buckets, until the model has said what comes there.
    """

    def __init__(self, tokens: Sequence[int], place: int, read: int, odds: Odds) -> None:
        self.tokens = list(tokens)
        self.place = place
        self.read = read
        self.ahead: list[int] = []
        self.judged: list[tuple[int, int]] = []
        self.odds = odds
        self.foreign = False  # whether it has a token that the draft model does not know

    @property
    def unread(self) -> list[int]:
        """What the cache lacks."""
        return self.tokens[self.read :]


class NativeDrafter:
    """``backends.drafting.DraftModel`` over a second model.

    ``vocabulary`` is the number of tokens that both models have: it never proposes others, and drafts no more for a
    sequence that holds others. ``length`` is tokens per sequence.
    """

    def __init__(self, name: str, context: NativeContext, *, places: int, vocabulary: int, length: int) -> None:
        self.name = name
        self._context = context
        self._vocabulary = vocabulary
        self._length = length
        self._experience = Experience(_GUESSES)
        self._texts: dict[int, _Text] = {}
        self._held: list[list[int]] = [[] for _ in range(places)]  # by row: what the cache held when a sequence ended
        self._step_s: dict[int, float] = {}
        self._read_s = 0.0
        self._measure()

    def begin(self, id: int, tokens: Sequence[int], prediction: Sequence[int], place: int) -> None:
        held = self._held[place]
        limit = min(len(held), len(tokens))
        kept = next((index for index in range(limit) if held[index] != tokens[index]), limit)
        if not self._context.trim(place, kept):
            self._context.clear(place)
            kept = 0
        self._held[place] = []
        text = self._texts[id] = _Text(tokens, place, kept, Odds(self._experience))
        text.foreign = max(tokens) >= self._vocabulary

    def extend(self, id: int, tokens: Sequence[int]) -> None:
        text = self._texts[id]
        for token, (drafted, bucket) in zip(tokens, text.judged, strict=False):
            right = token == drafted
            text.odds.learn(bucket, right)
            text.odds.learn(_ANY, right)
            if not right:
                break
        text.judged = []
        text.foreign |= max(tokens) >= self._vocabulary
        for token in tokens:
            text.tokens.append(token)
            if text.ahead and text.ahead[0] == token:
                text.ahead.pop(0)
                text.read += 1
            elif text.ahead:
                self._keep(text, text.read)

    def end(self, id: int) -> None:
        text = self._texts.pop(id, None)
        if text is not None:
            self._settle(text)
            self._held[text.place] = text.tokens[: text.read]

    def chance(self, id: int) -> float:
        text = self._texts[id]
        return 0.0 if text.foreign else text.odds.chances[_ANY]

    def token_s(self, sequences: int) -> float:
        nearest = min(self._step_s, key=lambda count: abs(count - sequences))
        return self._step_s[nearest] * max(1.0, 0.5 + 0.5 * sequences / nearest)

    def behind_s(self, id: int) -> float:
        text = self._texts[id]
        unread = len(text.tokens) - text.read
        return unread * self._read_s if unread > _LITTLE else 0.0

    def read(self, id: int) -> float:
        text = self._texts[id]
        count = min(max(_LEAST_PIECE, int(_PIECE_S / self._read_s)), _BATCH)
        piece = text.unread[:-1][:count]
        batch = self._context.batch
        batch.clear()
        batch.extend(text.place, text.read, piece, wanted=range(0))
        started = time.perf_counter()
        read = self._decode([text])
        elapsed_s = time.perf_counter() - started
        if read:
            self._read_s += _SMOOTHING * (elapsed_s / len(piece) - self._read_s)
            text.read += len(piece)
        return elapsed_s

    def draft(self, prices: Mapping[int, Sequence[float]]) -> dict[int, Draft]:
        growing = {id: ([], [], 1.0) for id in prices}  # type: dict[int, tuple[list[int], list[float], float]]
        active = sorted(prices, key=lambda id: self._texts[id].place)
        for id in active:
            self._settle(self._texts[id])
        for step in range(max(map(len, prices.values()))):
            active = [id for id in active if step < len(prices[id]) and self._has_room(id)]
            if not active:
                break
            rows = self._pass([self._texts[id] for id in active], [growing[id][0][-1:] for id in active])
            if not rows:
                break
            going = []
            for id, row in zip(active, rows, strict=True):
                text = self._texts[id]
                tokens, survival, alive = growing[id]
                token, bucket = self._likeliest(self._context.logits(row))
                text.judged.append((token, bucket))
                alive *= text.odds.chances[bucket]
                if alive < prices[id][step]:
                    continue
                tokens.append(token)
                survival.append(alive)
                growing[id] = (tokens, survival, alive)
                going.append(id)
            active = going
        return {id: Draft(tokens, survival) for id, (tokens, survival, _) in growing.items() if tokens}

    def set_threads(self, threads: int) -> None:
        """Use this many threads from the next pass on."""
        self._context.set_threads(threads)

    def _pass(self, texts: Sequence[_Text], drafted: Sequence[list[int]]) -> list[int]:
        """Feed each sequence what is unread of it, else the token that was drafted last; the rows of the logits."""
        batch = self._context.batch
        batch.clear()
        rows = []
        for text, last in zip(texts, drafted, strict=True):
            tokens = last or text.unread
            start = batch.extend(
                text.place, text.read + len(text.ahead), tokens, wanted=range(len(tokens) - 1, len(tokens))
            )
            rows.append(start + len(tokens) - 1)
        started = time.perf_counter()
        if not self._decode(texts):
            return []
        self._time(len(texts), time.perf_counter() - started, batch.rows)
        for text, last in zip(texts, drafted, strict=True):
            if last:
                text.ahead += last
            else:
                text.read = len(text.tokens)
        return rows

    def _decode(self, texts: Sequence[_Text]) -> bool:
        """One pass. Where the memory is too short the sequences are forgotten, to be read anew."""
        try:
            self._context.decode()
        except LocalInferError:
            for text in texts:
                self._context.clear(text.place)
                text.read, text.ahead = 0, []
            return False
        return True

    def _time(self, sequences: int, elapsed_s: float, rows: int) -> None:
        if rows > 2 * sequences:
            return
        known = self._step_s.get(sequences, elapsed_s)
        self._step_s[sequences] = known + _SMOOTHING * (elapsed_s - known)

    def _has_room(self, id: int) -> bool:
        text = self._texts[id]
        return len(text.tokens) + len(text.ahead) + 1 < self._length

    def _likeliest(self, logits: Logits) -> tuple[int, int]:
        """The likeliest token, and the bucket of its probability."""
        usable = logits[: self._vocabulary]
        token = int(usable.argmax())
        probability = 1.0 / float(np.exp(usable - usable[token]).sum())
        return token, sum(probability >= bound for bound in _BOUNDS)

    def _settle(self, text: _Text) -> None:
        """Drop what was drafted and never checked; the last token is to be fed, for its logits are wanted."""
        text.judged = []
        if text.ahead or text.read >= len(text.tokens):
            self._keep(text, min(text.read, len(text.tokens) - 1))

    def _keep(self, text: _Text, count: int) -> None:
        """Keep the first ``count`` tokens of a sequence in the cache."""
        text.read, text.ahead = count, []
        if not self._context.trim(text.place, count):
            self._context.clear(text.place)
            text.read = 0

    def _measure(self) -> None:
        """What a token takes to draft and to read, on the empty context. Raises ``LocalInferError``."""
        times = {}
        for count in (1, 1, 1, _LEAST_PIECE):
            self._context.batch.clear()
            self._context.batch.extend(0, 0, [0] * count, wanted=range(count - 1, count))
            started = time.perf_counter()
            self._context.decode()
            times[count] = time.perf_counter() - started
            self._context.clear(0)
        self._step_s[1] = times[1]
        self._read_s = times[_LEAST_PIECE] / _LEAST_PIECE


def open_drafter(
    draft: DraftModel, target: NativeModel, resources: ExitStack, *, slots: int, length: int, threads: int, cells: int
) -> NativeDrafter:
    """Load ``draft`` beside ``target``; what it holds is given to ``resources``. Raises ``LocalInferError``."""
    with ExitStack() as own:
        model = NativeModel(
            draft.model,
            gpu_layers=draft.gpu_layers,
            device=draft.device,
            progress=lambda _: None,
            parts=(draft.model, *draft.parts),
        )
        own.callback(model.close)
        if model.recurrent or model.hybrid:
            raise LocalInferError(
                "its recurrent state cannot take a token back.", "Choose a draft model with a KV cache."
            )
        context = NativeContext(
            model,
            ContextOptions(
                cells=cells,
                sequences=slots,
                outputs=slots,
                batch=_BATCH,
                threads=threads,
                kv_type="f16",
                unified=False,
            ),
        )
        own.callback(context.close)
        drafter = NativeDrafter(
            draft.name, context, places=slots, vocabulary=min(model.n_vocab, target.n_vocab), length=length
        )
        resources.push(own.pop_all())
    return drafter
