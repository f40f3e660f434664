"""Machines and models made up for planning: round figures, so that a test can say what must happen."""

from localinfer.machine import Cpu, Device, Machine
from localinfer.models.shape import Layer, ModelShape

GIB = 2**30
MIB = 2**20


def cpu_only(ram_gib: float, *, bandwidth: float | None = 40e9) -> Machine:
    """A machine without a GPU; all its memory is free."""
    return machine(ram_gib, bandwidth=bandwidth)


def machine(ram_gib: float, *gpus: Device, bandwidth: float | None = 40e9, system: str = "linux") -> Machine:
    """A machine with ``gpus``, best first; all its memory is free."""
    ram = int(ram_gib * GIB)
    host = Device(
        id="cpu", name="A processor", kind="cpu", total_bytes=ram, free_bytes=ram, bandwidth=bandwidth, usable=True
    )
    return Machine(
        system=system,  # type: ignore[arg-type]
        cpu=Cpu(name="A processor", cores=8, features=("avx2",)),
        ram_total_bytes=ram,
        ram_available_bytes=ram,
        devices=(*gpus, host),
    )


def cuda(free_gib: float, *, index: int = 0, total_gib: float | None = None, usable: bool = True) -> Device:
    """An NVIDIA card."""
    return Device(
        id=f"CUDA{index}",
        name="A card",
        kind="gpu",
        total_bytes=int((total_gib or free_gib) * GIB),
        free_bytes=int(free_gib * GIB),
        bandwidth=300e9,
        compute_capability="8.6",
        usable=usable,
    )


def metal(recommended_gib: float) -> Device:
    """The GPU of a chip whose memory it shares."""
    size = int(recommended_gib * GIB)
    return Device(
        id="Metal",
        name="A chip",
        kind="gpu",
        total_bytes=size,
        free_bytes=size,
        bandwidth=120e9,
        shares_ram=True,
        usable=True,
    )


def dense(gib: float, *, layers: int = 32, context: int = 131_072, kv: int = 1024) -> ModelShape:
    """A dense model of ``gib`` GiB of blocks with grouped-query attention of ``kv`` elements."""
    each = int(gib * GIB) // layers
    return ModelShape(
        architecture="llama",
        format="gguf",
        parameters=int(gib * 1.8e9),
        context=context,
        vocabulary=32_000,
        embedding=4096,
        heads=32,
        layers=(Layer(keys=kv, values=kv, weights_bytes=each),) * layers,
        embedding_bytes=70 * MIB,
        output_bytes=100 * MIB,
    )


def experts(gib: float, *, layers: int = 32) -> ModelShape:
    """A mixture of experts: nine tenths of ``gib`` GiB are routed experts, 8 of 128 in use."""
    each = int(gib * GIB) // layers
    return ModelShape(
        architecture="qwen3moe",
        format="gguf",
        parameters=int(gib * 1.8e9),
        context=131_072,
        vocabulary=32_000,
        embedding=2048,
        heads=32,
        layers=(Layer(keys=512, values=512, weights_bytes=each, expert_bytes=each * 9 // 10),) * layers,
        embedding_bytes=70 * MIB,
        output_bytes=100 * MIB,
        experts=128,
        experts_used=8,
    )
