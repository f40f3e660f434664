"""The bookkeeping of the benchmarks is right: ratios, targets, gaps, prompts."""

import pytest

from tests.bench.clients import Load, Trace
from tests.bench.common import Row, at_most, interleave, ratio_at_least, ratio_at_most, table
from tests.bench.prompts import token_ids, words

S = 1_000_000_000


def trace(*arrivals_s: float, submitted_s: float = 0, tokens: int = 0) -> Trace:
    seen = Trace()
    seen.submitted_ns = round(submitted_s * S)
    seen.arrivals_ns = [round(at * S) for at in arrivals_s]
    seen.finished_ns = seen.arrivals_ns[-1]
    seen.tokens = tokens
    return seen


def test_a_ratio_is_the_median_of_the_pairs_ratios() -> None:
    row = Row("speed", ratio_at_least(1.2), ours=(20, 60, 9), peer=(10, 40, 9))
    assert row.ratios == [2.0, 1.5, 1.0]
    assert row.held is True
    assert Row("speed", ratio_at_most(1.2), row.ours, row.peer).held is False


def test_a_bound_on_our_own_figure_needs_no_peer() -> None:
    assert Row("time", at_most(0.25), ours=(0.2, 0.9, 0.25)).held is True
    assert Row("time", at_most(0.25), ours=(0.2, 0.9, 0.26)).held is False
    assert Row("time", None, ours=(0.2,)).held is None


def test_the_table_says_what_was_promised_and_what_was_kept() -> None:
    rows = [Row("speed, tok/s", ratio_at_least(1.0), (44.04, 46), (50, 46)), Row("prompt", None, (1_192,))]
    assert table(rows).splitlines()[2:] == [
        "| speed, tok/s | ratio ≥ 1 | 45 | 48 | 0.94 (0.88–1.00) | **no** |",
        "| prompt |  | 1,192 |  |  |  |",
    ]


def test_pairs_change_their_order() -> None:
    order: list[str] = []

    def ours(pair: int) -> int:
        order.append(f"o{pair}")
        return pair

    def peer(pair: int) -> int:
        order.append(f"p{pair}")
        return -pair

    taken = interleave(3, ours, peer)
    assert order == ["o0", "p0", "p1", "o1", "o2", "p2"]
    assert taken == ([0, 1, 2], [0, -1, -2])


def test_the_longest_gap_is_one_that_touches_the_span() -> None:
    seen = trace(0, 5, 6, 8, 8.5, 20)
    assert seen.longest_gap_s(round(5.5 * S), 8 * S) == 2
    assert seen.longest_gap_s(4 * S, 8 * S) == 5
    assert seen.longest_gap_s(8 * S, 9 * S) == 11.5
    assert seen.longest_gap_s(21 * S, 22 * S) == 0


def test_load_counts_from_the_first_submit_to_the_last_token() -> None:
    load = Load.of([trace(2, 5, tokens=30), trace(3, 11, submitted_s=1, tokens=70)])
    assert load.total_tps == pytest.approx(100 / 11)
    assert load.ttft_p50_s == load.ttft_p90_s == 2


def test_prompts_differ_by_seed_and_only_by_seed() -> None:
    assert token_ids(50, "a") == token_ids(50, "a") != token_ids(50, "b")
    assert words(50, "a") == words(50, "a") != words(50, "b")
    assert len(token_ids(50, "a")) == len(words(50, "a").split()) == 50
