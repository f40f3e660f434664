"""From logits to a token: llama.cpp's truncating stages, then a draw of our own.

The draw for token ``i`` of a sequence depends on (seed, i) alone and runs over the surviving tokens in order of their
ids. The same seed therefore gives the same text alone, in a batch and after a rollback, as far as the logits agree.
"""

import ctypes
import random
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from backends.base import Logprob
from backends.llama_cpp.library import lib
from backends.llama_cpp.native import Logits, NativeModel
from localinfer.types import Sampling

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class Sampler:
    """Chooses the tokens of one sequence. ``context`` is what -1 means for the penalties' reach, in tokens."""

    def __init__(self, model: NativeModel, sampling: Sampling, context: int, prompt: Sequence[int]) -> None:
        self._sampling = sampling
        self._seed = secrets.randbits(32) if sampling.seed is None else sampling.seed
        self._drawn = 0
        self.margin = 1.0
        self._chain = None
        self._has_history = _has_history(sampling)
        if sampling.temperature > 0 or self._has_history or sampling.logit_bias:
            self._chain = _chain(model, sampling, self._seed, context)
            self._candidates = np.zeros(model.n_vocab, _CANDIDATE)
            self._ids = np.arange(model.n_vocab, dtype=np.int32)
            if self._has_history:
                for token in prompt:
                    lib.llama_sampler_accept(self._chain, token)

    def sample(self, logits: Logits) -> tuple[int, Logprob | None]:
        """The next token from ``logits`` of shape (n_vocab,), and its log-probability if asked for."""
        token = int(logits.argmax()) if self._chain is None else self._choose(logits)
        if self._has_history or self._sampling.mirostat:
            lib.llama_sampler_accept(self._chain, token)
        self._drawn += 1
        top = self._sampling.top_logprobs
        return token, None if top is None else _logprob(logits, token, top)

    def _choose(self, logits: Logits) -> int:
        self._candidates["id"] = self._ids
        self._candidates["logit"] = logits
        array = lib.llama_token_data_array()
        array.data = ctypes.cast(self._candidates.ctypes.data, lib.llama_token_data_p)
        array.size = len(self._candidates)
        array.selected = -1
        array.sorted = False
        lib.llama_sampler_apply(self._chain, ctypes.byref(array))
        kept = _view(array)
        if self._sampling.temperature == 0:
            return int(kept["id"][kept["logit"].argmax()])
        if array.selected >= 0:
            return int(kept["id"][array.selected])
        return self._draw(kept)

    def _draw(self, kept: npt.NDArray[Any]) -> int:
        kept = kept[np.argsort(kept["id"], kind="stable")]
        weights = np.exp(kept["logit"].astype(np.float64) - kept["logit"].max())
        bounds = np.cumsum(weights) / weights.sum()
        point = random.Random(f"{self._seed}/{self._drawn}").random()
        index = min(int(np.searchsorted(bounds, point, side="right")), len(kept) - 1)
        self.margin = float(np.abs(bounds[:-1] - point).min()) if len(kept) > 1 else 1.0
        return int(kept["id"][index])

    def close(self) -> None:
        """Free the chain."""
        if self._chain:
            lib.llama_sampler_free(self._chain)
            self._chain = None

    def __del__(self) -> None:
        self.close()


def _view(array: Any) -> npt.NDArray[Any]:
    """The candidates that are left; the stages may have moved them to memory of their own."""
    address = ctypes.addressof(array.data.contents)
    memory = (ctypes.c_char * (array.size * _CANDIDATE.itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), _CANDIDATE)


def _has_history(sampling: Sampling) -> bool:
    penalised = sampling.penalty_last_n != 0 and (
        sampling.repeat_penalty != 1 or sampling.presence_penalty != 0 or sampling.frequency_penalty != 0
    )
    return penalised or (sampling.dry_multiplier > 0 and sampling.dry_last_n != 0)


def _chain(model: NativeModel, sampling: Sampling, seed: int, context: int) -> object:
    """The stages before the draw, in llama.cpp's order."""
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())

    def add(stage: object) -> None:
        lib.llama_sampler_chain_add(chain, stage)

    if sampling.logit_bias:
        biases = (lib.llama_logit_bias * len(sampling.logit_bias))()
        for entry, (token, bias) in zip(biases, sampling.logit_bias.items(), strict=True):
            entry.token, entry.bias = token, bias
        add(lib.llama_sampler_init_logit_bias(model.n_vocab, len(biases), biases))
    if _has_history(sampling):
        add(
            lib.llama_sampler_init_penalties(
                model.n_vocab,
                context if sampling.penalty_last_n < 0 else sampling.penalty_last_n,
                sampling.repeat_penalty,
                sampling.frequency_penalty,
                sampling.presence_penalty,
            )
        )
        breakers = (ctypes.c_char_p * len(sampling.dry_sequence_breakers))(
            *(text.encode() for text in sampling.dry_sequence_breakers)
        )
        add(
            lib.llama_sampler_init_dry(
                model.vocab,
                sampling.dry_multiplier,
                sampling.dry_base,
                sampling.dry_allowed_length,
                context if sampling.dry_last_n < 0 else sampling.dry_last_n,
                breakers,
                len(breakers),
            )
        )
    if sampling.temperature == 0:
        return chain
    if sampling.mirostat:
        add(lib.llama_sampler_init_temp(sampling.temperature))
        tau, eta = sampling.mirostat_tau, sampling.mirostat_eta
        if sampling.mirostat == 1:
            add(lib.llama_sampler_init_mirostat(model.n_vocab, seed, tau, eta, 100))
        else:
            add(lib.llama_sampler_init_mirostat_v2(seed, tau, eta))
        return chain
    if sampling.top_k > 0:
        add(lib.llama_sampler_init_top_k(sampling.top_k))
    if sampling.typical_p < 1:
        add(lib.llama_sampler_init_typical(sampling.typical_p, 1))
    if sampling.top_p < 1:
        add(lib.llama_sampler_init_top_p(sampling.top_p, 1))
    if sampling.min_p > 0:
        add(lib.llama_sampler_init_min_p(sampling.min_p, 1))
    if sampling.xtc_probability > 0:
        add(lib.llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, 1, seed))
    add(lib.llama_sampler_init_temp(sampling.temperature))
    return chain


def _logprob(logits: Logits, token: int, count: int) -> Logprob:
    """Log-softmax of the raw logits at ``token`` and at the ``count`` likeliest tokens."""
    values = logits.astype(np.float64)
    peak = values.max()
    values -= peak + np.log(np.exp(values - peak).sum())
    best = np.argpartition(values, -count)[-count:] if 0 < count < len(values) else np.arange(len(values))[:count]
    best = best[np.argsort(values[best])[::-1]]
    return Logprob(value=float(values[token]), top=tuple((int(id), float(values[id])) for id in best))
