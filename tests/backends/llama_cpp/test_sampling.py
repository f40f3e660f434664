"""From logits to a token over real vocabularies: each stage against plain numpy, the draw against the probabilities.

What survives the stages is compared through the draw: the same seed must draw the same token, at the same distance from
the next one, from plain logits in which the reference has ruled everything else out.
"""

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import psutil
import pytest

from backends.llama_cpp.native import NativeModel
from backends.llama_cpp.sampling import Sampler
from localinfer.errors import LocalInferError
from localinfer.types import Sampling
from tests.backends.llama_cpp.samplers import (
    CONTEXT,
    GREEDY,
    PLAIN,
    SEEDS,
    assert_same,
    draw,
    draw_many,
    min_p,
    random_logits,
    softmax,
    top_k,
    top_p,
    typical,
    with_,
)

# Truncation


@pytest.mark.parametrize("k", [1, 2, 7, 40, 409, 5000])
def test_top_k_keeps_the_k_most_probable(tiny: NativeModel, k: int) -> None:
    logits = random_logits(tiny, k)
    assert_same(tiny, with_(PLAIN, top_k=k), logits, top_k(logits, k))


@pytest.mark.parametrize("p", [0.01, 0.5, 0.9, 0.999])
def test_top_p_keeps_the_fewest_tokens_that_reach_p(tiny: NativeModel, p: float) -> None:
    logits = random_logits(tiny, 1)
    assert_same(tiny, with_(PLAIN, top_p=p), logits, top_p(logits, p))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.6, 1.0])
def test_min_p_keeps_what_is_not_much_less_probable_than_the_first(tiny: NativeModel, p: float) -> None:
    logits = random_logits(tiny, 2)
    assert_same(tiny, with_(PLAIN, min_p=p), logits, min_p(logits, p))


@pytest.mark.parametrize("p", [0.05, 0.4, 0.9])
def test_typical_keeps_tokens_of_about_the_expected_surprise(tiny: NativeModel, p: float) -> None:
    logits = random_logits(tiny, 3)
    assert_same(tiny, with_(PLAIN, typical_p=p), logits, typical(logits, p))


def test_typical_stands_tokens_without_any_probability(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 3)
    logits[100:] = -np.inf
    logits[:20] -= 500
    assert_same(tiny, with_(PLAIN, typical_p=0.5), logits, typical(logits, 0.5))


@pytest.mark.parametrize("temperature", [0.01, 0.3, 1.7, 50.0])
def test_temperature_divides_the_logits_after_truncation(tiny: NativeModel, temperature: float) -> None:
    logits = random_logits(tiny, 4)
    for seed in SEEDS:
        sampling = with_(PLAIN, min_p=0.05, temperature=temperature, seed=seed)
        expected = (min_p(logits, 0.05) / np.float32(temperature)).astype(np.float32)
        assert draw(tiny, sampling, logits)[0] == draw(tiny, with_(PLAIN, seed=seed), expected)[0]


@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 1e-300])
def test_a_temperature_next_to_nothing_is_greedy(tiny: NativeModel, temperature: float) -> None:
    logits = random_logits(tiny, 5)
    for seed in SEEDS:
        assert draw(tiny, Sampling(temperature=temperature, seed=seed), logits)[0] == logits.argmax()


def test_xtc_drops_all_but_the_last_of_the_probable_tokens(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 6, spread=0.5)
    logits[[10, 20, 30]] = [6.0, 5.5, 5.2]
    probable = [token for token in np.argsort(-logits) if softmax(logits)[token] >= 0.1]
    assert probable == [10, 20, 30]
    expected = logits.copy()
    expected[probable[:-1]] = -np.inf
    assert_same(tiny, with_(PLAIN, xtc_probability=1, xtc_threshold=0.1), logits, expected)


def test_xtc_applies_as_often_as_asked_and_by_the_seed(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 6, spread=0.1)
    logits[[10, 20]] = [20.0, 19.9]
    sampling = with_(PLAIN, xtc_probability=0.4, xtc_threshold=0.2)
    tokens = draw_many(tiny, with_(sampling, seed=1), logits, 1000)
    share = softmax(logits)[20]
    assert tokens.count(20) / 1000 == pytest.approx(0.4 + 0.6 * share, abs=0.05)
    for seed in (0, 1, 2**32 - 1):
        assert draw_many(tiny, with_(sampling, seed=seed), logits, 50) == draw_many(
            tiny, with_(sampling, seed=seed), logits, 50
        )


def test_xtc_does_nothing_where_only_one_token_is_probable(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 6, spread=0.5)
    logits[10] = 12.0
    assert_same(tiny, with_(PLAIN, xtc_probability=1, xtc_threshold=0.1), logits, logits)


# Bias


def test_bias_is_added_to_the_logit(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 10)
    bias = {1: 2.5, 2: -1.0, 300: 4.0, 301: -100.0, 302: -math.inf}
    expected = logits.copy()
    for token, value in bias.items():
        expected[token] += np.float32(value)
    assert_same(tiny, with_(PLAIN, logit_bias=bias), logits, expected)
    assert_same(tiny, with_(PLAIN, logit_bias=bias, top_k=20), logits, top_k(expected, 20))


@pytest.mark.parametrize("value", [-100.0, -1e300, -math.inf])
def test_bias_rules_a_token_out(tiny: NativeModel, value: float) -> None:
    logits = random_logits(tiny, 11)
    first, second = (int(token) for token in np.argsort(-logits)[:2])
    assert draw(tiny, with_(GREEDY, logit_bias={first: value}), logits)[0] == second
    for sampling in (PLAIN, Sampling(), with_(PLAIN, mirostat=2), with_(PLAIN, mirostat=1)):
        assert first not in draw_many(tiny, with_(sampling, seed=1, logit_bias={first: value}), logits, 200)


@pytest.mark.parametrize("value", [100.0, 1e300, math.inf])
@pytest.mark.parametrize("sampling", [GREEDY, PLAIN, Sampling(), with_(PLAIN, typical_p=0.9), with_(PLAIN, mirostat=1)])
def test_bias_forces_a_token(tiny: NativeModel, sampling: Sampling, value: float) -> None:
    logits = random_logits(tiny, 12)
    assert set(draw_many(tiny, with_(sampling, seed=1, logit_bias={7: value}), logits, 20)) == {7}


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(), PLAIN, with_(PLAIN, typical_p=0.9), with_(PLAIN, mirostat=2)])
def test_where_nothing_is_possible_there_is_an_error(tiny: NativeModel, sampling: Sampling) -> None:
    logits = random_logits(tiny, 13)
    nothing = dict.fromkeys(range(tiny.n_vocab), -math.inf)
    with pytest.raises(LocalInferError, match="no token"):
        draw(tiny, with_(sampling, logit_bias=nothing), logits)
    with pytest.raises(LocalInferError, match="no token"):
        draw(tiny, sampling, np.full_like(logits, np.nan))


# The draw


def test_greedy_takes_the_first_of_the_largest(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 14)
    assert draw_many(tiny, GREEDY, logits, 3) == [int(logits.argmax())] * 3
    assert (
        draw_many(tiny, with_(GREEDY, mirostat=2, xtc_probability=1.0, top_k=3), logits, 3)
        == [int(logits.argmax())] * 3
    )
    logits[[20, 200]] = 99
    assert draw_many(tiny, GREEDY, logits, 3) == [20] * 3


def test_draws_follow_the_probabilities(tiny: NativeModel) -> None:
    logits = random_logits(tiny, 15, spread=2)
    along = draw_many(tiny, with_(PLAIN, seed=123), logits, 4000)
    across = [draw(tiny, with_(PLAIN, seed=seed), logits)[0] for seed in range(4000)]
    cooler = draw_many(tiny, with_(PLAIN, temperature=0.7, seed=5), logits, 4000)
    for tokens, probabilities in (
        (along, softmax(logits)),
        (across, softmax(logits)),
        (cooler, softmax(logits / np.float32(0.7))),
    ):
        assert chi_square_is_plausible(tokens, probabilities)
    assert not chi_square_is_plausible(cooler, softmax(logits))


def chi_square_is_plausible(tokens: list[int], probabilities: npt.NDArray[np.float64]) -> bool:
    """Pearson's statistic within five standard deviations of its mean; rare tokens share one bin."""
    expected = probabilities * len(tokens)
    observed = np.bincount(tokens, minlength=len(expected))
    rare = expected < 5
    expected = np.append(expected[~rare], expected[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    freedom = len(expected) - 1
    return bool(((observed - expected) ** 2 / expected).sum() < freedom + 5 * math.sqrt(2 * freedom))


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        PLAIN,
        with_(PLAIN, typical_p=0.8, repeat_penalty=1.1, dry_multiplier=0.5),
        with_(PLAIN, xtc_probability=0.5),
        with_(PLAIN, mirostat=1),
        with_(PLAIN, mirostat=2),
    ],
)
def test_the_seed_decides(tiny: NativeModel, sampling: Sampling) -> None:
    logits = random_logits(tiny, 16, spread=1)
    runs = {
        seed: draw_many(tiny, with_(sampling, seed=seed), logits, 40, prompt=[1, 2, 3])
        for seed in (0, 1, 2**31, 2**32 - 1)
    }
    for seed, tokens in runs.items():
        assert draw_many(tiny, with_(sampling, seed=seed), logits, 40, prompt=[1, 2, 3]) == tokens
    assert len({tuple(tokens) for tokens in runs.values()}) == len(runs)
    assert draw_many(tiny, sampling, logits, 40) != draw_many(tiny, sampling, logits, 40)  # no seed: a new one


def test_a_draw_depends_on_the_position_and_not_on_what_was_drawn_before(tiny: NativeModel) -> None:
    here, there = random_logits(tiny, 17), random_logits(tiny, 18)
    for sampling in (PLAIN, Sampling(), with_(PLAIN, xtc_probability=0.5)):
        one, other = (Sampler(tiny, with_(sampling, seed=9), CONTEXT, ()) for _ in range(2))
        one.sample(here)
        other.sample(there)
        assert one.sample(here) == other.sample(here)
        assert one.margin == other.margin


@pytest.mark.parametrize("sampling", [PLAIN, Sampling(), with_(PLAIN, mirostat=1), with_(PLAIN, mirostat=2)])
def test_two_tokens_that_change_places_change_no_draw(tiny: NativeModel, sampling: Sampling) -> None:
    logits = random_logits(tiny, 24, spread=0.5)
    for seed in range(100):
        tokens = []
        for nudge in (1e-5, -1e-5):
            logits[[50, 150, 250]] = [6 + nudge, 6, 6 - nudge]
            token, margin = draw(tiny, with_(sampling, seed=seed), logits)
            tokens.append(token)
        assert tokens[0] == tokens[1] or margin < 1e-4


def test_the_margin_is_the_distance_to_the_next_boundary(tiny: NativeModel) -> None:
    for seed in SEEDS:
        points = []
        for share in (0.2, 0.5, 0.85):
            logits = np.full(tiny.n_vocab, -np.inf, np.float32)
            logits[[3, 9]] = np.log([share, 1 - share])
            token, margin = draw(tiny, with_(PLAIN, seed=seed), logits)
            points.append(share - margin if token == 3 else share + margin)
        assert points == pytest.approx([points[0]] * 3, abs=1e-6)
    assert draw(tiny, with_(PLAIN, top_k=1), random_logits(tiny, 19))[1] == 1.0
    assert draw(tiny, GREEDY, random_logits(tiny, 19))[1] == 1.0


# Log-probabilities


@pytest.mark.parametrize("count", [0, 1, 5, 100, 5000])
def test_logprobs_are_the_log_softmax_of_the_raw_logits(tiny: NativeModel, count: int) -> None:
    logits = random_logits(tiny, 21, spread=4)
    expected = np.log(softmax(logits))
    sampling = Sampling(top_logprobs=count, repeat_penalty=2.0, logit_bias={3: 5.0}, seed=1)
    sampler = Sampler(tiny, sampling, CONTEXT, [1, 2, 3])
    for _ in range(10):
        token, logprob = sampler.sample(logits)
        assert logprob is not None
        assert logprob.value == pytest.approx(expected[token], abs=1e-5)
        assert [id for id, _ in logprob.top] == np.argsort(-logits)[:count].tolist()
        assert [value for _, value in logprob.top] == pytest.approx(np.sort(expected)[::-1][:count], abs=1e-5)
    assert draw(tiny, Sampling(), logits)
    assert Sampler(tiny, Sampling(), CONTEXT, ()).sample(logits)[1] is None


def test_logprobs_of_a_large_vocabulary(starter: NativeModel) -> None:
    logits = random_logits(starter, 22)
    _, logprob = Sampler(starter, with_(GREEDY, top_logprobs=20), CONTEXT, ()).sample(logits)
    assert logprob is not None
    assert [id for id, _ in logprob.top] == np.argsort(-logits)[:20].tolist()
    assert logprob.value == logprob.top[0][1] == pytest.approx(np.log(softmax(logits)).max(), abs=1e-5)
    assert all(better >= worse for (_, better), (_, worse) in pairwise(logprob.top))


# Ownership


def test_samplers_leave_nothing_behind(tiny: NativeModel) -> None:
    """Closed or just dropped."""
    logits = random_logits(tiny, 23)
    sampling = Sampling(repeat_penalty=1.1, dry_multiplier=0.5, xtc_probability=0.5, typical_p=0.9, logit_bias={1: 1.0})

    def use(count: int) -> int:
        for index in range(count):
            sampler = Sampler(tiny, with_(sampling, mirostat=index % 3), CONTEXT, [1, 2, 3])
            sampler.sample(logits)
            if index % 2:
                sampler.close()
        return int(psutil.Process().memory_info().rss)

    warm = use(200)
    assert use(2000) - warm < 4 * 2**20  # each holds some 40 KiB
