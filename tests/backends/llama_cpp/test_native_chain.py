"""A large vocabulary is sampled as by llama.cpp's own stages over the whole of it, of which ours see a part."""

import ctypes

import msgspec
import numpy as np
import pytest

from backends.llama_cpp.library import lib
from backends.llama_cpp.native import NativeModel
from backends.llama_cpp.sampling import Sampler
from localinfer.types import Sampling
from tests.backends.llama_cpp.samplers import (
    CONTEXT,
    PLAIN,
    apply_natively,
    draw_many,
    random_logits,
    with_,
)


def native_chain(model: NativeModel, sampling: Sampling) -> object:
    """The stages as llama.cpp's own sampling puts them together."""
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    breakers = (ctypes.c_char_p * len(sampling.dry_sequence_breakers))(
        *(text.encode() for text in sampling.dry_sequence_breakers)
    )
    bias = (lib.llama_logit_bias * len(sampling.logit_bias))(
        *(lib.llama_logit_bias(token, value) for token, value in sampling.logit_bias.items())
    )
    for stage in (
        lib.llama_sampler_init_logit_bias(model.n_vocab, len(bias), bias),
        lib.llama_sampler_init_penalties(
            model.n_vocab,
            sampling.penalty_last_n,
            sampling.repeat_penalty,
            sampling.frequency_penalty,
            sampling.presence_penalty,
        ),
        lib.llama_sampler_init_dry(
            model.vocab,
            sampling.dry_multiplier,
            sampling.dry_base,
            sampling.dry_allowed_length,
            sampling.dry_last_n,
            breakers,
            len(breakers),
        ),
        lib.llama_sampler_init_top_k(sampling.top_k),
        lib.llama_sampler_init_typical(sampling.typical_p, 1),
        lib.llama_sampler_init_top_p(sampling.top_p, 1),
        lib.llama_sampler_init_min_p(sampling.min_p, 1),
    ):
        lib.llama_sampler_chain_add(chain, stage)
    return chain


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(top_k=1),
        Sampling(top_k=767),
        Sampling(top_k=768),
        Sampling(top_k=769, min_p=0.0),
        Sampling(top_k=0, temperature=1.0),
        Sampling(typical_p=0.6),
        Sampling(top_k=300, top_p=1.0, min_p=0.0, temperature=1.4, repeat_penalty=1.3, penalty_last_n=500),
        Sampling(repeat_penalty=0.7, frequency_penalty=-0.3, presence_penalty=0.2, penalty_last_n=40),
        Sampling(top_k=5, logit_bias={17: 30.0, 18: -5.0, 40_000: 12.0}),
        Sampling(dry_multiplier=2.0, dry_last_n=CONTEXT, repeat_penalty=1.1, logit_bias={100: 9.0}),
    ],
    ids=lambda sampling: str(msgspec.to_builtins(sampling)) or "default",
)
def test_a_large_vocabulary_is_sampled_as_by_the_full_chain(starter: NativeModel, sampling: Sampling) -> None:
    rng = np.random.default_rng(20)
    prompt = [int(token) for token in rng.integers(0, 300, 700)]
    prompt += prompt[100:130]
    chain = native_chain(starter, sampling)
    for token in prompt:
        lib.llama_sampler_accept(chain, token)
    sampler = Sampler(starter, with_(sampling, seed=6), CONTEXT, prompt)
    bare = Sampler(starter, with_(PLAIN, temperature=sampling.temperature, seed=6), CONTEXT, ())
    for step in range(12):
        logits = random_logits(starter, step, spread=2.5)
        logits[prompt[130]] += 12  # what the repetition at the end of the prompt leads to
        ids, values, _ = apply_natively(chain, logits)
        expected = np.full_like(logits, -np.inf)
        expected[ids] = values
        token, _ = sampler.sample(logits)
        wanted, _ = bare.sample(expected)
        assert token == wanted or bare.margin < 1e-4
        assert sampler.margin == pytest.approx(bare.margin, abs=1e-4)
        lib.llama_sampler_accept(chain, token)
    lib.llama_sampler_free(chain)


def test_equal_logits_at_the_edge_leave_k_tokens(starter: NativeModel) -> None:
    logits = np.zeros(starter.n_vocab, np.float32)
    logits[1000:1010] = 1
    tokens = set(draw_many(starter, with_(PLAIN, top_k=30, temperature=100.0, seed=1), logits, 1000))
    assert len(tokens) == 30
    assert set(range(1000, 1010)) < tokens
