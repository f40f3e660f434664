"""The closed forms say what llama.cpp says, for every kind of memory a model can have.

KV cache and states to the byte; the buffers of a pass nearly. The library's answers are for the CPU; KV cache, states
and the widths of a pass are the same elsewhere.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from localinfer.models import gguf
from localinfer.models.compute_form import compute_bytes
from localinfer.models.memory_forms import kv_bytes, state_bytes
from localinfer.models.oracle import SizingChild
from localinfer.models.shape import ModelShape, from_gguf
from localinfer.models.sizes import SizeRequest, Sizes
from tests.architectures import ARCHITECTURES, write_header

MIB = 2**20
COMPUTE_ERROR_BYTES = 35 * MIB  # of the form, at 512 tokens a pass
TOTAL_ERROR_BYTES = 100 * MIB


class Case(NamedTuple):
    """How a model is loaded."""

    context: int
    kv_type: str = "f16"
    slots: int = 1
    micro_batch: int = 512
    outputs: int = 1
    unified: bool = False


CASES = [
    *(Case(*each) for each in product((4096, 32_768, 100_000), ("f16", "q8_0", "q4_0"), (1, 4))),
    Case(32_768, slots=4, unified=True),
    Case(8192, micro_batch=128, slots=2),
    Case(8192, outputs=64),
]
# The library takes real memory for states, which takes time: fewer cases for models that have large ones.
FEW = [
    Case(4096),
    Case(32_768, "q8_0", slots=4),
    Case(100_000, "q4_0"),
    Case(8192, micro_batch=128, slots=2),
    Case(8192, "q4_0", unified=True, slots=2, outputs=16),
]


class Asked(NamedTuple):
    """One model's shape and what the library says of it."""

    shape: ModelShape
    sizes: dict[Case, Sizes]


@pytest.fixture(scope="module")
def child() -> Iterator[SizingChild]:
    with SizingChild() as sizing:
        yield sizing


@pytest.fixture(scope="module", params=ARCHITECTURES)
def asked(request: pytest.FixtureRequest, child: SizingChild, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """All answers for one model, from one child."""
    path = write_header(tmp_path_factory.mktemp("headers"), request.param)
    shape = from_gguf([gguf.check(path)])
    cases = FEW if max(layer.state_bytes for layer in shape.layers) > MIB else CASES
    return Asked(shape, {case: child.measure(SizeRequest(paths=(str(path),), **case._asdict())) for case in cases})


def test_kv_cache_and_states_are_the_librarys_to_the_byte(asked: Asked) -> None:
    for case, sizes in asked.sizes.items():
        said = kv_bytes(
            asked.shape,
            context=case.context,
            slots=case.slots,
            kv_type=case.kv_type,
            micro_batch=case.micro_batch,
            unified=case.unified,
        )
        assert sizes.exact
        assert (said, state_bytes(asked.shape, slots=case.slots)) == (sizes.kv_bytes, sizes.state_bytes), case


def test_the_buffers_of_a_pass_are_nearly_the_librarys(asked: Asked) -> None:
    for case, sizes in asked.sizes.items():
        said = sum(device.compute_bytes for device in sizes.devices)
        assert abs(form(asked.shape, case) - said) < COMPUTE_ERROR_BYTES, case


def test_the_total_is_nearly_the_librarys(asked: Asked) -> None:
    for case, sizes in asked.sizes.items():
        (host,) = sizes.devices
        said = host.model_bytes + host.context_bytes + host.compute_bytes
        formed = asked.shape.weights_bytes + form(asked.shape, case) + sizes.kv_bytes + sizes.state_bytes
        assert abs(formed - said) < max(0.03 * said, TOTAL_ERROR_BYTES), case


def form(shape: ModelShape, case: Case) -> int:
    return compute_bytes(
        shape,
        context=case.context,
        slots=case.slots,
        micro_batch=case.micro_batch,
        outputs=case.outputs,
        unified=case.unified,
    )


def test_the_starters_buffers_are_nearly_the_librarys(child: SizingChild, starter_model: Path) -> None:
    shape = from_gguf([gguf.check(starter_model)])
    for case in CASES:
        sizes = child.measure(SizeRequest(paths=(str(starter_model),), **case._asdict()))
        said = sum(device.compute_bytes for device in sizes.devices)
        assert abs(form(shape, case) - said) < COMPUTE_ERROR_BYTES, case
