"""How many cells a cache gets, as arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.llama_cpp.room import GRAIN, LEAST_CONTEXT, Need, make_room
from localinfer.errors import DoesNotFit

GIB = 2**30


def need(**fields: int) -> Need:
    known = {"cell_bytes": 100_000, "dense": True, "trained_context": 32_768, "available_bytes": 16 * GIB} | fields
    return Need(**known)  # type: ignore[arg-type]


def test_the_default_is_the_smallest_of_8192_the_trained_context_and_the_memory() -> None:
    assert make_room(need(), context=None, slots=1, unified=False).context == 8192
    assert make_room(need(trained_context=2048), context=None, slots=1, unified=False).context == 2048
    short = make_room(need(available_bytes=500_000_000), context=None, slots=1, unified=False)
    assert short.context == 3840  # 0.8 x 500 MB / 100 kB, padded down


def test_a_wish_is_taken_exactly() -> None:
    room = make_room(need(), context=300, slots=3, unified=False)
    assert (room.context, room.cells, room.unified) == (300, 3 * 512, False)


def test_slots_share_one_cache_where_memory_is_short() -> None:
    assert not make_room(need(), context=None, slots=4, unified=False).unified
    shared = make_room(need(available_bytes=2 * GIB), context=None, slots=4, unified=False)
    assert shared.unified
    assert shared.context == 8192
    assert shared.cells * 100_000 <= 2 * GIB


def test_a_wish_beyond_the_memory_is_refused_with_both_numbers() -> None:
    with pytest.raises(DoesNotFit, match=r"needs 93\.1 GiB, but 16\.0 GiB are free"):
        make_room(need(), context=1_000_000, slots=1, unified=False)
    make_room(need(dense=False), context=1_000_000, slots=1, unified=False)  # may well fit with a sliding window


@given(st.integers(0, 10**6), st.integers(0, 2**40), st.integers(0, 10**6), st.integers(1, 64), st.booleans())
def test_the_default_always_gives_every_slot_something(
    cell_bytes: int, available: int, trained: int, slots: int, unified: bool
) -> None:
    known = need(cell_bytes=cell_bytes, available_bytes=available, trained_context=trained)
    room = make_room(known, context=None, slots=slots, unified=unified)
    assert room.context >= min(LEAST_CONTEXT, trained or LEAST_CONTEXT)
    assert room.cells >= room.context if room.unified else room.cells >= room.context * slots
    assert room.cells % GRAIN == 0 or room.unified
