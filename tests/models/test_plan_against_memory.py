"""What the library says before a load is what a worker really holds after it, on the CPU.

Resident memory is what the process has of its own and what it has of files (RssAnon + RssFile in Linux). The model's
file is mapped and counts once; weights that the CPU repacks count twice: in the file, and as a copy of its own.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from localinfer.models.oracle import SizingChild
from localinfer.models.sizes import SizeRequest, Sizes, outputs
from localinfer.types import GenerationRequest
from tests.engines import GREEDY, llama

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")

MB = 1_000_000
WORKER_BYTES = 68 * MB  # the interpreter, the libraries and the vocabulary: 57 to 70 measured
ERROR, ERROR_BYTES = 0.05, 60 * MB
PROMPT_TOKENS = 520  # more than one pass: its buffers are in use
# Run in a child, because llama.cpp aborts the process when memory or disk runs out.
QUANTISE = """
import ctypes, sys
import llama_cpp
params = llama_cpp.llama_model_quantize_default_params()
params.nthread, params.allow_requantize = 2, True
params.ftype = getattr(llama_cpp, "LLAMA_FTYPE_MOSTLY_" + sys.argv[3])
sys.exit(llama_cpp.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), ctypes.byref(params)))
"""


class Loaded(NamedTuple):
    """A worker after its first answer."""

    resident_bytes: int
    log: str


@pytest.mark.parametrize(
    ("context", "kv_type", "slots"),
    [(2048, "f16", 4), (8192, "f16", 1), (8192, "q8_0", 1), (32_768, "q4_0", 1)],
)
def test_the_starter(starter_model: Path, context: int, kv_type: str, slots: int) -> None:
    sizes = planned(starter_model, context=context, kv_type=kv_type, slots=slots)
    check(sizes, loaded(starter_model, context=context, kv_type=kv_type, slots=slots))


@pytest.mark.parametrize("quantisation", ["Q4_0", "Q2_K", "Q8_0"])  # x86 repacks the first two in part
def test_quantisations(starter_model: Path, tmp_path: Path, quantisation: str) -> None:
    path = tmp_path / f"{quantisation}.gguf"
    subprocess.run(
        [sys.executable, "-c", QUANTISE, str(starter_model), str(path), quantisation], check=True, capture_output=True
    )
    check(planned(path, context=4096), loaded(path, context=4096))


def planned(path: Path, *, slots: int = 1, **fields: object) -> Sizes:
    request = SizeRequest(paths=(str(path),), slots=slots, outputs=outputs(slots), **fields)  # type: ignore[arg-type]
    with SizingChild() as child:
        return child.measure(request)


def loaded(path: Path, **options: object) -> Loaded:
    with llama(path, cache_tokens=0, **options) as engine:
        tokens = tuple(range(100, 100 + PROMPT_TOKENS))
        list(engine.submit(GenerationRequest(token_ids=tokens, sampling=GREEDY, max_tokens=1, ignore_eos=True)))
        pid = engine.status().pid
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
        resident = sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
        (log,) = Path(engine._log_dir).glob("worker-*.log")
        return Loaded(resident, log.read_text("utf-8", "replace"))


def repacked_as_logged(log: str) -> int:
    """Bytes from lines such as ``load_tensors: CPU_REPACK model buffer size = 59.77 MiB``."""
    lines = [line for line in log.splitlines() if "CPU_REPACK model buffer size" in line]
    return sum(round(float(line.rpartition("=")[2].split()[0]) * 2**20) for line in lines)


def check(sizes: Sizes, worker: Loaded) -> None:
    assert repacked_as_logged(worker.log) == pytest.approx(sizes.repacked_bytes, abs=16 * 1024)
    (host,) = sizes.devices
    plan = host.model_bytes + sizes.repacked_bytes + host.context_bytes + host.compute_bytes + WORKER_BYTES
    assert abs(plan - worker.resident_bytes) < max(ERROR * worker.resident_bytes, ERROR_BYTES)
