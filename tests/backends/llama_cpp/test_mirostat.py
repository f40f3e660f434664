"""Mirostat against llama.cpp's own stages, and what it is for: a steady surprise."""

import math

import numpy as np
import pytest

from backends.llama_cpp.library import lib
from backends.llama_cpp.native import NativeModel
from backends.llama_cpp.sampling import Mirostat
from localinfer.types import Sampling
from tests.backends.llama_cpp.samplers import PLAIN, apply_natively, draw_many, only, random_logits, softmax, with_


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_keeps_what_llama_cpp_keeps(tiny: NativeModel, version: int) -> None:
    """Fed with the tokens that llama.cpp's own stage draws, ours goes through the same states."""
    sampling = Sampling(mirostat=version, mirostat_tau=3.0, mirostat_eta=0.2)
    native = (
        lib.llama_sampler_init_mirostat(tiny.n_vocab, 1, 3.0, 0.2, 100)
        if version == 1
        else lib.llama_sampler_init_mirostat_v2(1, 3.0, 0.2)
    )
    ours = Mirostat(sampling, tiny.n_vocab)
    counts, differences = [], 0
    for step in range(300):
        logits = random_logits(tiny, step, spread=1 + step % 4)
        kept, _, chosen = apply_natively(native, logits)
        log_p = np.log(softmax(logits))
        mine = ours.keep(log_p)
        assert mine.tolist() == sorted(mine.tolist())
        difference = len(set(kept.tolist()) ^ set(mine.tolist()))
        assert difference <= 1
        differences += difference
        ours.observe(math.log(softmax(only(logits, kept))[chosen]))
        counts.append(len(mine))
    assert len(set(counts)) > 20
    assert differences <= 3  # its arithmetic is in 32 bits
    lib.llama_sampler_free(native)


def test_mirostat_brings_the_surprise_to_its_target(tiny: NativeModel) -> None:
    ranks = np.arange(1, tiny.n_vocab + 1)
    logits = (-1.1 * np.log(ranks)).astype(np.float32)
    surprises = []
    for version in (1, 2):
        for tau in (1.5, 3.0):
            sampling = with_(PLAIN, mirostat=version, mirostat_tau=tau, seed=1)
            tokens = draw_many(tiny, sampling, logits, 1500)[500:]
            surprises.append(float(-np.log2(softmax(logits)[tokens]).mean()))
    (low_1, high_1), (low_2, high_2) = surprises[:2], surprises[2:]
    assert low_1 + 0.5 < high_1 < 6
    assert low_2 + 0.5 < high_2 < 6
    free = -np.log2(softmax(logits)[draw_many(tiny, with_(PLAIN, seed=1), logits, 1500)]).mean()
    assert max(high_1, high_2) < free


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_stands_any_distribution(tiny: NativeModel, version: int) -> None:
    sampling = with_(PLAIN, mirostat=version, seed=1)
    one = np.full(tiny.n_vocab, -np.inf, np.float32)
    one[5] = 0
    assert draw_many(tiny, sampling, one, 50) == [5] * 50
    flat = np.zeros(tiny.n_vocab, np.float32)
    assert len(set(draw_many(tiny, sampling, flat, 400))) > 100
    for extreme in ({"mirostat_tau": 1000.0, "mirostat_eta": 1000.0}, {"mirostat_tau": 0.0}, {"mirostat_eta": 0.0}):
        draw_many(tiny, with_(sampling, **extreme), random_logits(tiny, 1), 100)
    loose = draw_many(tiny, with_(sampling, mirostat_tau=1000.0), flat, 400)
    assert len(set(loose)) > 100, "a target that is never reached truncates nothing"
    steep = -np.arange(tiny.n_vocab, dtype=np.float32) * 50
    assert draw_many(tiny, sampling, steep, 50) == [0] * 50


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_replaces_the_truncating_stages(tiny: NativeModel, version: int) -> None:
    logits = random_logits(tiny, 3, spread=0.5)
    tokens = draw_many(tiny, with_(PLAIN, mirostat=version, seed=1), logits, 300)
    truncating = Sampling(
        temperature=1, top_k=5, top_p=0.5, typical_p=0.5, xtc_probability=1.0, mirostat=version, seed=1
    )
    assert draw_many(tiny, truncating, logits, 300) == tokens
