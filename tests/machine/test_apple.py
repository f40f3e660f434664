"""How much of its memory an Apple GPU may hold, and which variant of a chip it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.machine import Device, apple, look
from localinfer.machine.apple import working_set_bytes
from tests.machine.recorded import Recorded

GIB = 2**30


def gpu(sources: Recorded, *builds: str) -> Device:
    device, _ = look(sources, [sources.builds[build] for build in builds]).devices
    return device


def changed(name: str, old: str, new: str) -> Recorded:
    sources = Recorded(name)
    assert any(old in text for text in sources.commands.values())
    sources.commands = {words: text.replace(old, new) for words, text in sources.commands.items()}
    return sources


@pytest.mark.parametrize(
    ("memory_gib", "version", "megabytes"),
    [
        (8, "15.5", 5726.63),
        (16, "15.2", 11453.25),
        (32, "14.6", 22906.49),
        (64, "15.0", 51539.61),
        (16, "26.0", 12713.12),
        (24, "26.1", 19069.67),
        (32, "26.1", 26800.6),
        (64, "26.1", 55662.79),
        (128, "26.2", 115448.2),
    ],
)
def test_the_table_gives_what_was_observed(memory_gib: int, version: str, megabytes: float) -> None:
    assert working_set_bytes(memory_gib * GIB, version) / 1e6 == pytest.approx(megabytes, rel=0.005)


@given(st.integers(4, 600), st.sampled_from(["26.1", "15.5", "", None, "garbage", "-3"]))
def test_more_memory_never_gives_less(memory_gib: int, version: str | None) -> None:
    here, more = (working_set_bytes(size * GIB, version) for size in (memory_gib, memory_gib + 1))
    assert 0 < here < more <= 0.85 * (memory_gib + 1) * GIB


def test_an_unknown_version_is_taken_for_an_old_one() -> None:
    assert working_set_bytes(64 * GIB, None) == working_set_bytes(64 * GIB, "15.5") < working_set_bytes(64 * GIB, "26")


def test_what_metal_says_goes_before_the_limit_and_the_limit_before_the_table() -> None:
    limited = changed("m4-pro-24gb", "iogpu.wired_limit_mb: 0", "iogpu.wired_limit_mb: 20480")
    assert gpu(limited).total_bytes == gpu(limited).wired_limit_bytes == 20 * GIB
    assert gpu(limited, "metal").total_bytes == gpu(limited, "mlx").total_bytes == 19069665280
    free = Recorded("m4-pro-24gb")
    assert gpu(free).total_bytes == working_set_bytes(24 * GIB, "26.1")
    assert gpu(free).wired_limit_bytes is None


def test_what_other_programs_hold_is_not_free() -> None:
    device = gpu(Recorded("m1-8gb"), "metal")
    assert device.free_bytes == 3 * GIB
    assert device.total_bytes == 5726633984


@pytest.mark.parametrize(
    ("name", "cores", "bandwidth"),
    [("Apple M3 Max", "40", 400e9), ("Apple M3 Max", "30", 300e9), ("Apple M4 Max", "40", 546e9)],
)
def test_the_variant_of_a_chip_is_known_by_its_cores(name: str, cores: str, bandwidth: float) -> None:
    sources = changed("m3-max-64gb", "Apple M3 Max", name)
    sources.commands[" ".join(apple.PROFILER)] = f"      Total Number of Cores: {cores}\n"
    assert (gpu(sources).gpu_cores, gpu(sources).bandwidth) == (int(cores), bandwidth)


@pytest.mark.parametrize("answer", ["", "Total Number of Cores: many", "Total Number of Cores: 99999999999"])
def test_without_a_count_of_cores_the_slower_variant_is_assumed(answer: str) -> None:
    sources = Recorded("m3-max-64gb")
    sources.commands[" ".join(apple.PROFILER)] = answer
    assert (gpu(sources).gpu_cores, gpu(sources).bandwidth) == (None, 300e9)


def test_cores_are_asked_for_only_where_they_matter() -> None:
    class Counting(Recorded):
        asked = 0

        def run(self, *command: str) -> str:
            self.asked += command == apple.PROFILER
            return super().run(*command)

    for name, times in (("m4-pro-24gb", 0), ("m3-max-64gb", 1)):
        sources = Counting(name)
        look(sources)
        assert sources.asked == times


def test_an_intel_mac_has_no_apple_gpu() -> None:
    sources = changed("m1-8gb", "Apple M1", "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz")
    (cpu,) = look(sources).devices
    assert cpu.name == "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz"


def test_a_silent_kernel_leaves_a_processor() -> None:
    sources = Recorded("m1-8gb")
    sources.commands = {}
    here = look(sources)
    assert [device.id for device in here.devices] == ["cpu"]
    assert here.ram_total_bytes == 8 * GIB
