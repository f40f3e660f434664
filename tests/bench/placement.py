"""One machine, one model: where it lies, plan against measurement, decode speed, and what a pass of n tokens costs.

    uv run python -m tests.bench.placement MODEL

Made for a machine with a GPU, and to be done within five minutes; it says the same of a CPU. Decode speed is compared
with llama-bench where LOCALINFER_NATIVE_TOOLS names it.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from backends.llama_cpp.native import ContextOptions, NativeContext, NativeModel
from localinfer import machine
from localinfer.advice import Advice, Entry
from localinfer.engine import WorkerEngine
from localinfer.models import gguf
from localinfer.models.plan import HOST, Ask, MemoryPlan
from localinfer.placing import place
from localinfer.types import LoadOptions
from tests.bench.clients import Job, generate
from tests.bench.native import llama_bench
from tests.bench.ours import Ours
from tests.bench.prompts import WARM_UP, token_ids

DEPTH, OUTPUT, CONTEXT = 256, 128, 4096
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
REPEATS = 7
MIB = 2**20


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("model", type=Path, help="a GGUF file")
    arguments.add_argument("--device", help="where to run; default: the best")
    given = arguments.parse_args()
    advice = Advice()
    print(f"chosen: {advice.choice.backend} on {advice.choice.device}: {advice.choice.reason}")
    for device in advice.machine.devices:
        bandwidth = f"{device.bandwidth / 1e9:.0f} GB/s ({device.bandwidth_source})" if device.bandwidth else "unknown"
        print(f"  {device.id}: {device.name}, {(device.free_bytes or 0) / MIB:,.0f} MiB free, bandwidth {bandwidth}")
    entry = Entry(
        name=given.model.stem,
        title=given.model.stem,
        quantization="",
        size_bytes=given.model.stat().st_size,
        origin="file",
        paths=(given.model,),
    )
    plan = advice.plan(entry, Ask(context=CONTEXT, device=given.device), exact=True)
    show(plan)
    loaded(given.model, given.device, advice, plan)
    curve(given.model, plan)


def show(plan: MemoryPlan) -> None:
    """The plan, term by term."""
    print(f"\nplan: {plan.verdict}, {plan.gpu_layers} layers on the GPU. {plan.sentence}")
    for term in plan.terms:
        print(f"  {term.device:8} {term.kind:10} {term.size_bytes / MIB:10,.1f} MiB  {term.source}")


def loaded(model: Path, device: str | None, advice: Advice, plan: MemoryPlan) -> None:
    """Load it for real: placement, memory and speed."""
    options = LoadOptions(backend="llama.cpp", model=str(model), name=model.stem, context=CONTEXT, device=device)
    placing = place(gguf.check_all([model]), options, advice)
    before = free_bytes(plan.device)
    with tempfile.TemporaryDirectory() as logs, WorkerEngine(placing.options, Path(logs)) as engine:
        side = Ours(engine, engine.load())
        generate(side, WARM_UP)
        held = psutil.Process(side.pid).memory_info().rss if plan.device == HOST else before - free_bytes(plan.device)
        planned = plan.bytes_on(plan.device)
        print(f"\nmeasured: {side.info.placement}")
        ratio = held / planned
        print(f"  memory on {plan.device}: {held / MIB:,.0f} MiB held, {planned / MIB:,.0f} planned, ratio {ratio:.3f}")
        speeds = [
            generate(side, Job(token_ids(DEPTH, f"decode {number}"), OUTPUT + 1)).decode_tps for number in range(3)
        ]
    speed = statistics.median(speeds)
    expected = plan.decode_tps
    print(f"  decode: {speed:.1f} tok/s" + (f", {expected.low:.0f}-{expected.high:.0f} expected" if expected else ""))
    if os.environ.get("LOCALINFER_NATIVE_TOOLS"):
        peer = llama_bench(model, output=OUTPUT, depth=DEPTH)
        print(f"  llama-bench: {peer:.1f} tok/s, ratio {speed / peer:.3f}")


def free_bytes(device: str) -> int:
    """What the driver says is free on a device now; memory is given back a moment after a process has ended."""
    found = next((one for one in machine.look(builds=()).devices if one.id == device), None)
    return (found.free_bytes or 0) if found else 0


def curve(model: Path, plan: MemoryPlan) -> None:
    """What a pass over n tokens with logits costs, relative to one."""
    native = NativeModel(
        str(model),
        gpu_layers=plan.gpu_layers if plan.device != HOST else 0,
        device=plan.device,
        progress=lambda _: None,
    )
    options = ContextOptions(
        cells=CONTEXT,
        sequences=1,
        outputs=max(COUNTS),
        batch=512,
        threads=machine.available_cores(),
        kv_type="f16",
        unified=False,
    )
    context = NativeContext(native, options)
    tokens = np.asarray(token_ids(DEPTH + max(COUNTS) * (REPEATS + 1), "curve"), np.int32)
    context.batch.clear()
    context.batch.extend(0, 0, tokens[:DEPTH], wanted=range(DEPTH - 1, DEPTH))
    context.decode()
    costs = {}
    for count in COUNTS:
        seconds = []
        for _ in range(REPEATS):
            context.trim(0, DEPTH)
            context.batch.clear()
            for offset in range(count):
                context.batch.add(0, DEPTH + offset, int(tokens[DEPTH + offset]))
            begin = time.perf_counter()
            context.decode()
            context.logits(count - 1)[0]  # waits for the device
            seconds.append(time.perf_counter() - begin)
        costs[count] = statistics.median(seconds)
    print("\ncost of a pass over n tokens, relative to one:")
    print("  n     " + "".join(f"{count:>7}" for count in COUNTS))
    print("  cost  " + "".join(f"{costs[count] / costs[1]:>7.2f}" for count in COUNTS))
    print(f"  one takes {costs[1] * 1e3:.2f} ms")
    context.close()
    native.close()


if __name__ == "__main__":
    main()
