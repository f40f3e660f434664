"""How much prefill a step carries, as arithmetic over a machine of known costs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.llama_cpp.pace import LOADED_S, UNLOADED_S, Pace, cut


def settled(token_s: float, row_s: float, *, streams: int, waiting: int, capacity: int = 2040) -> tuple[int, float]:
    """The chunk after many steps on a machine with these costs, and how long a step with it takes."""
    pace = Pace(capacity)
    pace.observe(512, 0, 512 * token_s)
    pace.observe(0, max(streams, 1), row_s * max(streams, 1))
    for _ in range(50):
        chunk = pace.chunk(streams=streams, waiting=waiting)
        pace.observe(chunk, streams, chunk * token_s + streams * row_s)
    return chunk, chunk * token_s + streams * row_s


@pytest.mark.parametrize("token_s", [0.00002, 0.0005, 0.004, 0.008])
def test_streams_keep_their_cadence_beside_one_prompt(token_s: float) -> None:
    chunk, step_s = settled(token_s, token_s * 4, streams=3, waiting=1)
    assert step_s <= LOADED_S * 1.1 or (chunk == 64 and step_s <= 0.4)
    assert chunk * token_s >= step_s / 2 or chunk == 2040, "most of the step is prefill"


def test_many_waiting_prompts_outweigh_few_streams() -> None:
    few, _ = settled(0.004, 0.01, streams=7, waiting=1)
    many, step_s = settled(0.004, 0.01, streams=1, waiting=7)
    assert many > 2 * few
    assert step_s <= UNLOADED_S * 1.1


def test_without_streams_a_step_ends_soon() -> None:
    _, step_s = settled(0.004, 0.01, streams=0, waiting=1)
    assert UNLOADED_S * 0.7 <= step_s <= UNLOADED_S


def test_a_very_slow_machine_still_advances() -> None:
    chunk, _ = settled(1.0, 2.0, streams=3, waiting=1)
    assert chunk > 0


def test_before_anything_is_known_streams_are_spared() -> None:
    assert Pace(2040).chunk(streams=1, waiting=1) <= 64
    assert Pace(2040).chunk(streams=0, waiting=1) == 2040


@given(st.integers(1, 5000), st.integers(16, 2040))
def test_a_prompt_is_cut_into_pieces_of_about_equal_length(prompt: int, chunk: int) -> None:
    pieces = []
    left = prompt
    while left:
        pieces.append(cut(left, chunk, begun=True))
        left -= pieces[-1]
        assert left >= 0
    assert max(pieces) <= math.ceil(1.4 * chunk)
    assert max(pieces) - min(pieces) <= 1
    assert len(pieces) == 1 or min(pieces) >= 0.7 * chunk


def test_a_short_prompt_is_not_cut() -> None:
    assert cut(150, 64, begun=False) == 150
    assert cut(150, 64, begun=True) == 75
    assert cut(3000, 64, begun=False) <= 70
