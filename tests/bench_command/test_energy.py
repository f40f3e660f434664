"""Joules from recorded meters: counters that begin again, cards that do not count, and powermetrics' text."""

import sys
from types import SimpleNamespace

import pytest

from localinfer.bench.energy import Energy, Nvml, PowerMetrics, Rapl, integrated
from localinfer.machine import Sources
from tests.machine.recorded import Nvml as Driver

ZONES = "/sys/class/powercap"

POWERMETRICS = """\
Machine model: Mac14,2
*** Sampled system activity (Mon Nov 30 10:00:00 2026 +0000) (500.00ms elapsed) ***
CPU Power: 3000 mW
GPU Power: 900 mW
ANE Power: 100 mW
Combined Power (CPU + GPU + ANE): 4000 mW
*** Sampled system activity (Mon Nov 30 10:00:01 2026 +0000) (1000.00ms elapsed) ***
Combined Power (CPU + GPU + ANE): 6000 mW
"""


class Files(Sources):
    """A Linux machine of files alone."""

    system = "linux"

    def __init__(self, **zones: tuple[str, int]) -> None:
        super().__init__()
        self.nvml = Driver()
        self.files: dict[str, str] = {}
        for zone, (name, value) in zones.items():
            folder = f"{ZONES}/{zone.replace('_', ':').replace('rapl', 'intel-rapl')}"
            self.files |= {f"{folder}/name": f"{name}\n", f"{folder}/max_energy_range_uj": "1000000000"}
            self.files[f"{folder}/energy_uj"] = f"{value}\n"

    def entries(self, path: str) -> list[str]:
        return sorted({file.removeprefix(f"{path}/").split("/")[0] for file in self.files if file.startswith(path)})

    def read(self, path: str) -> str:
        return self.files.get(path, "")

    def count(self, zone: str, value: int) -> None:
        self.files[f"{ZONES}/{zone}/energy_uj"] = f"{value}\n"


def machine() -> Files:
    return Files(rapl_0=("package-0", 5_000_000), rapl_0_0=("core", 1), rapl_0_1=("dram", 0), rapl_1=("psys", 9))


def test_packages_and_their_memory_are_added() -> None:
    files = machine()
    meter = Rapl(files)
    assert meter.joules() == 0
    files.count("intel-rapl:0", 7_000_000)
    files.count("intel-rapl:0:1", 500_000)
    files.count("intel-rapl:0:0", 999_000_000)
    files.count("intel-rapl:1", 999_000_000)
    assert meter.joules() == pytest.approx(2.5)


def test_a_counter_that_begins_again() -> None:
    files = machine()
    meter = Rapl(files)
    files.count("intel-rapl:0", 999_000_000)
    assert meter.joules() == pytest.approx(994)
    files.count("intel-rapl:0", 1_000_000)
    assert meter.joules() == pytest.approx(996)


def test_what_cannot_be_read_is_not_told() -> None:
    files = machine()
    files.files = {path: "" if path.endswith("energy_uj") else text for path, text in files.files.items()}
    with Energy(files) as energy:
        assert energy.joules() is None
    files = machine()
    with Energy(files) as energy:
        assert energy.joules() == 0
        files.count("intel-rapl:0", 6_000_000)
        assert energy.joules() == pytest.approx(1)
        del files.files[f"{ZONES}/intel-rapl:0/energy_uj"]
        assert energy.joules() is None


def test_cards_that_count_and_cards_that_do_not() -> None:
    class Counting(Driver):
        def _DeviceGetTotalEnergyConsumption(self, card: SimpleNamespace) -> int:  # noqa: N802
            if card.millijoules is None:
                raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
            return int(card.millijoules)

    files = Files()
    files.nvml = Counting(SimpleNamespace(name="A", millijoules=1500), SimpleNamespace(name="B", millijoules=None))
    meter = Nvml(files)
    assert meter.joules() == pytest.approx(1.5)
    meter.close()
    files.nvml = Counting(SimpleNamespace(name="B", millijoules=None))
    assert Nvml(files).joules() is None
    files.nvml = Driver()
    assert Nvml(files).joules() is None


def test_powermetrics_is_power_times_time() -> None:
    assert list(integrated(iter(POWERMETRICS.splitlines()))) == pytest.approx([2.0, 8.0])
    assert list(integrated(iter(["Combined Power (CPU + GPU + ANE): 6000 mW"]))) == [0.0]


def test_powermetrics_runs_until_it_is_closed_and_leaves_nothing() -> None:
    program = f"import time; print({POWERMETRICS!r}, flush=True); time.sleep(600)"
    meter = PowerMetrics((sys.executable, "-c", program))
    while meter.joules() != pytest.approx(8.0):
        assert meter.joules() is not None
    meter.close()


def test_a_powermetrics_that_ends_or_is_not_there_tells_nothing() -> None:
    for command in ((sys.executable, "-c", "pass"), ("/no/such/program",)):
        meter = PowerMetrics(command)
        while meter.joules() is not None:
            pass
        meter.close()
