"""What the machine is said to be: NVIDIA cards through a simulated driver, memory through simulated cgroups."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from localinfer.errors import BackendUnavailable
from localinfer.machine import NvidiaGpu, available_memory_bytes, nvidia_gpus

MIB = 1024 * 1024


class Nvml:
    """The driver's library with ``cards``; each call named in ``failing`` answers with that NVML error instead."""

    NVMLError = pynvml.NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = pynvml.NVML_ERROR_DRIVER_NOT_LOADED

    def __init__(
        self, *cards: SimpleNamespace, driver: str | bytes = "550.90.07", failing: dict[str, int] | None = None
    ):
        self.cards = cards
        self.driver = driver
        self.failing = failing or {}
        self.open = 0

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            if name in self.failing:
                raise pynvml.NVMLError(self.failing[name])
            return getattr(self, f"_{name.removeprefix('nvml')}")(*arguments)

        return call

    def _Init(self) -> None:  # noqa: N802  the library's own names
        self.open += 1

    def _Shutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def _SystemGetDriverVersion(self) -> str | bytes:  # noqa: N802
        return self.driver

    def _DeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def _DeviceGetHandleByIndex(self, index: int) -> SimpleNamespace:  # noqa: N802
        return self.cards[index]

    def _DeviceGetMemoryInfo(self, card: SimpleNamespace | None) -> SimpleNamespace:  # noqa: N802
        return self._told(card, "memory")

    def _DeviceGetName(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return self._told(card, "name")

    def _DeviceGetCudaComputeCapability(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return self._told(card, "capability")

    def _told(self, card: SimpleNamespace | None, field: str) -> SimpleNamespace:
        if card is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        if getattr(card, field) is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        value: SimpleNamespace = getattr(card, field)
        return value


def card(name: str | bytes, total: int | None, free: int, capability: tuple[int, int] | None) -> SimpleNamespace:
    """A card with ``total`` and ``free`` MiB; None is what it does not support."""
    memory = None if total is None else SimpleNamespace(total=total * MIB, free=free * MIB, used=(total - free) * MIB)
    return SimpleNamespace(name=name, memory=memory, capability=capability)


LAPTOP_4060 = card("NVIDIA GeForce RTX 4060 Laptop GPU", 8188, 7816, (8, 9))
RTX_3060 = card("NVIDIA GeForce RTX 3060", 12288, 11911, (8, 6))
GTX_1050_TI = card(b"GeForce GTX 1050 Ti", 4040, 3970, (6, 1))
UNIFIED = card("NVIDIA GB10", None, 0, None)


@pytest.mark.parametrize(
    ("nvml", "expected"),
    [
        (
            Nvml(LAPTOP_4060),
            NvidiaGpu(
                name="NVIDIA GeForce RTX 4060 Laptop GPU",
                total_bytes=8188 * MIB,
                free_bytes=7816 * MIB,
                compute_capability="8.9",
                driver="550.90.07",
            ),
        ),
        (
            Nvml(RTX_3060, driver="535.183.01"),
            NvidiaGpu(
                name="NVIDIA GeForce RTX 3060",
                total_bytes=12288 * MIB,
                free_bytes=11911 * MIB,
                compute_capability="8.6",
                driver="535.183.01",
            ),
        ),
        (  # an old driver answers in bytes
            Nvml(GTX_1050_TI, driver=b"390.157"),
            NvidiaGpu(
                name="GeForce GTX 1050 Ti",
                total_bytes=4040 * MIB,
                free_bytes=3970 * MIB,
                compute_capability="6.1",
                driver="390.157",
            ),
        ),
        (  # a card that shares the machine's memory
            Nvml(UNIFIED, driver="580.95.05"),
            NvidiaGpu(
                name="NVIDIA GB10", total_bytes=None, free_bytes=None, compute_capability="?", driver="580.95.05"
            ),
        ),
    ],
    ids=["RTX 4060 laptop", "RTX 3060", "GTX 1050 Ti", "unified memory"],
)
def test_a_card_is_told_as_its_driver_tells_it(nvml: Nvml, expected: NvidiaGpu) -> None:
    assert nvidia_gpus(nvml) == (expected,)
    assert nvml.open == 0


def test_every_card_is_told_in_order() -> None:
    names = [gpu.name for gpu in nvidia_gpus(Nvml(RTX_3060, UNIFIED, RTX_3060))]
    assert names == ["NVIDIA GeForce RTX 3060", "NVIDIA GB10", "NVIDIA GeForce RTX 3060"]
    assert nvidia_gpus(Nvml()) == ()


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
def test_no_driver_means_no_card(code: int) -> None:
    nvml = Nvml(RTX_3060, failing={"nvmlInit": code})
    assert nvidia_gpus(nvml) == ()
    assert nvml.open == 0


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount"])
@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, pynvml.NVML_ERROR_UNKNOWN])
def test_a_driver_that_does_not_answer_is_an_error(call: str, code: int) -> None:
    nvml = Nvml(RTX_3060, failing={call: code})
    with pytest.raises(BackendUnavailable, match="does not answer") as caught:
        nvidia_gpus(nvml)
    assert "Restart" in caught.value.hint
    assert nvml.open == 0


@pytest.mark.parametrize(
    ("call", "lost"),
    [
        ("nvmlSystemGetDriverVersion", {"driver": "?"}),
        ("nvmlDeviceGetName", {"name": "NVIDIA GPU 0"}),
        ("nvmlDeviceGetMemoryInfo", {"total_bytes": None, "free_bytes": None}),
        ("nvmlDeviceGetCudaComputeCapability", {"compute_capability": "?"}),
        (
            "nvmlDeviceGetHandleByIndex",
            {"name": "NVIDIA GPU 0", "total_bytes": None, "free_bytes": None, "compute_capability": "?"},
        ),
        ("nvmlShutdown", {}),
    ],
)
def test_a_call_that_fails_costs_no_more_than_its_answer(call: str, lost: dict[str, object]) -> None:
    known = {
        "name": "NVIDIA GeForce RTX 3060",
        "total_bytes": 12288 * MIB,
        "free_bytes": 11911 * MIB,
        "compute_capability": "8.6",
        "driver": "550.90.07",
    }
    (gpu,) = nvidia_gpus(Nvml(RTX_3060, failing={call: pynvml.NVML_ERROR_GPU_IS_LOST}))
    assert gpu == NvidiaGpu(**(known | lost))  # type: ignore[arg-type]


def test_this_machine_answers() -> None:
    assert all(gpu.name for gpu in nvidia_gpus())


# Memory


@pytest.fixture
def cgroups(tmp_path: Path) -> Callable[..., Path]:
    """Write the files of a cgroup below ``tmp_path / "cgroup"``."""

    def write(folder: str, **files: object) -> Path:
        group = tmp_path / "cgroup" / folder
        group.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (group / name.replace("__", ".")).write_text(f"{content}\n")
        return tmp_path / "cgroup"

    return write


def available(root: Path, membership: str) -> int:
    file = root.parent / "membership"
    file.write_text(membership)
    return available_memory_bytes(root, file)


def test_memory_without_cgroups_is_the_machines(tmp_path: Path) -> None:
    free = available_memory_bytes(tmp_path / "none", tmp_path / "none either")
    assert 0 < free <= psutil.virtual_memory().total


def test_the_limit_of_a_container_counts(cgroups: Callable[..., Path]) -> None:
    root = cgroups("", memory__max=100 * MIB, memory__current=30 * MIB, memory__stat="anon 1\ninactive_file 0")
    assert available(root, "0::/\n") == 70 * MIB


def test_what_the_kernel_gives_back_is_free(cgroups: Callable[..., Path]) -> None:
    stat = f"anon 1\ninactive_file {20 * MIB}"
    root = cgroups("", memory__max=100 * MIB, memory__current=30 * MIB, memory__stat=stat)
    assert available(root, "0::/\n") == 90 * MIB


def test_the_tightest_limit_on_the_way_up_counts(cgroups: Callable[..., Path]) -> None:
    stat = {"memory__stat": "inactive_file 0"}
    cgroups("user/app/scope", memory__max="max", memory__current=10 * MIB, **stat)
    cgroups("user/app", memory__max=64 * MIB, memory__current=14 * MIB, **stat)
    cgroups("user", memory__max=60 * MIB, memory__current=30 * MIB, **stat)
    root = cgroups("other", memory__max=1, memory__current=0, **stat)
    assert available(root, "0::/user/app/scope\n") == 30 * MIB


def test_a_cgroup_over_its_limit_leaves_nothing(cgroups: Callable[..., Path]) -> None:
    root = cgroups("", memory__max=10 * MIB, memory__current=11 * MIB, memory__stat="inactive_file 0")
    assert available(root, "0::/\n") == 0


def test_cgroups_of_version_1(cgroups: Callable[..., Path]) -> None:
    root = cgroups(
        "memory/docker/box",
        memory__limit_in_bytes=50 * MIB,
        memory__usage_in_bytes=20 * MIB,
        memory__stat=f"inactive_file 1\ntotal_inactive_file {5 * MIB}",
    )
    assert available(root, "5:cpu,cpuacct:/x\n4:memory:/docker/box\n0::/\n") == 35 * MIB


def test_cgroup_files_that_make_no_sense_are_ignored(cgroups: Callable[..., Path]) -> None:
    root = cgroups("", memory__max="lots", memory__current="", memory__stat="what is this")
    assert available(root, "nonsense\n") > 0
