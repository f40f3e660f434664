"""No plan promises a GPU more than it holds: synthesised models on recorded machines, judged by llama.cpp's figures.

The library here has no GPU: what it says of the KV cache, states and buffers is the same there, and the weights on a
GPU are those of the blocks and the head. What a real driver does beyond that is not shown by this.
"""

from collections.abc import Iterator

import pytest

from localinfer.machine import Machine, bandwidth, look
from localinfer.models import fit, gguf
from localinfer.models.oracle import SizingChild
from localinfer.models.plan import HOST, Ask
from localinfer.models.shape import ModelShape, from_gguf
from localinfer.models.sizes import SizeRequest, Sizes
from tests.architectures import ARCHITECTURES, write_header
from tests.machine.recorded import NAMES, Recorded

CONTEXT = 8192


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[ModelShape, Sizes]]]:
    """Of every model its shape, and what the library would take for it."""
    folder = tmp_path_factory.mktemp("headers")
    with SizingChild() as child:
        answers = {}
        for name in ARCHITECTURES:
            path = write_header(folder, name)
            request = SizeRequest(paths=(str(path),), context=CONTEXT, device=HOST, gpu_layers=0)
            answers[name] = (from_gguf([gguf.check(path)]), child.measure(request))
        yield answers


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Machine]:
    """Every recorded machine with each of its builds."""
    monkeypatch.setattr(bandwidth, "of_memory", lambda cpu, measure: 45e9)
    recorded: dict[str, Machine] = {}
    for name in NAMES:
        sources = Recorded(name)
        recorded |= {f"{name}, {build}": look(sources, [sources.builds[build]]) for build in sources.builds}
    return recorded


def test_no_false_full(asked: dict[str, tuple[ModelShape, Sizes]], machines: dict[str, Machine]) -> None:
    promised = 0
    for name, (shape, sizes) in asked.items():
        (host,) = sizes.devices
        on_gpu = shape.weights_bytes - shape.embedding_bytes + shape.head_bytes
        really = on_gpu + host.context_bytes + host.compute_bytes
        for where, machine in machines.items():
            plan = fit.plan(shape, machine, Ask(context=CONTEXT))
            if plan.verdict != "full":
                continue
            promised += 1
            free = sum(load.free_bytes for load in plan.devices if load.id != HOST)
            assert really <= free, f"{name} on {where}: {really / 2**30:.2f} GiB do not fit {free / 2**30:.2f}"
    assert promised > 50


def test_what_runs_on_the_cpu_has_the_memory(
    asked: dict[str, tuple[ModelShape, Sizes]], machines: dict[str, Machine]
) -> None:
    for name, (shape, sizes) in asked.items():
        (host,) = sizes.devices
        for where, machine in machines.items():
            plan = fit.plan(shape, machine, Ask(context=CONTEXT, device=HOST))
            if plan.verdict == "cpu" and plan.context == CONTEXT:
                really = host.model_bytes + host.context_bytes + host.compute_bytes
                assert really <= machine.ram_available_bytes, f"{name} on {where}"


def test_the_sums_are_near_the_librarys(
    asked: dict[str, tuple[ModelShape, Sizes]], machines: dict[str, Machine]
) -> None:
    roomy = machines["strix-halo-128gb, cpu"]
    for name, (shape, sizes) in asked.items():
        (host,) = sizes.devices
        plan = fit.plan(shape, roomy, Ask(context=CONTEXT, device=HOST))
        planned = sum(term.size_bytes for term in plan.terms if term.kind != "overhead")
        really = host.model_bytes + host.context_bytes + host.compute_bytes
        assert abs(planned - really) <= max(0.03 * really, 100 * 2**20), name
