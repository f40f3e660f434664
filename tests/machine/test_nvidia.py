"""The NVIDIA cards as a simulated driver reports them."""

from types import SimpleNamespace

import pynvml
import pytest

from localinfer.errors import BackendUnavailable
from localinfer.machine import NvidiaGpu, nvidia_gpus
from tests.machine.recorded import MIB, Nvml


def card(
    name: str | bytes,
    total: int | None,
    free: int,
    capability: tuple[int, int] | None,
    *,
    clock: int | None = None,
    width: int | None = None,
    reserved: int = 0,
    reasons: int | None = 1,
) -> SimpleNamespace:
    """A card with ``total`` and ``free`` MiB; None is what it does not support."""
    return SimpleNamespace(
        name=name,
        total_mib=total,
        reserved_mib=reserved,
        used_mib=(total or 0) - reserved - free,
        capability=capability,
        memory_clock_mhz=clock,
        bus_width=width,
        clock_reasons=reasons,
    )


LAPTOP_4060 = card("NVIDIA GeForce RTX 4060 Laptop GPU", 8188, 7816, (8, 9), clock=8001, width=128)
RTX_3060 = card("NVIDIA GeForce RTX 3060", 12288, 11585, (8, 6), clock=7501, width=192, reserved=346)
GTX_1050_TI = card(b"GeForce GTX 1050 Ti", 4040, 3970, (6, 1), clock=3504)
UNIFIED = card("NVIDIA GB10", None, 0, None, reasons=None)
OLD = {"nvmlDeviceGetMemoryInfo_v2": pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}


@pytest.mark.parametrize(
    ("nvml", "expected"),
    [
        (
            Nvml(LAPTOP_4060),
            NvidiaGpu(
                name="NVIDIA GeForce RTX 4060 Laptop GPU",
                total_bytes=8188 * MIB,
                free_bytes=7816 * MIB,
                reserved_bytes=0,
                compute_capability="8.9",
                driver="550.90.07",
                bandwidth=256.032e9,
            ),
        ),
        (
            Nvml(RTX_3060, driver="535.183.01"),
            NvidiaGpu(
                name="NVIDIA GeForce RTX 3060",
                total_bytes=12288 * MIB,
                free_bytes=11585 * MIB,
                reserved_bytes=346 * MIB,
                compute_capability="8.6",
                driver="535.183.01",
                bandwidth=360.048e9,
            ),
        ),
        (  # an old driver answers in bytes, and does not know what it keeps for itself
            Nvml(GTX_1050_TI, driver=b"390.157", failing=OLD),
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
        ("nvmlDeviceGetMemoryInfo_v2", {"reserved_bytes": None}),
        ("nvmlDeviceGetMaxClockInfo", {"bandwidth": None}),
        ("nvmlDeviceGetMemoryBusWidth", {"bandwidth": None}),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", {}),
        ("nvmlDeviceGetCudaComputeCapability", {"compute_capability": "?"}),
        (
            "nvmlDeviceGetHandleByIndex",
            {
                **{"name": "NVIDIA GPU 0", "compute_capability": "?", "bandwidth": None},
                **{"total_bytes": None, "free_bytes": None, "reserved_bytes": None},
            },
        ),
        ("nvmlShutdown", {}),
    ],
)
def test_a_call_that_fails_costs_no_more_than_its_answer(call: str, lost: dict[str, object]) -> None:
    known = {
        "name": "NVIDIA GeForce RTX 3060",
        "total_bytes": 12288 * MIB,
        "free_bytes": 11585 * MIB,
        "reserved_bytes": 346 * MIB,
        "compute_capability": "8.6",
        "driver": "550.90.07",
        "bandwidth": 360.048e9,
    }
    (gpu,) = nvidia_gpus(Nvml(RTX_3060, failing={call: pynvml.NVML_ERROR_GPU_IS_LOST}))
    assert gpu == NvidiaGpu(**(known | lost))  # type: ignore[arg-type]


def test_this_machine_answers() -> None:
    assert all(gpu.name for gpu in nvidia_gpus())


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (pynvml.nvmlClocksThrottleReasonGpuIdle, ""),
        (pynvml.nvmlClocksThrottleReasonSwPowerCap, ""),  # so it is with every card that has work to do
        (pynvml.nvmlClocksThrottleReasonHwThermalSlowdown | pynvml.nvmlClocksThrottleReasonHwSlowdown, "is too hot"),
        (pynvml.nvmlClocksThrottleReasonSwThermalSlowdown, "is too hot"),
        (pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "gets too little power"),
        (pynvml.nvmlClocksThrottleReasonHwSlowdown, "is slowed down by its hardware"),
    ],
)
def test_what_slows_a_card_down_is_told(reasons: int, words: str) -> None:
    (gpu,) = nvidia_gpus(Nvml(card("NVIDIA GeForce RTX 3060", 12288, 12000, (8, 6), reasons=reasons)))
    assert gpu.throttled == words


@pytest.mark.parametrize(("clock", "width"), [(0, 192), (2**31, 2**31), (7501, 0)])
def test_a_bandwidth_that_cannot_be_is_not_told(clock: int, width: int) -> None:
    (gpu,) = nvidia_gpus(Nvml(card("NVIDIA GeForce RTX 3060", 12288, 12000, (8, 6), clock=clock, width=width)))
    assert gpu.bandwidth is None


def test_a_driver_that_tells_nonsense_costs_no_more_than_its_answer() -> None:
    odd = card("\x1b]0;x\x07" + "long " * 99, 12288, 12000, (8, 6))
    odd.capability, odd.memory_clock_mhz, odd.bus_width, odd.clock_reasons = "x", "fast", b"wide", "none"
    (gpu,) = nvidia_gpus(Nvml(odd, driver="550\x1b[2J\n"))
    assert gpu.name.isprintable()
    assert len(gpu.name) <= 120
    assert gpu.driver == "550[2J"
    assert (gpu.compute_capability, gpu.bandwidth, gpu.throttled) == ("?", None, "")
