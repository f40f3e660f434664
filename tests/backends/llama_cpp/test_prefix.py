"""The prefix cache as a policy, over cells that remember what they hold and refuse what a real memory refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.llama_cpp.prefix import WORTHWHILE, PrefixCache, Row, State, Tokens, common_prefix

CONTEXT = 400


class FakeCells:
    """Sequences of tokens. ``window`` tokens before the end survive; ``trims`` False: only whole states can go back."""

    def __init__(self, *, window: int = 0, trims: bool = True) -> None:
        self.window = window
        self.trims = trims
        self.held: dict[int, list[int]] = {}
        self.first: dict[int, int] = {}

    def feed(self, sequence: int, tokens: list[int]) -> None:
        held = self.held.setdefault(sequence, [])
        held.extend(tokens)
        if self.window:
            self.first[sequence] = max(self.first.get(sequence, 0), len(held) - self.window)

    def trim(self, sequence: int, length: int) -> bool:
        held = self.held.setdefault(sequence, [])
        if length < len(held) and not self.trims:
            return False
        if self.window and length < len(held):
            assert self.first.get(sequence, 0) <= max(0, length - self.window), "cells that were forgotten are reused"
        del held[length:]
        return True

    def clear(self, sequence: int) -> None:
        self.held[sequence] = []
        self.first[sequence] = 0

    def copy(self, source: int, target: int) -> None:
        self.held[target] = list(self.held.get(source, []))
        self.first[target] = self.first.get(source, 0)

    def first_position(self, sequence: int) -> int:
        return self.first.get(sequence, 0) if self.held.get(sequence) else -1

    def save(self, sequence: int, *, partial: bool) -> State:
        return np.asarray([self.first.get(sequence, 0), *self.held.get(sequence, [])], np.int32).view(np.uint8)

    def restore(self, sequence: int, state: State, *, partial: bool) -> bool:
        first, *tokens = state.view(np.int32).tolist()
        if partial and not self.window:
            assert self.held[sequence][: len(tokens)] == tokens, "a checkpoint of another text is restored"
        self.first[sequence] = first
        if partial and self.window:
            self.held[sequence] = self.held[sequence][: len(tokens)] + self.held[sequence][len(tokens) :]
        else:
            self.held[sequence] = tokens
        return True


def tokens(*values: int) -> Tokens:
    return np.asarray(values, np.int32)


def cache_over(cells: FakeCells, rows: int = 3, snapshots: int = 1000) -> PrefixCache:
    return PrefixCache(cells, rows, CONTEXT, window=cells.window, trims=cells.trims, snapshot_tokens=snapshots)


def serve(cache: PrefixCache, cells: FakeCells, prompt: list[int], reply: list[int], checkpoint_at: int = 0) -> int:
    """One request from admission to release on an otherwise idle cache; the tokens that were reused."""
    ids = tokens(*prompt)
    match = cache.match(ids, ())
    row = cache.choose(ids, match, cache.rows)
    reused = cache.take(row, match)
    assert reused < len(prompt), "the last token must be computed"
    assert row.tokens.tolist() == prompt[:reused]
    held = cells.held.get(row.index, [])
    assert held == prompt[:reused]
    if checkpoint_at - reused > 0 and checkpoint_at < len(prompt):
        feed(cache, cells, row, prompt[reused:checkpoint_at])
        cache.checkpoint(row)
        feed(cache, cells, row, prompt[checkpoint_at:])
    else:
        feed(cache, cells, row, prompt[reused:])
    feed(cache, cells, row, reply)
    assert cells.held[row.index] == prompt + reply
    cache.release(row)
    return reused


def feed(cache: PrefixCache, cells: FakeCells, row: Row, new: list[int]) -> None:
    cells.feed(row.index, new)
    row.append(tokens(*new))


texts = st.lists(st.integers(0, 2), min_size=1, max_size=120)


@given(st.lists(st.tuples(texts, texts), max_size=12), st.sampled_from([0, 40]), st.booleans(), st.integers(0, 300))
def test_a_row_always_holds_exactly_the_prompt_and_its_reply(
    requests: list[tuple[list[int], list[int]]], window: int, trims: bool, snapshots: int
) -> None:
    cells = FakeCells(window=window if trims else 0, trims=trims)
    cache = cache_over(cells, snapshots=snapshots)
    for prompt, reply in requests:
        serve(cache, cells, prompt, reply, checkpoint_at=len(prompt) - 16)


@given(texts, texts)
def test_common_prefix(a: list[int], b: list[int]) -> None:
    length = common_prefix(tokens(*a), tokens(*b))
    assert a[:length] == b[:length]
    assert length == min(len(a), len(b)) or a[length] != b[length]


def test_the_second_turn_reuses_the_whole_first_turn() -> None:
    for cells in (FakeCells(), FakeCells(window=20), FakeCells(trims=False)):
        cache = cache_over(cells)
        first, reply = list(range(100)), list(range(200, 230))
        assert serve(cache, cells, first, reply) == 0
        assert serve(cache, cells, [*first, *reply, 7, 8], []) == 130


def test_the_same_prompt_again_computes_one_token_where_memory_can_go_back() -> None:
    cells = FakeCells()
    cache = cache_over(cells)
    serve(cache, cells, list(range(100)), list(range(200, 230)))
    assert serve(cache, cells, list(range(100)), []) == 99


@pytest.mark.parametrize("cells", [FakeCells(window=20), FakeCells(trims=False)])
def test_the_same_prompt_again_goes_back_to_a_checkpoint(cells: FakeCells) -> None:
    cache = cache_over(cells)
    serve(cache, cells, list(range(100)), list(range(200, 290)), checkpoint_at=84)
    assert serve(cache, cells, list(range(100)), []) == 84


def test_without_a_checkpoint_nothing_wrong_is_reused() -> None:
    for cells in (FakeCells(window=20), FakeCells(trims=False)):
        cache = cache_over(cells)
        serve(cache, cells, list(range(100)), list(range(200, 290)))
        assert serve(cache, cells, list(range(100)), []) == 0


def test_another_conversation_does_not_overwrite_this_one() -> None:
    cells = FakeCells()
    cache = cache_over(cells, rows=2)
    system = list(range(60))
    serve(cache, cells, [*system, *range(100, 200)], [])
    assert serve(cache, cells, [*system, *range(300, 400)], []) == 60
    assert serve(cache, cells, [*system, *range(100, 200), 5], []) == 160


def test_an_evicted_conversation_comes_back_from_host_memory() -> None:
    cells = FakeCells()
    cache = cache_over(cells, rows=1)
    serve(cache, cells, list(range(100)), [])
    serve(cache, cells, list(range(200, 300)), [])
    assert serve(cache, cells, [*range(100), 5], []) == 100
    assert serve(cache, cells, [*range(200, 300), 5], []) == 100


def test_snapshots_stay_within_their_budget_and_the_oldest_go_first() -> None:
    cells = FakeCells()
    cache = cache_over(cells, rows=1, snapshots=250)
    for start in (0, 1000, 2000, 3000):
        serve(cache, cells, list(range(start, start + 100)), [])
    assert serve(cache, cells, [*range(100), 5], []) == 0
    assert serve(cache, cells, [*range(2000, 2100), 5], []) == 100


def test_a_prompt_waits_for_an_earlier_one_that_is_still_prefilling() -> None:
    cells = FakeCells()
    cache = cache_over(cells)
    leader = cache.rows[0]
    leader.planned = tokens(*range(200))
    feed(cache, cells, leader, list(range(50)))
    prompt = tokens(*range(150), 999)
    match = cache.match(prompt, [leader])
    assert match.pending
    assert match.length == 150
    assert not cache.match(prompt, []).pending, "only earlier prompts are waited for"
    feed(cache, cells, leader, list(range(50, 150)))
    match = cache.match(prompt, [leader])
    assert not match.pending
    assert cache.take(cache.rows[1], match) == 150
    assert cells.held[1] == list(range(150))


def test_nobody_waits_for_a_prefix_that_is_not_worth_it() -> None:
    cache = cache_over(FakeCells())
    cache.rows[0].planned = tokens(*range(200))
    assert not cache.match(tokens(*range(WORTHWHILE), 999), [cache.rows[0]]).pending
