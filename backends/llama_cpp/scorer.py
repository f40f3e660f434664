"""Scoring a text: the logits of every position of its chunks, held against the text and against another model's.

It knows one model. Positions are read a few at a time, because the logits of a chunk would take gigabytes.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import numpy as np
import numpy.typing as npt

from backends.llama_cpp.library import lib
from backends.llama_cpp.native import ContextOptions, NativeContext, NativeModel
from backends.llama_cpp.quantizer import name_of
from backends.llama_cpp.room import padded
from backends.llama_cpp.threads import FreeCores
from backends.llama_cpp.tokenizer import LlamaTokenizer
from localinfer.divergence import Floats, kl, log_probabilities
from localinfer.errors import BackendUnavailable, ModelFileInvalid
from localinfer.machine import available_cores
from localinfer.models.scores import ChunkScored, ReadText, ScoreText, TextRead, TextScored, scored

_ROWS = 256  # positions whose logits are in memory at once
_PASS = 512
_PREFILLS, _PREFILL_S = 3, 1.0  # passes to time, fewer where they take longer together
_DECODED = 32

Ids = npt.NDArray[np.int32]


def read_text(asked: ReadText) -> TextRead:
    """The tokens of a text. Raises what keeps the model from being opened."""
    lib.llama_backend_init()
    model = NativeModel(
        asked.path,
        parts=(asked.path, *asked.parts),
        gpu_layers=0,
        device="cpu",
        progress=lambda _: None,
        only_sizes=True,
    )
    try:
        tokenizer = LlamaTokenizer(model)
        begin = [tokenizer.bos] if tokenizer.adds_bos and tokenizer.bos is not None else []
        return TextRead(
            vocabulary=_digest(model),
            vocabulary_size=model.n_vocab,
            tokens=(*begin, *tokenizer.encode(asked.text, special=False)),
        )
    finally:
        model.close()


def _digest(model: NativeModel) -> str:
    digest = hashlib.sha256()
    for token in range(model.n_vocab):
        text = lib.llama_vocab_get_text(model.vocab, token) or b""
        digest.update(b"%d " % len(text) + text)
    return digest.hexdigest()


class Scorer:
    """One loaded model and what it takes to score with it. Raises what keeps the model from being loaded."""

    def __init__(self, asked: ScoreText) -> None:
        options = asked.options
        self._asked = asked
        self._cores = None if options.threads else FreeCores(available_cores())
        lib.llama_backend_init()
        with ExitStack() as resources:
            self._model = NativeModel(
                options.model,
                parts=(options.model, *options.parts),
                gpu_layers=options.gpu_layers,
                device=options.device,
                progress=lambda _: None,
                expert_layers=options.expert_layers,
            )
            resources.callback(self._model.close)
            if options.require_gpu and not self._model.offloaded[0]:
                raise BackendUnavailable("No layer of the model was placed on a GPU.", "See “localinfer doctor”.")
            self._threads = options.threads or (self._cores.poll() if self._cores else 1)
            self._context = NativeContext(
                self._model,
                ContextOptions(
                    cells=padded(asked.context + _DECODED),
                    sequences=1,
                    outputs=min(_ROWS, asked.context),
                    batch=_PASS,
                    threads=self._threads,
                    kv_type=options.kv_type,
                    unified=False,
                ),
            )
            resources.callback(self._context.close)
            tokenizer = LlamaTokenizer(self._model)
            self._begin = tokenizer.bos if tokenizer.adds_bos else None
            self._resources = resources.pop_all()

    def chunks(self) -> Iterator[ChunkScored]:
        """Score chunk after chunk. Raises ``ModelFileInvalid`` if the model gives no numbers."""
        asked = self._asked
        tokens = np.asarray(asked.tokens, np.int32).reshape(-1, asked.context)
        rows = self._rows(len(tokens))
        for number, chunk in enumerate(tokens):
            done = number * len(scored(asked.context))
            yield self._chunk(chunk, rows[done : done + len(scored(asked.context))])

    def described(self) -> TextScored:
        """What it is and, if that is asked for, how fast."""
        prefill, decode = self._speeds() if self._asked.timed else (None, None)
        done, layers = self._model.offloaded
        return TextScored(
            description=self._model.describe(),
            quantization=name_of(int(lib.llama_model_ftype(self._model.pointer))),
            placement=f"GPU {done}/{layers} layers" if done else "CPU",
            threads=self._threads,
            prefill_tps=prefill,
            decode_tps=decode,
        )

    def close(self) -> None:
        """Free the context, then the model."""
        self._resources.close()

    def _rows(self, chunks: int) -> Floats:
        asked = self._asked
        shape = (chunks * len(scored(asked.context)), self._model.n_vocab)
        return np.memmap(asked.file, np.float32, "r+" if asked.reference else "r", shape=shape)

    def _chunk(self, chunk: Ids, rows: Floats) -> ChunkScored:
        """``rows`` are the reference's, to be written or read."""
        positions = scored(len(chunk))
        fed = chunk.copy()
        if self._begin is not None:
            fed[0] = self._begin
        self._context.clear(0)
        for start in range(0, positions.start, _PASS):
            self._feed(fed[start : min(start + _PASS, positions.start)], start, wanted=False)
        losses: list[float] = []
        kls: list[float] = []
        same: list[bool] = []
        for start in range(positions.start, positions.stop, _ROWS):
            some = range(start, min(start + _ROWS, positions.stop))
            self._feed(fed[some.start : some.stop], some.start, wanted=True)
            for row, position in enumerate(some):
                found = log_probabilities(self._context.logits(row))
                loss = -float(found[chunk[position + 1]])
                if not np.isfinite(loss):
                    raise ModelFileInvalid("The model computes no numbers.", "Its file may be damaged: fetch it again.")
                losses.append(loss)
                if self._asked.reference:
                    rows[position - positions.start] = found
                else:
                    other = rows[position - positions.start]
                    kls.append(kl(other, found))
                    same.append(bool(other.argmax() == found.argmax()))
        return ChunkScored(losses=tuple(losses), kls=tuple(kls), same_top=tuple(same))

    def _feed(self, tokens: Ids, position: int, *, wanted: bool) -> None:
        """One pass over tokens from ``position`` on; ``wanted``: with the logits of each."""
        self._context.batch.clear()
        self._context.batch.extend(0, position, tokens, wanted=range(len(tokens)) if wanted else range(0))
        self._pass()

    def _pass(self) -> None:
        if self._cores is not None and (threads := self._cores.poll()) != self._threads:
            self._threads = threads
            self._context.set_threads(threads)
        self._context.decode()

    def _speeds(self) -> tuple[float, float]:
        """Prefill and decode, in tokens per second: medians of a few passes."""
        tokens = np.asarray(self._asked.tokens[: min(self._asked.context, _PASS)], np.int32)
        took: list[float] = []
        while len(took) < _PREFILLS and sum(took) < _PREFILL_S:
            self._context.clear(0)
            took.append(self._timed(partial(self._prompt, tokens)))
        steps = [self._timed(partial(self._step, tokens, at)) for at in range(_DECODED)]
        return len(tokens) / statistics.median(took), 1 / statistics.median(steps)

    def _prompt(self, tokens: Ids) -> None:
        self._context.batch.clear()
        self._context.batch.extend(0, 0, tokens, wanted=range(len(tokens) - 1, len(tokens)))
        self._pass()

    def _step(self, tokens: Ids, number: int) -> None:
        self._context.batch.clear()
        self._context.batch.add(0, len(tokens) + number, int(tokens[number % len(tokens)]))
        self._pass()

    def _timed(self, work: Callable[[], None]) -> float:
        started = time.perf_counter()
        work()
        lib.llama_synchronize(self._context.pointer)
        return time.perf_counter() - started
