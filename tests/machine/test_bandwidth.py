"""Memory bandwidth: published figures by whole names, and a measure of this machine that is remembered."""

import json
from pathlib import Path

import pytest

from localinfer import settings
from localinfer.machine import Cpu, bandwidth, look

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "gib", "gigabytes"),
    [
        ("NVIDIA GeForce RTX 3060", 12, 360),
        ("NVIDIA GeForce RTX 3060", 8, None),
        ("NVIDIA GeForce RTX 3060 Ti", 8, 448),
        ("NVIDIA GeForce RTX 4060", 8, 272),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", 8, None),
        ("GeForce GTX 1050 Ti", 4, 112),
        ("Tesla T4", 15, 320),
        ("NVIDIA GB10", 0, 273),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", 24, 960),
        ("AMD Radeon RX 9070 XT", 16, 640),
        ("Radeon 8060S Graphics (RADV GFX1151)", 64, 256),
        ("Intel(R) Arc(TM) B580 Graphics", 12, 456),
        ("", 0, None),
    ],
)
def test_a_card_is_known_by_its_whole_name(name: str, gib: float, gigabytes: float | None) -> None:
    assert bandwidth.of_card(name, int(gib * GIB) or None) == (gigabytes and gigabytes * 1e9)


@pytest.mark.parametrize(
    ("name", "cores", "gigabytes"),
    [
        ("Apple M1", 8, 68),
        ("Apple M4 Pro", None, 273),
        ("Apple M3 Max", 40, 400),
        ("Apple M3 Max", 30, 300),
        ("Apple M4 Max", None, 410),
        ("Apple M3 Ultra", 80, 819),
        ("Apple M9 Giga", 99, None),
        ("Apple M1 (Virtual)", None, 68),
    ],
)
def test_a_chip_is_known_by_its_name_and_cores(name: str, cores: int | None, gigabytes: float | None) -> None:
    assert bandwidth.of_chip(name, cores) == (gigabytes and gigabytes * 1e9)


def test_memory_is_measured_when_asked_for_and_then_remembered() -> None:
    assert look().devices[-1].bandwidth is None
    measured = look(measure=True).devices[-1]
    assert measured.bandwidth_source == "measured"
    assert measured.bandwidth is not None
    assert 1e9 < measured.bandwidth < 1e13
    assert look().devices[-1].bandwidth == measured.bandwidth


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[1]", '{"A × 2": "fast"}', '{"A × 2": [-1]}', '{"A × 2": [0]}', '{"A × 2": 1e10}'),
        *('{"A × 2": [9e8]}', '{"A × 2": [1.1e13, 1e300]}'),
    ],
)
def test_a_file_that_makes_no_sense_is_measured_anew(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_read_speed", lambda threads: threads * 1e10)
    cpu = Cpu(name="A", cores=2)
    file = settings.state_dir() / "bandwidth.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert bandwidth.of_memory(cpu, measure=False) is None
    assert bandwidth.of_memory(cpu, measure=True) == 2e10
    assert bandwidth.of_memory(cpu, measure=False) == 2e10
    assert json.loads(file.read_bytes()) == {"A × 2": [2e10]}


def test_the_best_of_the_first_readings_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy reads slower; after a few readings it is known."""
    speeds = iter([1e10, 3e10, 2e10, 1e10, 9e10])
    monkeypatch.setattr(bandwidth, "_read_speed", lambda threads: next(speeds))
    cpu = Cpu(name="A", cores=2)
    assert [bandwidth.of_memory(cpu, measure=True) for _ in range(6)] == [1e10, *[3e10] * 5]


def test_each_processor_has_a_figure_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_read_speed", lambda threads: threads * 1e10)
    one, two = Cpu(name="A", cores=2), Cpu(name="A", cores=4)
    bandwidth.of_memory(one, measure=True)
    assert bandwidth.of_memory(two, measure=False) is None
    bandwidth.of_memory(two, measure=True)
    assert bandwidth.of_memory(one, measure=False) == 2e10


def test_a_folder_that_cannot_be_written_costs_the_memory_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "_read_speed", lambda threads: threads * 1e10)
    (home / "state").write_text("in the way")
    assert bandwidth.of_memory(Cpu(name="A", cores=2), measure=True) == 2e10
