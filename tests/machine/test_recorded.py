"""Every recorded machine: what it is said to have, what is chosen there, and the sentence that says why."""

from typing import NamedTuple

import pytest

from localinfer.machine import Device, Machine, choose, look
from tests.machine.recorded import MIB, NAMES, Recorded


def seen(name: str, *builds: str) -> Machine:
    sources = Recorded(name)
    return look(sources, [sources.builds[build] for build in builds])


def told(device: Device) -> str:
    """One line: id, name, kind, MiB in all and free, GB/s and their source, whether a build can use it."""
    sizes = (size // MIB if size is not None else "?" for size in (device.total_bytes, device.free_bytes))
    speed = f"{device.bandwidth / 1e9:.0f} {device.bandwidth_source}" if device.bandwidth else "?"
    memory = "{} {}{}".format(*sizes, " shared" if device.shares_ram else "")
    return f"{device.id} | {device.name} | {device.kind} | {memory} | {speed} | {'yes' if device.usable else 'no'}"


class Case(NamedTuple):
    """A machine with builds, its devices without the processor, what is chosen, and the sentence."""

    machine: str
    builds: tuple[str, ...]
    devices: tuple[str, ...]
    chosen: tuple[str, str]
    reason: str
    problems: int = 0


CPU = ("llama.cpp", "cpu")
SETUP = "; run localinfer setup-gpu."
CASES = (
    Case(
        "rtx-3060",
        ("cpu",),
        ("CUDA0 | NVIDIA GeForce RTX 3060 | gpu | 11942 11630 | 360 driver | no",),
        CPU,
        f"CPU: this build of llama.cpp cannot use the RTX 3060{SETUP}",
        1,
    ),
    Case(
        "rtx-3060",
        ("cuda",),
        ("CUDA0 | NVIDIA GeForce RTX 3060 | gpu | 11942 11630 | 360 driver | yes",),
        ("llama.cpp", "CUDA0"),
        "llama.cpp with CUDA on the RTX 3060.",
    ),
    Case(
        "rtx-3060",
        ("cuda after sleep",),
        ("CUDA0 | NVIDIA GeForce RTX 3060 | gpu | 11942 11630 | 360 driver | no",),
        CPU,
        "CPU: this build of llama.cpp can use the RTX 3060, but does not find it.",
        1,
    ),
    Case(
        "rtx-4090",
        ("cuda",),
        (
            "CUDA0 | NVIDIA GeForce RTX 4090 | gpu | 24143 23298 | 1008 driver | yes",
            "GPU1 | AMD Radeon Graphics | integrated | 32512 32429 shared | ? | no",
        ),
        ("llama.cpp", "CUDA0"),
        "llama.cpp with CUDA on the RTX 4090: it has memory of its own, unlike the integrated GPU.",
    ),
    Case(
        "rtx-4090",
        ("vulkan",),
        (
            "Vulkan1 | NVIDIA GeForce RTX 4090 | gpu | 24143 23298 | 1008 driver | yes",
            "Vulkan0 | AMD Radeon Graphics | integrated | 32512 32429 shared | ? | yes",
        ),
        ("llama.cpp", "Vulkan1"),
        "llama.cpp with Vulkan on the RTX 4090: it has memory of its own, unlike the integrated GPU.",
    ),
    Case(
        "rtx-4060-laptop",
        ("cpu",),
        (
            "CUDA0 | NVIDIA GeForce RTX 4060 Laptop GPU | gpu | 7816 7805 | 256 driver | no",
            "GPU0 | Intel GPU (8086:a7a0) | integrated | ? ? shared | ? | no",
        ),
        CPU,
        f"CPU: this build of llama.cpp cannot use the RTX 4060 Laptop GPU{SETUP}",
        1,
    ),
    Case(
        "rtx-4060-laptop",
        ("vulkan",),
        (
            "Vulkan1 | NVIDIA GeForce RTX 4060 Laptop GPU | gpu | 7816 7805 | 256 driver | yes",
            "Vulkan0 | Intel(R) Iris(R) Xe Graphics (RPL-P) | integrated | 11769 11769 shared | ? | yes",
        ),
        ("llama.cpp", "Vulkan1"),
        "llama.cpp with Vulkan on the RTX 4060 Laptop GPU: it has memory of its own, unlike the integrated GPU.",
    ),
    Case(
        "rtx-4060-laptop",
        ("vulkan, Intel alone",),
        (
            "CUDA0 | NVIDIA GeForce RTX 4060 Laptop GPU | gpu | 7816 7805 | 256 driver | no",
            "Vulkan0 | Intel(R) Iris(R) Xe Graphics (RPL-P) | integrated | 11769 11769 shared | ? | yes",
        ),
        ("llama.cpp", "Vulkan0"),
        "llama.cpp with Vulkan on the Intel(R) Iris(R) Xe Graphics (RPL-P): the RTX 4060 Laptop GPU cannot be used.",
        1,
    ),
    Case(
        "gtx-1050-ti",
        ("cuda 12",),
        ("CUDA0 | NVIDIA GeForce GTX 1050 Ti | gpu | 4040 3948 | 112 table | yes",),
        ("llama.cpp", "CUDA0"),
        "llama.cpp with CUDA on the GTX 1050 Ti.",
    ),
    Case(
        "gtx-1050-ti",
        ("cuda 13",),
        ("CUDA0 | NVIDIA GeForce GTX 1050 Ti | gpu | 4040 3948 | 112 table | no",),
        CPU,
        f"CPU: this build of llama.cpp has no code for the GTX 1050 Ti (compute capability 6.1){SETUP}",
        1,
    ),
    Case(
        "two-gpus",
        ("cpu",),
        (
            "CUDA1 | NVIDIA GeForce RTX 3090 | gpu | 24253 24249 | 936 driver | no",
            "CUDA0 | NVIDIA GeForce RTX 3060 | gpu | 11943 10653 | 360 driver | no",
        ),
        CPU,
        f"CPU: this build of llama.cpp cannot use the RTX 3090{SETUP}",
        2,
    ),
    Case(  # CUDA counts the fastest first, the driver by slot
        "two-gpus",
        ("cuda",),
        (
            "CUDA0 | NVIDIA GeForce RTX 3090 | gpu | 24253 24249 | 936 driver | yes",
            "CUDA1 | NVIDIA GeForce RTX 3060 | gpu | 11943 10653 | 360 driver | yes",
        ),
        ("llama.cpp", "CUDA0"),
        "llama.cpp with CUDA on the RTX 3090: the largest of 2 GPUs.",
    ),
    Case(
        "two-gpus",
        ("cuda, one hidden",),
        (
            "CUDA0 | NVIDIA GeForce RTX 3060 | gpu | 11943 10653 | 360 driver | yes",
            "CUDA1 | NVIDIA GeForce RTX 3090 | gpu | 24253 24249 | 936 driver | no",
        ),
        ("llama.cpp", "CUDA0"),
        "llama.cpp with CUDA on the RTX 3060: the other card cannot be used.",
        1,
    ),
    Case(
        "wsl2",
        ("cuda",),
        ("CUDA0 | NVIDIA GeForce RTX 3070 | gpu | 7978 6967 | 448 table | yes",),
        ("llama.cpp", "CUDA0"),
        "llama.cpp with CUDA on the RTX 3070.",
    ),
    Case(
        "m1-8gb",
        ("metal",),
        ("MTL0 | Apple M1 | gpu | 5461 3072 shared | 68 table | yes",),
        ("llama.cpp", "MTL0"),
        "llama.cpp with Metal on the Apple M1: there is no build of MLX.",
    ),
    Case(
        "m1-8gb",
        ("mlx", "metal"),
        ("MTL0 | Apple M1 | gpu | 5461 3072 shared | 68 table | yes",),
        ("mlx", "MTL0"),
        "MLX on the Apple M1: the engine made for Apple Silicon.",
    ),
    Case(
        "m4-pro-24gb",
        ("mlx",),
        ("Metal | Apple M4 Pro | gpu | 18186 14336 shared | 273 table | yes",),
        ("mlx", "Metal"),
        "MLX on the Apple M4 Pro: the engine made for Apple Silicon.",
    ),
    Case(
        "m3-max-64gb",
        ("mlx", "metal"),
        ("MTL0 | Apple M3 Max | gpu | 53084 49152 shared | 400 table | yes",),
        ("mlx", "MTL0"),
        "MLX on the Apple M3 Max: the engine made for Apple Silicon.",
    ),
    Case("vm-cgroup-v2", ("cpu",), (), CPU, "CPU: there is no GPU."),
    Case("vm-cgroup-v1", ("cpu",), (), CPU, "CPU: there is no GPU."),
    Case(
        "driver-mismatch",
        ("cuda",),
        ("GPU0 | NVIDIA GeForce RTX 3080 | gpu | ? ? | ? | no",),
        CPU,
        "CPU: the NVIDIA driver does not answer: RM has detected an NVML/RM version mismatch (error 18).",
        1,
    ),
    Case(
        "error-999-after-sleep",
        ("cuda",),
        (
            "GPU1 | NVIDIA GeForce RTX 4060 Laptop GPU | gpu | ? ? | ? | no",
            "GPU0 | Intel GPU (8086:a7a0) | integrated | ? ? shared | ? | no",
        ),
        CPU,
        "CPU: the NVIDIA driver does not answer: Unknown Error (error 999).",
        1,
    ),
    Case(
        "rx-7900-xtx",
        ("cpu",),
        (
            "GPU0 | AMD Radeon RX 7900 XTX | gpu | 24560 23432 | 960 table | no",
            "GPU1 | AMD Radeon Graphics | integrated | 32512 27105 shared | ? | no",
        ),
        CPU,
        "CPU: this build of llama.cpp cannot use the Radeon RX 7900 XTX.",
        1,
    ),
    Case(
        "rx-7900-xtx",
        ("vulkan",),
        (
            "Vulkan0 | AMD Radeon RX 7900 XTX | gpu | 24560 23432 | 960 table | yes",
            "Vulkan1 | AMD Radeon Graphics | integrated | 32512 27105 shared | ? | yes",
        ),
        ("llama.cpp", "Vulkan0"),
        "llama.cpp with Vulkan on the Radeon RX 7900 XTX: it has memory of its own, unlike the integrated GPU.",
    ),
    Case(
        "rx-7900-xtx",
        ("rocm",),
        (
            "ROCm0 | AMD Radeon RX 7900 XTX | gpu | 24560 23432 | 960 table | yes",
            "GPU1 | AMD Radeon Graphics | integrated | 32512 27105 shared | ? | no",
        ),
        ("llama.cpp", "ROCm0"),
        "llama.cpp with ROCm on the Radeon RX 7900 XTX: it has memory of its own, unlike the integrated GPU.",
    ),
    Case(
        "strix-halo-128gb",
        ("cpu",),
        ("GPU0 | AMD Radeon 8060S Graphics | integrated | 64512 64256 shared | 256 table | no",),
        CPU,
        "CPU: this build of llama.cpp does not use the integrated GPU.",
    ),
    Case(
        "strix-halo-128gb",
        ("vulkan",),
        ("Vulkan0 | AMD Radeon 8060S Graphics | integrated | 64512 64256 shared | 256 table | yes",),
        ("llama.cpp", "Vulkan0"),
        "llama.cpp with Vulkan on the Radeon 8060S Graphics.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[f"{case.machine}: {' + '.join(case.builds)}" for case in CASES])
def test_a_machine_is_told_and_used_as_it_is(case: Case) -> None:
    here = seen(case.machine, *case.builds)
    *cards, cpu = here.devices
    assert tuple(map(told, cards)) == case.devices
    assert (cpu.id, cpu.kind) == ("cpu", "cpu")
    choice = choose(here)
    assert (choice.backend, choice.device) == case.chosen
    assert choice.reason == case.reason
    assert len(here.problems) == case.problems


def test_every_machine_is_in_the_table() -> None:
    assert {case.machine for case in CASES} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_build_nothing_is_known_to_be_usable(name: str) -> None:
    here = look(Recorded(name))
    assert not any(device.usable for device in here.devices)
    assert choose(here).device == "cpu"
    assert not any("build" in problem.message for problem in here.problems)


@pytest.mark.parametrize(
    ("name", "system", "cpu", "cores", "features"),
    [
        ("rtx-4090", "linux", "AMD Ryzen 9 7950X 16-Core Processor", 16, "avx512_vbmi"),
        ("rtx-4060-laptop", "linux", "13th Gen Intel(R) Core(TM) i7-13700H", 14, "avx_vnni"),
        ("m1-8gb", "macos", "Apple M1", 8, "dotprod"),
        ("m4-pro-24gb", "macos", "Apple M4 Pro", 12, "sme"),
        ("vm-cgroup-v2", "linux", "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz", 2, "avx512_vnni"),
        ("vm-cgroup-v1", "linux", "AMD EPYC 7B12", 2, "avx2"),
    ],
)
def test_the_processor(name: str, system: str, cpu: str, cores: int, features: str) -> None:
    here = seen(name)
    assert here.system == system
    assert (here.cpu.name, here.cpu.cores) == (cpu, cores)
    assert features in here.cpu.features
    assert here.devices[-1].name == cpu


def test_features_are_those_of_the_processor_and_no_more() -> None:
    assert seen("m1-8gb").cpu.features == ("neon", "fp16", "dotprod")
    assert seen("rtx-3060").cpu.features == ("sse4_2", "avx", "avx2", "f16c", "fma", "bmi2")


@pytest.mark.parametrize(("name", "total", "available"), [("vm-cgroup-v2", 4096, 3796), ("vm-cgroup-v1", 2048, 1792)])
def test_memory_is_what_the_container_may_have(name: str, total: int, available: int) -> None:
    here = seen(name, "cpu")
    assert (here.ram_total_bytes // MIB, here.ram_available_bytes // MIB) == (total, available)
    assert (here.devices[-1].total_bytes, here.devices[-1].free_bytes) == (
        here.ram_total_bytes,
        here.ram_available_bytes,
    )
    assert here.devices[-1].usable


def test_only_wsl_is_wsl() -> None:
    assert {name for name in NAMES if seen(name).wsl} == {"wsl2"}
