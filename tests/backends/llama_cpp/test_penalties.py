"""The penalties on what was said before, against plain numpy; see ``samplers.assert_same`` for how."""

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from backends.llama_cpp.native import NativeModel
from backends.llama_cpp.sampling import Sampler
from backends.llama_cpp.tokenizer import LlamaTokenizer
from localinfer.types import Sampling
from tests.backends.llama_cpp.samplers import (
    CONTEXT,
    GREEDY,
    PLAIN,
    assert_same,
    draw,
    draw_many,
    dry,
    penalties,
    random_logits,
    with_,
)

# Penalties


@pytest.mark.parametrize(
    "fields",
    [
        {"repeat_penalty": 1.5},
        {"repeat_penalty": 0.5},
        {"presence_penalty": 2.0},
        {"presence_penalty": -2.0},
        {"frequency_penalty": 0.7},
        {"repeat_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.3},
    ],
)
@pytest.mark.parametrize("last_n", [-1, 0, 1, 5, 64, 1000])
def test_penalties_count_the_last_tokens_of_prompt_and_answer(
    tiny: NativeModel, fields: dict[str, float], last_n: int
) -> None:
    logits = random_logits(tiny, 7, spread=1)
    prompt = [int(token) for token in np.random.default_rng(8).integers(0, 60, 90)]
    sampling = with_(PLAIN, **fields, penalty_last_n=last_n, seed=3)
    sampler = Sampler(tiny, sampling, CONTEXT, prompt)
    history = list(prompt)
    for step in range(20):
        recent = history if last_n < 0 else history[-last_n:] if last_n else []
        token, _ = sampler.sample(logits)
        bare = Sampler(tiny, with_(PLAIN, seed=3), CONTEXT, ())
        for _ in range(step):
            bare.sample(logits)
        assert token == bare.sample(penalties(logits, sampling, recent))[0]
        assert sampler.margin == pytest.approx(bare.margin, abs=1e-5)
        history.append(token)


def test_minus_one_reaches_as_far_as_the_context(tiny: NativeModel) -> None:
    logits = np.zeros(tiny.n_vocab, np.float32)
    logits[5] = 1
    prompt = [5, *[6] * 1500]
    for last_n, penalised in ((-1, True), (1000, False)):
        sampling = with_(GREEDY, presence_penalty=2.0, penalty_last_n=last_n)
        assert (draw(tiny, sampling, logits, prompt)[0] != 5) is penalised


def test_greedy_sees_penalties(tiny: NativeModel) -> None:
    logits = np.full(tiny.n_vocab, -5, np.float32)
    logits[[1, 2, 3]] = [4.0, 3.0, 2.5]
    sampling = with_(GREEDY, repeat_penalty=2.0)
    assert draw_many(tiny, sampling, logits, 5) == [1, 2, 3, 1, 1]  # 4, 3, 2.5, then the largest of 2, 1.5 and 1.25
    assert draw_many(tiny, sampling, logits, 1, prompt=[1]) == [2]
    assert draw_many(tiny, GREEDY, logits, 3, prompt=[1]) == [1, 1, 1]


@pytest.mark.parametrize("sampling", [GREEDY, PLAIN, Sampling(), with_(PLAIN, mirostat=2)])
@pytest.mark.parametrize("penalty", [1e-300, 1e-30, 100.0])
def test_no_penalty_is_beyond_the_range_of_numbers(tiny: NativeModel, sampling: Sampling, penalty: float) -> None:
    logits = random_logits(tiny, 9)
    logits[[3, 4]] = -1
    said = [int(logits.argmax()), 3, 4]
    tokens = draw_many(tiny, with_(sampling, repeat_penalty=penalty, presence_penalty=100.0, seed=1), logits, 20, said)
    if penalty < 1:
        assert tokens == [said[0]] * 20


def test_a_reach_beyond_all_memory_is_the_context(tiny: NativeModel) -> None:
    before = psutil.Process().memory_info().rss
    sampling = with_(PLAIN, repeat_penalty=1.1, penalty_last_n=2**26, dry_multiplier=1.0, dry_last_n=2**26, seed=1)
    sampler = Sampler(tiny, sampling, CONTEXT, [1, 2, 3])
    assert psutil.Process().memory_info().rss - before < 2**26
    sampler.close()


# DRY


@given(st.lists(st.integers(30, 34), min_size=1, max_size=60), st.integers(1, 4), st.sampled_from([-1, 10, 64]))
@examples(max_examples=60)
def test_dry_penalises_tokens_that_prolong_a_repetition(
    tiny: NativeModel, prompt: list[int], allowed: int, last_n: int
) -> None:
    logits = np.random.default_rng(9).normal(0, 0.3, tiny.n_vocab).astype(np.float32)
    logits[30:36] += 4
    sampling = with_(
        PLAIN,
        dry_multiplier=0.4,
        dry_base=1.3,
        dry_allowed_length=allowed,
        dry_last_n=last_n,
        dry_sequence_breakers=(),
        seed=4,
    )
    expected = dry(logits, sampling, prompt if last_n < 0 else prompt[-last_n:], frozenset())
    token, margin = draw(tiny, sampling, logits, prompt)
    wanted, wanted_margin = draw(tiny, with_(PLAIN, seed=4), expected)
    assert margin == pytest.approx(wanted_margin, abs=1e-5)
    assert token == wanted


def test_dry_stops_at_sequence_breakers(tiny: NativeModel) -> None:
    tokenizer = LlamaTokenizer(tiny)
    breakers = frozenset(token for token in range(tiny.n_vocab) if b"\n" in tokenizer.piece(token))
    (newline,) = tokenizer.encode("\n", special=False)
    assert newline in breakers
    logits = np.zeros(tiny.n_vocab, np.float32)
    sampling = with_(PLAIN, dry_multiplier=3.0, dry_allowed_length=2, dry_sequence_breakers=("\n",))
    words = [50, 51, 52, 53, 54]
    for prompt, repeats in (
        ([*words, 60, 50, 51, 52], True),
        ([*words, 60, newline, 50, 51, 52], True),
        ([*words, 60, 50, 51, newline, 52], False),
        ([*words, newline, *words], False),  # the breaker itself is never penalised
    ):
        expected = dry(logits, sampling, prompt, breakers)
        assert (expected != logits).any() == repeats
        assert_same(tiny, sampling, logits, expected, prompt)


def test_greedy_breaks_out_of_a_loop_with_dry(tiny: NativeModel) -> None:
    logits = np.zeros(tiny.n_vocab, np.float32)
    logits[[40, 41]] = [10.0, 9.5]
    tokens = draw_many(tiny, with_(GREEDY, dry_multiplier=0.8), logits, 12)
    assert tokens[:4] == [40, 40, 40, 41]  # the third repetition costs 0.8
    assert draw_many(tiny, GREEDY, logits, 12) == [40] * 12
