"""Whether a build of llama.cpp really computes on the graphics card: shown by doing it, in a child that may die of it.

``python -m localinfer.gpu_build.proof`` is that child. Knows what a build says of itself and what a load measures.
"""

import threading
import time
import traceback
from pathlib import Path

from localinfer import builds, decoding
from localinfer.builds import LlamaBuild
from localinfer.errors import BackendUnavailable, LocalInferError
from localinfer.machine.values import Build
from localinfer.models.names import printable
from localinfer.process import Channel, Child, Death, claim_stdio
from localinfer.types import Fault, LoadOptions, ModelInfo, Sampling, Value

TIMEOUT_S = 900.0  # a driver that translates code for a card it is new to takes minutes, once
_MODULE = "localinfer.gpu_build.proof"
_CONTEXT = 256
_PROMPT = "Count up from one, in words: one, two, three,"
_TOKENS = 24
# What llama.cpp prints of the processor's features, and their names in ``Cpu.features``.
_FEATURES = {
    **{"AVX": "avx", "AVX2": "avx2", "F16C": "f16c", "FMA": "fma", "BMI2": "bmi2", "AVX_VNNI": "avx_vnni"},
    **{"AVX512": "avx512f", "AVX512_VBMI": "avx512_vbmi", "AVX512_VNNI": "avx512_vnni"},
    **{"AVX512_BF16": "avx512_bf16", "AMX_INT8": "amx_int8"},
}


class Order(Value, frozen=True):
    """What the child shall try: a build (None: the environment's), and a model file to run on it."""

    build: LlamaBuild | None = None
    model: str | None = None


class Run(Value, frozen=True):
    """What running the model gave: where it is, and tokens per second of ``tokens`` generated one by one."""

    info: ModelInfo
    tokens: int
    tps: float


class Report(Value, frozen=True):
    """One message of the child: what the build says of itself, then the run or why it failed."""

    build: Build | None = None
    run: Run | None = None
    fault: Fault | None = None


class Proof(Value, frozen=True):
    """A build that was proven: what it says of itself, the cards it computes on, and the run if there was a model."""

    build: Build
    gpus: tuple[str, ...]
    run: Run | None = None


def prove(
    build: LlamaBuild | None,
    model: Path | None,
    log: Path,
    *,
    features: tuple[str, ...] = (),
    timeout_s: float = TIMEOUT_S,
) -> Proof:
    """Try ``build``, and ``model`` on it if there is one. ``features`` are the processor's, where they are known.

    Raises ``BackendUnavailable`` when it does not compute on a graphics card, with the reason.
    """
    reports, death = _ask(Order(build=build, model=str(model) if model else None), log, timeout_s)
    told = next((report.build for report in reports if report.build), None)
    fault = next((report.fault for report in reports if report.fault), None)
    run = next((report.run for report in reports if report.run), None)
    where = f"Its output is in {log}."
    if told is not None:
        _judge(told, features, where)
    if fault is not None:
        raise BackendUnavailable(f"The build does not work: {fault.message}", f"{fault.hint} {where}".strip())
    if told is None or (model is not None and run is None):
        raise _died(death, where, timeout_s)
    return Proof(build=told, gpus=_gpus(told), run=run)


def _judge(told: Build, features: tuple[str, ...], where: str) -> None:
    claimed = {word for word, _, value in (part.partition(" = ") for part in _parts(told.system_info)) if value == "1"}
    if missing := sorted(word for word in claimed if features and _FEATURES.get(word, features[0]) not in features):
        message = f"The build is for processors with {', '.join(missing)}, which this one does not have."
        raise BackendUnavailable(message, f"Build it here: {builds.SETUP} --source")
    if not told.gpu_offload:
        raise BackendUnavailable("The build is one for the CPU only.", where)
    if not _gpus(told):
        raise BackendUnavailable("The build can use graphics cards and finds none.", where)


def _parts(system_info: str) -> list[str]:
    """llama.cpp's line "CPU : AVX = 1 | AVX2 = 1 | CUDA : ARCHS = 860 |" as "AVX = 1", "AVX2 = 1", ...

    Only what stands after "CPU :" is about the processor.
    """
    section, parts = "", []
    for part in system_info.split("|"):
        before, colon, after = part.partition(" : ")
        section = before.strip() if colon else section
        if section == "CPU":
            parts.append((after if colon else part).strip())
    return parts


def _gpus(build: Build) -> tuple[str, ...]:
    return tuple(
        f"{device.name} ({printable(device.description, 100)})" for device in build.devices if "GPU" in device.kind
    )


def _died(death: Death, where: str, timeout_s: float) -> BackendUnavailable:
    if death.exit_code == 0:
        return BackendUnavailable("The build stopped without an answer.", where)
    if "SIGILL" in death.cause or "0xc000001d" in death.cause:
        message = "The build uses instructions that this processor does not have (it was ended by SIGILL)."
        return BackendUnavailable(message, f"Build it here: {builds.SETUP} --source")
    last = f" Its last words: {death.log_tail[-1]}" if death.log_tail else ""
    return BackendUnavailable(f"The build does not work: {death.cause}.{last}", where)


def _ask(order: Order, log: Path, timeout_s: float) -> tuple[list[Report], Death]:
    """Everything the child says, and how it ended."""
    child: Child[Report] = Child(_MODULE, Report, log)
    late = threading.Event()

    def give_up() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(timeout_s, give_up)
    timer.start()
    try:
        child.send(order)
        reports = list(child.reports())
        death = child.death()
    finally:
        timer.cancel()
        child.kill()
    if late.is_set():
        message = f"The build did not answer within {timeout_s:,.0f} s."
        raise BackendUnavailable(message, f"A graphics driver may hang: restart the machine. Its output is in {log}.")
    return reports, death


# The child


def main() -> None:
    """Do what the first frame orders and report it."""
    channel = claim_stdio()
    order = channel.receive(decoding.msgpack(Order))
    if order is None:
        return
    try:
        _try(order, channel)
    except LocalInferError as error:
        channel.send(Report(fault=error.fault()))
    except Exception as error:
        traceback.print_exception(error)
        channel.send(Report(fault=BackendUnavailable(f"{type(error).__name__}: {error}").fault()))


def _try(order: Order, channel: Channel) -> None:
    if order.build is not None:
        builds.choose(order.build)  # before anything loads the library
    from backends.llama_cpp import probe

    channel.send(Report(build=probe.build()))
    if order.model is not None:
        channel.send(Report(run=run_model(order.model)))


def run_model(model: str, *, require_gpu: bool = True) -> Run:
    """Load the model as a worker would, and generate with it. Raises what keeps it from that."""
    import backends
    from backends.base import Finished, Refused, Sampled, SequenceJob

    options = LoadOptions(
        backend="llama.cpp", model=model, name=Path(model).stem, context=_CONTEXT, require_gpu=require_gpu
    )
    backend = backends.load(options, lambda _: None)
    tokens = backend.tokenizer.encode(_PROMPT, special=False)
    job = SequenceJob(id=1, tokens=tokens, sampling=Sampling(temperature=0), max_tokens=_TOKENS, ignore_eos=True)
    backend.submit(job)
    instants: list[float] = []
    while True:
        for event in backend.step():
            if isinstance(event, Sampled):
                instants += [time.perf_counter()] * len(event.tokens)
            if isinstance(event, Refused):
                raise event.error
            if isinstance(event, Finished):
                spent_s = instants[-1] - instants[0]
                tps = (len(instants) - 1) / spent_s if spent_s else 0.0
                return Run(info=backend.info, tokens=len(instants), tps=tps)


if __name__ == "__main__":
    main()
