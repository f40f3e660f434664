"""Whatever the sources answer, a machine can be looked at and something chosen."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.machine import Build, BuildDevice, Machine, Sources, choose, look, sources
from tests.machine.recorded import NAMES, Nvml, Recorded

CALLS = (
    *("nvmlInit", "nvmlShutdown", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"),
    *("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetName", "nvmlDeviceGetMaxClockInfo"),
    *("nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMemoryBusWidth"),
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)
NASTY = [
    "",
    "\0",
    "\x1b]0;x\x07",
    "é" * 5000,
    "-1",
    "99999999999999999999999",
    "nan",
    "max",
    "a: b: c\n\n:\n",
    "\n" * 99,
]
nasty = st.one_of(st.sampled_from(NASTY), st.text(max_size=40))


def strings(value: object) -> list[str]:
    """Every text in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple | list):
        return [text for each in value for text in strings(each)]
    fields = getattr(value, "__struct_fields__", ())
    return [text for field in fields if field != "builds" for text in strings(getattr(value, field))]


def assert_sound(here: Machine) -> None:
    assert here.devices[-1].id == "cpu"
    assert here.cpu.name
    assert here.cpu.cores >= 1
    assert here.ram_available_bytes >= 0
    assert len({device.id for device in here.devices}) == len(here.devices)
    assert all(text.isprintable() for text in strings(here))
    assert choose(here).reason.isprintable()
    for device in here.devices:
        assert device.bandwidth is None or device.bandwidth > 0
        assert (device.total_bytes or 0) >= 0
        assert (device.free_bytes or 0) >= 0


@given(st.data())
def test_files_and_commands_that_hold_anything(data: st.DataObject) -> None:
    machine = Recorded(data.draw(st.sampled_from(NAMES)))
    for path in data.draw(st.lists(st.sampled_from(sorted(machine.files) or [""]), max_size=6)):
        machine.files[path] = data.draw(nasty)
    for command in machine.commands:
        if data.draw(st.booleans()):
            machine.commands[command] = data.draw(nasty)
    assert_sound(look(machine, list(machine.builds.values())[:1]))


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_GPU_IS_LOST, 9999])
@pytest.mark.parametrize("call", CALLS)
def test_a_driver_that_fails_at_any_call(call: str, code: int) -> None:
    machine = Recorded("two-gpus")
    machine.nvml.failing = {call: code}
    here = look(machine, [machine.builds["cpu"]])
    assert_sound(here)
    assert sum("NVIDIA" in device.name for device in here.devices) == 2
    assert here.problems
    machine.nvml.failing = dict.fromkeys(CALLS, code)
    assert_sound(look(machine, [machine.builds["cpu"]]))


@given(st.lists(st.tuples(nasty, nasty, st.integers(-1, 2**64), nasty), max_size=4))
def test_a_driver_that_tells_anything(cards: list[tuple[str, str, int, str]]) -> None:
    machine = Recorded("vm-cgroup-v2")
    odd = [
        SimpleNamespace(
            name=name,
            total_mib=max(0, size) % 2**20,
            reserved_mib=0,
            used_mib=0,
            capability=capability,
            memory_clock_mhz=size,
            bus_width=width,
            clock_reasons=size,
        )
        for name, capability, size, width in cards
    ]
    machine.nvml = Nvml(*odd, driver="\x1b[2J")
    here = look(machine, list(machine.builds.values()))
    assert_sound(here)
    assert len(here.devices) == len(cards) + 1


@given(st.lists(st.tuples(nasty, nasty, st.sampled_from(["GPU", "integrated GPU", "accelerator", "?"])), max_size=4))
def test_a_build_that_tells_anything(offers: list[tuple[str, str, str]]) -> None:
    machine = Recorded("rtx-4090")
    devices = tuple(
        BuildDevice(name=f"{index}{name}", description=text, kind=kind, free_bytes=index, total_bytes=index)
        for index, (name, text, kind) in enumerate(offers)
    )
    info = f"CUDA : ARCHS = {''.join(text for _, text, _ in offers)} |"
    assert_sound(look(machine, [Build(version="", system_info=info, gpu_offload=True, cores=1, devices=devices)]))


def test_nothing_to_read_and_nothing_to_run(tmp_path: Path) -> None:
    nowhere = Sources(tmp_path / "none")
    nowhere.nvml = Nvml(failing={"nvmlInit": pynvml.NVML_ERROR_LIBRARY_NOT_FOUND})
    for system in ("linux", "macos", "windows"):
        nowhere.system = system
        assert_sound(look(nowhere))


# The real sources


def test_this_machine_is_looked_at() -> None:
    assert_sound(look())


@pytest.mark.skipif(os.name == "nt", reason="special files are POSIX")
def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("link")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00 5")
    here = Sources(tmp_path)
    assert here.read("/folder") == here.read("/link") == here.read("/none") == here.read("/a\0b") == ""
    assert here.read("/bytes").endswith(" 5")
    assert here.entries("/bytes") == here.entries("/none") == []
    assert here.entries("/") == ["bytes", "folder", "link"]


def test_a_file_without_end_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_FILE_BYTES", 10)
    (tmp_path / "long").write_text("0123456789abc")
    assert Sources(tmp_path).read("/long") == "0123456789"


def test_commands_that_are_missing_fail_or_say_much() -> None:
    here = Sources()
    assert here.run("/nowhere/at all") == ""
    assert here.run(sys.executable, "-c", "print('told'); raise SystemExit(1)").split() == ["told"]
    assert here.run(sys.executable, "-c", "import os; os.write(1, b'\\xff')") == "\ufffd"
    assert here.run("a\0b") == ""


def test_a_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "COMMAND_TIMEOUT_S", 0.2)
    start = time.monotonic()
    assert Sources().run(sys.executable, "-c", "import time; time.sleep(60)") == ""
    assert time.monotonic() - start < 5
