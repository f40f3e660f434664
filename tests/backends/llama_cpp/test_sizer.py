"""The library's own sums: how they are read, and that its log says the same where they are missing."""

import ctypes
from pathlib import Path

import pytest

from backends.llama_cpp import breakdown, sizer
from backends.llama_cpp.native import ContextOptions, NativeContext, NativeModel
from backends.llama_cpp.sizer import Sizer
from localinfer.models.sizes import SizeRequest
from tests.architectures import write_header
from tests.tiny_models import write_tiny_model

ROUNDING_BYTES = 16 * 1024  # of a line that says 0.01 MiB


def test_a_loaded_model_takes_what_was_said_before(starter_model: Path) -> None:
    """What is allocated, not what was planned: the same sums of a real context."""
    request = SizeRequest(paths=(str(starter_model),), context=1024, slots=2, kv_type="q8_0")
    (said,) = Sizer().measure(request).devices
    model = NativeModel(str(starter_model), gpu_layers=0, device="cpu", progress=lambda _: None)
    options = ContextOptions(
        cells=2048, sequences=2, outputs=2, batch=2048, threads=1, kv_type="q8_0", unified=False, micro_batch=512
    )
    context = NativeContext(model, options)
    try:
        buffers = breakdown.breakdown(context.pointer)
        assert buffers is not None
        assert {buffer.device for buffer in buffers} == {"cpu"}
        assert sum(buffer.model_bytes for buffer in buffers) == said.model_bytes
        assert sum(buffer.context_bytes for buffer in buffers) == said.context_bytes
        assert context.kv_bytes == pytest.approx(said.context_bytes, abs=ROUNDING_BYTES)
        assert sum(buffer.compute_bytes for buffer in buffers) == said.compute_bytes - 2 * model.n_vocab * 4
    finally:
        context.close()
        model.close()


@pytest.mark.parametrize("name", ["llama-8b", "gemma3", "lfm2", "rwkv7"])
def test_the_log_says_nearly_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = SizeRequest(paths=(str(write_header(tmp_path, name)),), context=8192, slots=2)
    exact = Sizer().measure(request)
    monkeypatch.setattr(sizer, "breakdown", lambda _: None)
    logged = Sizer().measure(request)
    assert (exact.exact, logged.exact) == (True, False)
    assert (logged.layers, logged.gpu_layers) == (exact.layers, exact.gpu_layers)
    assert logged.kv_bytes == pytest.approx(exact.kv_bytes, abs=ROUNDING_BYTES)
    assert logged.state_bytes == pytest.approx(exact.state_bytes, abs=ROUNDING_BYTES)
    (host,), (said,) = logged.devices, exact.devices
    assert host.id == said.id
    assert host.model_bytes == pytest.approx(said.model_bytes, rel=0.001)
    assert host.context_bytes == pytest.approx(said.context_bytes, abs=2 * ROUNDING_BYTES)
    assert host.compute_bytes == pytest.approx(said.compute_bytes, abs=ROUNDING_BYTES)


def test_it_goes_from_one_model_to_another(tmp_path: Path) -> None:
    """The answers for the first are the same afterwards."""
    measure = Sizer().measure
    paths = [write_tiny_model(tmp_path, "llama"), write_tiny_model(tmp_path, "mamba")]
    requests = [SizeRequest(paths=(str(path),), context=512) for path in paths]
    first, second = map(measure, requests)
    assert (first.kv_bytes > 0, second.kv_bytes) == (True, 0)
    assert measure(requests[0]) == first


@pytest.mark.parametrize("layout", [breakdown._LIBSTDCPP, breakdown._LIBCPP], ids=["libstdc++", "libc++"])
def test_a_map_is_read_in_order(layout: breakdown._Layout) -> None:
    """A root with two children, laid out by hand."""
    nodes = [(ctypes.c_size_t * 8)() for _ in range(3)]
    for number, node in enumerate(nodes):
        for offset in range(4):
            node[layout.value + offset] = 10 * number + offset
    nodes[1][layout.left], nodes[1][layout.right] = ctypes.addressof(nodes[0]), ctypes.addressof(nodes[2])
    read = list(breakdown._entries(ctypes.addressof(nodes[1]), layout))
    assert read == [(0, 1, 2, 3), (10, 11, 12, 13), (20, 21, 22, 23)]
