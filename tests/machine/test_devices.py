"""Merging what drivers report with what builds can use: who is who, and what is no device at all."""

import pytest

from localinfer.machine import Build, BuildDevice, Device, choose, look
from localinfer.machine.devices import merge, problem, short
from tests.machine.recorded import Recorded

GIB = 2**30
CPU = BuildDevice(name="CPU", description="A processor", kind="CPU", free_bytes=GIB, total_bytes=GIB)


def offer(name: str, description: str, free_gib: float = 0, kind: str = "GPU") -> BuildDevice:
    size = int(free_gib * GIB)
    return BuildDevice(name=name, description=description, kind=kind, free_bytes=size, total_bytes=size)


def build(*devices: BuildDevice, info: str = "CPU : AVX = 1 |", offload: bool = True) -> Build:
    return Build(version="1", system_info=info, gpu_offload=offload, cores=4, devices=(*devices, CPU))


def card(index: int, name: str, free_gib: float | None, capability: str = "8.6") -> Device:
    size = None if free_gib is None else int(free_gib * GIB)
    return Device(
        id=f"CUDA{index}",
        name=name,
        kind="gpu",
        total_bytes=size and 24 * GIB,
        free_bytes=size,
        compute_capability=capability,
    )


TWINS = (card(0, "NVIDIA GeForce RTX 3090", 17), card(1, "NVIDIA GeForce RTX 3090", 23.5))


def test_twins_are_told_apart_by_their_free_memory() -> None:
    (used, other) = merge(TWINS, [build(offer("CUDA0", "NVIDIA GeForce RTX 3090", 23.2))])
    assert (used.id, used.usable, used.free_bytes) == ("CUDA0", True, TWINS[1].free_bytes)
    assert (other.usable, other.free_bytes) == (False, TWINS[0].free_bytes)
    assert other.id != used.id


def test_both_twins_are_used_where_the_build_sees_both() -> None:
    both = build(offer("CUDA0", "NVIDIA GeForce RTX 3090", 16.7), offer("CUDA1", "NVIDIA GeForce RTX 3090", 23.2))
    found = merge(TWINS, [both])
    assert {(device.id, device.free_bytes) for device in found} == {
        ("CUDA0", TWINS[0].free_bytes),
        ("CUDA1", TWINS[1].free_bytes),
    }


def test_a_card_that_two_ways_lead_to_is_one_device() -> None:
    name = "NVIDIA GeForce RTX 3090"
    (device,) = merge(TWINS[:1], [build(offer("Vulkan0", name, 17), offer("CUDA0", name, 17))])
    assert (device.id, device.usable) == ("CUDA0", True)


@pytest.mark.parametrize("longer", ["Ti", "SUPER", "Laptop GPU", "12GB"])
def test_a_longer_name_is_another_card(longer: str) -> None:
    (seen, told) = merge(
        [card(0, "NVIDIA GeForce RTX 4060", 7)], [build(offer("CUDA0", f"NVIDIA GeForce RTX 4060 {longer}", 7))]
    )
    assert (seen.name, seen.usable) == (f"NVIDIA GeForce RTX 4060 {longer}", True)
    assert (told.name, told.usable) == ("NVIDIA GeForce RTX 4060", False)


@pytest.mark.parametrize(
    "nothing",
    [
        offer("BLAS", "Accelerate", 0, "accelerator"),
        offer("Vulkan0", "llvmpipe (LLVM 15.0.7, 256 bits)", 30),
        offer("Vulkan0", "Microsoft Direct3D12 (NVIDIA GeForce RTX 3070)", 8),
        offer("RPC0", "a machine far away", 8, "other"),
    ],
)
def test_what_is_no_place_for_a_model_is_no_device(nothing: BuildDevice) -> None:
    assert merge([], [build(nothing)]) == ()


def test_a_device_that_no_driver_tells_of_is_as_the_build_says() -> None:
    (arc,) = merge([], [build(offer("SYCL0", "Intel(R) Arc(TM) B580 Graphics", 11.5))])
    assert arc == Device(
        id="SYCL0",
        name="Intel(R) Arc(TM) B580 Graphics",
        kind="gpu",
        total_bytes=int(11.5 * GIB),
        free_bytes=int(11.5 * GIB),
        bandwidth=456e9,
        bandwidth_source="table",
        usable=True,
    )


def test_memory_of_0_is_memory_that_is_not_known() -> None:
    (device,) = merge([], [build(offer("Vulkan0", "Some GPU"))])
    assert (device.total_bytes, device.free_bytes) == (None, None)


def test_a_card_that_shares_the_machines_memory_has_what_the_build_says() -> None:
    (device,) = merge([card(0, "NVIDIA GB10", None, "12.1")], [build(offer("CUDA0", "NVIDIA GB10", 110))])
    assert device.total_bytes == device.free_bytes == 110 * GIB


@pytest.mark.parametrize(
    ("archs", "usable"),
    [("860", True), ("750,800", True), ("890,900", False), ("", True), (",", True), ("1200,1210", False)],
)
def test_code_for_newer_cards_alone_is_of_no_use(archs: str, usable: bool) -> None:
    info = f"CUDA : ARCHS = {archs} | USE_GRAPHS = 1 |"
    found = merge(TWINS[:1], [build(offer("CUDA0", "NVIDIA GeForce RTX 3090", 17), info=info)])
    assert [device.usable for device in found] == [usable]


@pytest.mark.parametrize(
    ("name", "info", "offload", "others", "words"),
    [
        ("NVIDIA GeForce RTX 3090", "", False, (), "cannot use the RTX 3090"),
        ("NVIDIA GeForce RTX 3090", "Vulkan : |", True, (offer("Vulkan0", "Intel", 8),), "cannot use the RTX 3090"),
        ("NVIDIA GeForce RTX 3090", "CUDA : ARCHS = 860 |", True, (), "does not find it"),
        ("NVIDIA GeForce RTX 3090", "", True, (), "does not find it"),
        ("NVIDIA GeForce RTX 3090", "CUDA : ARCHS = 890 |", True, (), r"no code for the RTX 3090"),
        ("AMD Radeon RX 6800", "", False, (), "cannot use the Radeon RX 6800"),
        ("Apple M2", "", False, (), "cannot use the Apple M2"),
    ],
)
def test_why_a_card_is_not_used(
    name: str, info: str, offload: bool, others: tuple[BuildDevice, ...], words: str
) -> None:
    found = problem(card(0, name, 8), [build(*others, info=info, offload=offload)], None)
    assert words in found.message
    assert found.device == "CUDA0"
    assert (found.command == "localinfer setup-gpu") == ("NVIDIA" in name and "not find" not in words)
    assert found.hint


def test_names_as_people_say_them() -> None:
    names = ("NVIDIA GeForce RTX 4090", "GeForce GTX 1050 Ti", "NVIDIA GPU 0", "NVIDIA GB10", "AMD GPU (1002:744c)")
    assert [short(name) for name in names] == ["RTX 4090", "GTX 1050 Ti", "NVIDIA GPU 0", "GB10", "AMD GPU (1002:744c)"]


def test_a_card_without_a_driver_is_told_with_what_to_do() -> None:
    sources = Recorded("driver-mismatch")
    sources.nvml.failing = {"nvmlInit": 12}  # there is no such library
    del sources.files["/proc/driver/nvidia/gpus/0000:0a:00.0/information"]
    here = look(sources, [sources.builds["cpu"]])
    assert [device.name for device in here.devices[:-1]] == ["NVIDIA GPU (10de:2206)"]
    assert choose(here).reason == "CPU: there is no driver for the NVIDIA GPU (10de:2206)."
    assert "Install NVIDIA's driver" in choose(here).fix


def test_a_mute_driver_does_not_keep_a_build_from_its_card() -> None:
    sources = Recorded("driver-mismatch")
    found = build(offer("CUDA0", "NVIDIA GeForce RTX 3080", 9.5))
    here = look(sources, [found])
    assert [(device.id, device.usable, device.total_bytes) for device in here.devices[:-1]] == [
        ("CUDA0", True, int(9.5 * GIB))
    ]
    assert choose(here).device == "CUDA0"
    assert "does not answer" in here.problems[0].message
