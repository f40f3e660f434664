"""Samplers at work on logits that a test makes, and what their stages do, in plain numpy."""

import ctypes
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from backends.llama_cpp.library import lib
from backends.llama_cpp.native import Logits, NativeModel
from backends.llama_cpp.sampling import Sampler
from localinfer.types import Sampling

CONTEXT = 2048
PLAIN = Sampling(temperature=1, top_k=0, top_p=1, min_p=0)
GREEDY = Sampling(temperature=0)
SEEDS = range(25)
Mask = npt.NDArray[np.bool_]


def with_(sampling: Sampling, **fields: Any) -> Sampling:
    return msgspec.structs.replace(sampling, **fields)


def random_logits(model: NativeModel, seed: int, spread: float = 3) -> Logits:
    return np.random.default_rng(seed).normal(0, spread, model.n_vocab).astype(np.float32)


def draw(model: NativeModel, sampling: Sampling, logits: Logits, prompt: Sequence[int] = ()) -> tuple[int, float]:
    """The first token of a sequence and its margin."""
    sampler = Sampler(model, sampling, CONTEXT, prompt)
    token, _ = sampler.sample(logits)
    sampler.close()
    return token, sampler.margin


def draw_many(
    model: NativeModel, sampling: Sampling, logits: Logits, count: int, prompt: Sequence[int] = ()
) -> list[int]:
    """Tokens of one sequence whose logits are always the same."""
    sampler = Sampler(model, sampling, CONTEXT, prompt)
    return [sampler.sample(logits)[0] for _ in range(count)]


def assert_same(
    model: NativeModel, sampling: Sampling, logits: Logits, expected: Logits, prompt: Sequence[int] = ()
) -> None:
    """``sampling`` makes of ``logits`` what a plain draw makes of ``expected``, where -inf means dropped."""
    for seed in SEEDS:
        token, margin = draw(model, with_(sampling, seed=seed), logits, prompt)
        wanted, wanted_margin = draw(model, with_(PLAIN, temperature=sampling.temperature, seed=seed), expected)
        if wanted_margin > 1e-4:
            assert token == wanted
            assert margin == pytest.approx(wanted_margin, abs=1e-4)


def apply_natively(sampler: object, logits: Logits) -> tuple[npt.NDArray[np.int32], Logits, int]:
    """Ids and logits that a native sampler keeps of the whole vocabulary, and the id it selected (-1: none)."""
    data = (lib.llama_token_data * len(logits))()
    view = np.frombuffer(data, np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)]))
    view["id"], view["logit"] = np.arange(len(logits)), logits
    array = lib.llama_token_data_array(data, len(logits), -1, False)
    lib.llama_sampler_apply(sampler, ctypes.byref(array))
    kept = view[: array.size]
    chosen = int(kept["id"][array.selected]) if array.selected >= 0 else -1
    return kept["id"].copy(), kept["logit"].copy(), chosen


# The reference


def softmax(logits: Logits) -> npt.NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(weights / weights.sum())


def only(logits: Logits, kept: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Logits:
    masked = np.full_like(logits, -np.inf)
    masked[kept] = logits[kept]
    return masked


def top_k(logits: Logits, k: int) -> Logits:
    return only(logits, np.argsort(-logits)[:k])


def top_p(logits: Logits, p: float) -> Logits:
    order = np.argsort(-logits)
    reached = np.flatnonzero(softmax(logits)[order].cumsum() >= p)
    return only(logits, order[: reached[0] + 1] if len(reached) else order)


def min_p(logits: Logits, p: float) -> Logits:
    probabilities = softmax(logits)
    return only(logits, np.flatnonzero(probabilities >= p * probabilities.max()))


def typical(logits: Logits, p: float) -> Logits:
    probabilities = softmax(logits)
    possible = np.flatnonzero(probabilities)
    surprise = -np.log(probabilities[possible])
    entropy = (probabilities[possible] * surprise).sum()
    order = possible[np.argsort(np.abs(surprise - entropy))]
    return only(logits, order[: np.flatnonzero(probabilities[order].cumsum() > p)[0] + 1])


def penalties(logits: Logits, sampling: Sampling, recent: Sequence[int]) -> Logits:
    changed = logits.copy()
    for token in set(recent):
        value = float(changed[token])
        value = value * sampling.repeat_penalty if value <= 0 else value / sampling.repeat_penalty
        changed[token] = value - recent.count(token) * sampling.frequency_penalty - sampling.presence_penalty
    return changed


def dry(logits: Logits, sampling: Sampling, recent: Sequence[int], breakers: frozenset[int]) -> Logits:
    """Each token that would prolong a repetition of at least ``dry_allowed_length`` tokens."""
    since = next((back for back, token in enumerate(reversed(recent)) if token in breakers), len(recent))
    longest: dict[int, int] = {}
    for end in range(len(recent) - 1):
        length = 0
        while length <= end and length < since and recent[end - length] == recent[-1 - length]:
            length += 1
        if length >= sampling.dry_allowed_length:
            longest[recent[end + 1]] = max(longest.get(recent[end + 1], 0), length)
    changed = logits.copy()
    for token, length in longest.items():
        if token not in breakers:
            changed[token] -= sampling.dry_multiplier * sampling.dry_base ** (length - sampling.dry_allowed_length)
    return changed
