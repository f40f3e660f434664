"""The processor by each system's own words, and the cores this process may use."""

import os

import pytest

from localinfer.machine import Cpu, Sources, available_cores, look, usable_cores
from localinfer.machine.cpu import FEATURES, cpu
from tests.machine.recorded import Recorded


def test_the_processor_here() -> None:
    here = cpu()
    assert here.name
    assert 1 <= here.cores <= (os.cpu_count() or 1)
    assert set(here.features) <= set(FEATURES)
    assert 1 <= available_cores() <= usable_cores()


@pytest.mark.parametrize(
    ("physical", "usable", "cores"), [(8, 16, 8), (8, 4, 4), (None, 6, 6), (1, 1, 1), (64, 2, 2), (0, 3, 3)]
)
def test_cores_are_physical_ones_this_process_may_run_on(physical: int | None, usable: int, cores: int) -> None:
    class Few(Recorded):
        def cores(self) -> tuple[int | None, int]:
            return physical, usable

    assert cpu(Few("rtx-4090")).cores == cores


@pytest.mark.parametrize(("quota", "cores"), [("50000 100000", 1), ("250000 100000", 2), ("max 100000", 16)])
def test_the_quota_of_a_container_counts(quota: str, cores: int) -> None:
    sources = Recorded("rtx-4090")
    sources.files["/proc/self/cgroup"] = "0::/\n"
    sources.files["/sys/fs/cgroup/cpu.max"] = quota
    assert cpu(sources).cores == cores


def test_a_board_with_an_arm_processor() -> None:
    sources = Recorded("rtx-3060")
    sources.files = {
        "/proc/cpuinfo": (
            "processor\t: 0\nBogoMIPS\t: 108.00\n"
            "Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop "
            "asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n\nRevision\t: c04170\n"
        ),
        "/sys/firmware/devicetree/base/model": "Raspberry Pi 5 Model B Rev 1.0\0",
    }
    assert cpu(sources) == Cpu(name="Raspberry Pi 5 Model B Rev 1.0", cores=6, features=("neon", "fp16", "dotprod"))


def test_windows_keeps_the_name_in_its_registry() -> None:
    class Windows(Sources):
        system = "windows"

        def run(self, *command: str) -> str:
            assert command[:2] == ("reg", "query")
            return (
                "\r\nHKEY_LOCAL_MACHINE\\HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0\r\n"
                "    ProcessorNameString    REG_SZ    AMD Ryzen 7 7735HS with Radeon Graphics         \r\n\r\n"
            )

        def processor_feature(self, number: int) -> bool:
            return number in (38, 39, 40)

    here = cpu(Windows())
    assert here.name == "AMD Ryzen 7 7735HS with Radeon Graphics"
    assert here.features == ("sse4_2", "avx", "avx2", "f16c", "fma", "bmi2")


def test_a_processor_without_a_name_has_one_all_the_same() -> None:
    sources = Recorded("rtx-3060")
    sources.files = {}
    here = look(sources)
    assert here.cpu.name
    assert here.cpu.features == ()
