"""The closed forms of the context's memory. That llama.cpp says the same is another file of tests."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import BadRequest
from localinfer.models.memory_forms import KV_TYPES, kv_bytes, state_bytes
from localinfer.models.shape import Layer, ModelShape

SHAPE = ModelShape(
    architecture="test",
    format="gguf",
    parameters=0,
    context=0,
    vocabulary=0,
    embedding=0,
    heads=0,
    layers=(Layer(keys=1024, values=512), Layer(state_bytes=1000), Layer()),
    embedding_bytes=0,
    output_bytes=0,
)
WINDOWED = msgspec.structs.replace(SHAPE, layers=(Layer(keys=64, values=64, window=1024),))
CELL = 64 * 2 * 2


@pytest.mark.parametrize(
    ("kv_type", "cell"),
    [("f16", 3072), ("F16", 3072), ("q8_0", 1632), ("q4_0", 864), ("f32", 6144), ("bf16", 3072), ("iq4_nl", 864)],
)
def test_bytes_of_a_cell(kv_type: str, cell: int) -> None:
    assert kv_bytes(SHAPE, context=256, slots=1, kv_type=kv_type) == 256 * cell


@pytest.mark.parametrize("kv_type", ["q4_K", "i8", "", "f8"])
def test_types_that_no_cache_has(kv_type: str) -> None:
    with pytest.raises(BadRequest, match="no KV cache") as caught:
        kv_bytes(SHAPE, context=256, slots=1, kv_type=kv_type)
    assert caught.value.param == "kv_type"


@pytest.mark.parametrize(("context", "cells"), [(0, 256), (1, 256), (256, 256), (257, 512), (100_000, 100_096)])
def test_cells_come_in_steps(context: int, cells: int) -> None:
    assert kv_bytes(SHAPE, context=context, slots=1, kv_type="f16") == cells * 3072
    assert kv_bytes(SHAPE, context=context, slots=3, kv_type="f16") == 3 * cells * 3072


@pytest.mark.parametrize(
    ("context", "slots", "unified", "micro_batch", "cells"),
    [
        (512, 1, False, 512, 512),
        (4096, 1, False, 512, 1536),
        (4096, 1, False, 100, 1280),
        (4096, 4, False, 512, 4 * 1536),
        (4096, 4, True, 512, 4608),
        (512, 4, True, 512, 2048),
    ],
)
def test_windows(context: int, slots: int, unified: bool, micro_batch: int, cells: int) -> None:
    size = kv_bytes(WINDOWED, context=context, slots=slots, kv_type="f16", micro_batch=micro_batch, unified=unified)
    assert size == cells * CELL


def test_windows_of_mlx_hold_no_pass() -> None:
    mlx = msgspec.structs.replace(WINDOWED, format="mlx")
    assert kv_bytes(mlx, context=4096, slots=2, kv_type="f16") == 2 * 1024 * CELL
    assert kv_bytes(mlx, context=300, slots=1, kv_type="f16") == 512 * CELL


def test_states_do_not_depend_on_the_context() -> None:
    assert state_bytes(SHAPE, slots=0) == state_bytes(SHAPE, slots=1) == 1000
    assert state_bytes(SHAPE, slots=4) == 4000


@given(
    context=st.integers(1, 1 << 20),
    more=st.integers(0, 1 << 20),
    slots=st.integers(1, 16),
    kv_type=st.sampled_from(sorted(KV_TYPES)),
    unified=st.booleans(),
    window=st.integers(0, 1 << 16),
)
def test_a_longer_context_never_takes_less(
    context: int, more: int, slots: int, kv_type: str, unified: bool, window: int
) -> None:
    layers = (Layer(keys=256, values=128, window=window),)
    shape = msgspec.structs.replace(SHAPE, layers=layers)
    sizes = [
        kv_bytes(shape, context=tokens, slots=slots, kv_type=kv_type, unified=unified)
        for tokens in (context, context + more)
    ]
    assert 0 < sizes[0] <= sizes[1]
