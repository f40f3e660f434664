"""From logits to a token: llama.cpp's stages, each over the tokens it can touch, then a draw of our own.

Penalties change only tokens that occurred before, and truncation keeps only tokens near the top; neither is shown the
rest of the vocabulary. The draw for token ``i`` of a sequence depends on (seed, i) alone and runs over the surviving
tokens in order of their ids. The same seed therefore gives the same text alone and in a batch, as far as the logits
agree. It knows nothing of the context or of other sequences.
"""

import ctypes
import math
import random
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from backends.base import Logprob
from backends.llama_cpp.library import lib
from backends.llama_cpp.native import Logits, NativeModel
from localinfer.errors import LocalInferError
from localinfer.types import Sampling

Ids = npt.NDArray[np.int32]
Reals = npt.NDArray[np.float64]

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
_HUGE = 1e30  # what an infinite bias becomes: differences of scores stay finite
_RULED_OUT = -1e20  # no model's logit is below it; a token is there because it was forbidden
_TYPICAL_REACH = 80.0  # further below the top, 32-bit probabilities are 0 and the typical stage would compute nan
_STRIPES = 64
_MIROSTAT_TOP = 100  # tokens from which mirostat 1 estimates the slope of the distribution


class Sampler:
    """Chooses the tokens of one sequence.

    ``context`` is the most tokens a sequence can have, and what -1 means for the penalties' reach. After a draw,
    ``margin`` is how far, in probability, the drawn point lay from the nearest point that means another token; 1.0
    where nothing was drawn.
    """

    def __init__(self, model: NativeModel, sampling: Sampling, context: int, prompt: Sequence[int]) -> None:
        self.margin = 1.0
        self._sampling = sampling
        self._seed = secrets.randbits(32) if sampling.seed is None else sampling.seed
        self._position = 0
        self._biased = np.fromiter(sampling.logit_bias, np.int32)
        self._bias = np.clip(np.fromiter(sampling.logit_bias.values(), np.float64), -_HUGE, _HUGE)
        self._history = _History(model, sampling, context, prompt) if _looks_back(sampling) else None
        self._truncation = _Chain(_truncating_stages(sampling))
        # Whether it is applied is drawn here, from the seed and the position as everything else.
        xtc = sampling.xtc_probability > 0
        self._exclusion = _Chain([lib.llama_sampler_init_xtc(1.0, sampling.xtc_threshold, 1, 0)] if xtc else [])
        self._mirostat = Mirostat(sampling, model.n_vocab) if sampling.mirostat else None

    def sample(self, logits: Logits) -> tuple[int, Logprob | None]:
        """The next token from ``logits`` of shape (n_vocab,), and its log-probability if asked for.

        Raises ``LocalInferError`` where no token is possible.
        """
        scores = self._adjusted(logits)
        token = int(scores.argmax()) if self._sampling.temperature == 0 else self._draw(scores)
        if not scores[token] > _RULED_OUT:
            raise _no_token_left()
        if self._history is not None:
            self._history.add(token)
        self._position += 1
        top = self._sampling.top_logprobs
        return token, None if top is None else _logprob(logits, token, top)

    def close(self) -> None:
        """Free the native stages."""
        for chain in (self._truncation, self._exclusion, *([self._history.chain] if self._history else [])):
            chain.close()

    def _adjusted(self, logits: Logits) -> Logits:
        """Logits with bias and penalties; the given array itself where there are none."""
        if self._history is None and not len(self._biased):
            return logits
        scores = logits.copy()
        scores[self._biased] += self._bias
        if self._history is not None:
            self._history.penalise(scores)
        return scores

    def _draw(self, scores: Logits) -> int:
        sampling = self._sampling
        rng = random.Random(f"{self._seed}/{self._position}")
        point = rng.random()
        ids = _candidates(scores, sampling)
        if not len(ids):
            raise _no_token_left()
        values = scores[ids]
        if self._mirostat is not None:
            kept = self._mirostat.keep(_log_softmax(values, sampling.temperature))
            ids, values = ids[kept], values[kept]
        else:
            ids, values = self._truncation.apply(ids, values)
            if rng.random() < sampling.xtc_probability:
                ids, values = self._exclusion.apply(ids, values)
            order = ids.argsort()
            ids, values = ids[order], values[order]
        log_p = _log_softmax(values, sampling.temperature)
        bounds = np.exp(log_p).cumsum()
        index = min(int(bounds.searchsorted(point, side="right")), len(ids) - 1)
        self.margin = float(np.abs(bounds[:-1] - point).min()) if len(ids) > 1 else 1.0
        if self._mirostat is not None:
            self._mirostat.observe(float(log_p[index]))
        return int(ids[index])


class _Chain:
    """Native stages in order. It owns them."""

    def __init__(self, stages: Sequence[object]) -> None:
        self._pointer = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        self._empty = not stages
        for stage in stages:
            lib.llama_sampler_chain_add(self._pointer, stage)

    def accept(self, token: int) -> None:
        """The sequence goes on with ``token``."""
        lib.llama_sampler_accept(self._pointer, token)

    def apply(self, ids: Ids, logits: Logits) -> tuple[Ids, Logits]:
        """Ids and logits of the candidates that are left, in the order the stages left them."""
        if self._empty:
            return ids, logits
        candidates = np.empty(len(ids), _CANDIDATE)
        candidates["id"], candidates["logit"], candidates["p"] = ids, logits, 0
        array = lib.llama_token_data_array()
        array.data = ctypes.cast(candidates.ctypes.data, lib.llama_token_data_p)
        array.size = len(candidates)
        array.selected = -1
        array.sorted = False
        lib.llama_sampler_apply(self._pointer, ctypes.byref(array))
        # A stage may have moved the beginning, but only within the candidates.
        start = (ctypes.addressof(array.data.contents) - candidates.ctypes.data) // _CANDIDATE.itemsize
        kept = candidates[start : start + array.size]
        return kept["id"], kept["logit"]

    def close(self) -> None:
        """Free the stages."""
        if self._pointer:
            lib.llama_sampler_free(self._pointer)
            self._pointer = None

    def __del__(self) -> None:
        self.close()


class _History:
    """The penalties, and the tokens they may touch: those of the prompt within their reach and all that followed."""

    def __init__(self, model: NativeModel, sampling: Sampling, context: int, prompt: Sequence[int]) -> None:
        # The stages allocate their whole reach, so it must be no longer than a sequence can be.
        penalty_reach = _reach(sampling.penalty_last_n, context) if _penalises(sampling) else 0
        dry_reach = _reach(sampling.dry_last_n, context) if sampling.dry_multiplier > 0 else 0
        breakers = [text.encode("utf-8", "replace") for text in sampling.dry_sequence_breakers]
        penalties = lib.llama_sampler_init_penalties(
            model.n_vocab,
            penalty_reach,
            sampling.repeat_penalty,
            sampling.frequency_penalty,
            sampling.presence_penalty,
        )
        dry = lib.llama_sampler_init_dry(
            model.vocab,
            sampling.dry_multiplier,
            sampling.dry_base,
            sampling.dry_allowed_length,
            dry_reach,
            (ctypes.c_char_p * len(breakers))(*breakers),
            len(breakers),
        )
        self.chain = _Chain([penalties, dry])
        recent = prompt[-max(penalty_reach, dry_reach) :]
        for token in recent:
            self.chain.accept(token)
        self._seen = set(recent)
        self._ids = np.fromiter(self._seen, np.int32)

    def add(self, token: int) -> None:
        """The sequence goes on with ``token``."""
        self.chain.accept(token)
        if token not in self._seen:
            self._seen.add(token)
            self._ids = np.append(self._ids, np.int32(token))

    def penalise(self, scores: Logits) -> None:
        """Change ``scores`` in place."""
        ids, values = self.chain.apply(self._ids, scores[self._ids])
        scores[ids] = values.clip(-_HUGE, _HUGE)


class Mirostat:
    """Keeps the surprise of the drawn tokens near ``mirostat_tau`` bits (Basu et al., arXiv:2007.14966).

    Surprise is -log2 of a probability; ``_limit`` is mu of the paper.
    """

    def __init__(self, sampling: Sampling, n_vocab: int) -> None:
        self._version, self._tau, self._eta = sampling.mirostat, sampling.mirostat_tau, sampling.mirostat_eta
        self._n_vocab = n_vocab
        self._limit = 2 * self._tau

    def keep(self, log_p: Reals) -> npt.NDArray[np.intp]:
        """Indices, ascending, of the tokens to draw from, given natural log-probabilities."""
        if self._version == 2:
            kept = np.flatnonzero(-log_p / math.log(2) <= self._limit)
            return kept if len(kept) else np.array([log_p.argmax()])
        return np.sort(_top(log_p, self._count(log_p)))

    def _count(self, log_p: Reals) -> int:
        """How many of the most probable tokens version 1 draws from: Zipf's exponent, estimated from the top."""
        top = log_p[_top(log_p, _MIROSTAT_TOP)]
        ranks = np.arange(1, len(top))
        t = np.log((ranks + 1) / ranks)
        with np.errstate(all="ignore"):  # no slope with one candidate, no bound with a high target
            slope = (t * (top[:-1] - top[1:])).sum() / (t * t).sum()
            excess = slope - 1
            count = (excess * np.exp2(self._limit) / (1 - float(self._n_vocab) ** -excess)) ** (1 / slope)
        return int(np.clip(np.nan_to_num(count), 1, len(log_p)))

    def observe(self, log_p: float) -> None:
        """A token of this natural log-probability among the kept ones was drawn."""
        self._limit -= self._eta * (-log_p / math.log(2) - self._tau)


def _looks_back(sampling: Sampling) -> bool:
    penalised = _penalises(sampling) and sampling.penalty_last_n != 0
    return penalised or (sampling.dry_multiplier > 0 and sampling.dry_last_n != 0)


def _penalises(sampling: Sampling) -> bool:
    return sampling.repeat_penalty != 1 or sampling.presence_penalty != 0 or sampling.frequency_penalty != 0


def _reach(last_n: int, context: int) -> int:
    return context if last_n < 0 else min(last_n, context)


def _truncating_stages(sampling: Sampling) -> list[object]:
    """The stages that drop candidates, in llama.cpp's order; they see logits before the temperature."""
    stages: list[object] = []
    if sampling.top_k > 0:
        stages.append(lib.llama_sampler_init_top_k(sampling.top_k))
    if sampling.typical_p < 1:
        stages.append(lib.llama_sampler_init_typical(sampling.typical_p, 1))
    if sampling.top_p < 1:
        stages.append(lib.llama_sampler_init_top_p(sampling.top_p, 1))
    if sampling.min_p > 0:
        stages.append(lib.llama_sampler_init_min_p(sampling.min_p, 1))
    return stages


def _candidates(scores: Logits, sampling: Sampling) -> Ids:
    """Ids, ascending, of the tokens that may survive truncation: the top k among them, and few others."""
    least = _RULED_OUT
    if sampling.typical_p < 1:
        least = max(least, float(scores.max()) - _TYPICAL_REACH)
    if sampling.top_k > 0 and not sampling.mirostat:
        least = max(least, _bound(scores, sampling.top_k))
    return np.flatnonzero(scores >= least).astype(np.int32)


def _bound(values: npt.NDArray[Any], count: int) -> float:
    """A number that at least ``count`` of the values reach, and few more; -inf where ``count`` is not much fewer."""
    rows = len(values) // _STRIPES
    if count >= rows:
        return -math.inf
    # Of `rows` groups, `count` have a largest value that reaches the count-th largest of these.
    largest = values[: rows * _STRIPES].reshape(_STRIPES, rows).max(axis=0)
    return float(np.partition(largest, rows - count)[rows - count])


def _top(values: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
    """Indices of the ``count`` largest values, largest first; the lower index first where they are equal."""
    near = np.flatnonzero(values >= _bound(values, count))
    return near[np.argsort(-values[near], kind="stable")][:count]


def _log_softmax(values: Logits, temperature: float) -> Reals:
    scaled = (values - values.max().astype(np.float64)) / temperature
    return np.asarray(scaled - math.log(np.exp(scaled).sum()))


def _logprob(logits: Logits, token: int, count: int) -> Logprob:
    """Log-softmax of the raw logits at ``token`` and at the ``count`` likeliest tokens."""
    peak = logits.max()
    norm = float(peak) + math.log(np.exp(logits - peak).sum(dtype=np.float64))
    best = tuple((int(id), float(logits[id]) - norm) for id in _top(logits, count)) if count else ()
    return Logprob(value=float(logits[token]) - norm, top=best)


def _no_token_left() -> LocalInferError:
    return LocalInferError(
        "There is no token to go on with: every one is ruled out, or the model computed no numbers.",
        "Check logit_bias. If it is not set, the model's file or this device's computation of it is at fault.",
    )
