"""The machine's pulse as recorded machines give it, and what a pulse costs on this one."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.machine import Device, GpuPulse, Power, Pulse, PulseReader, Sources, look
from localinfer.machine.apple import REGISTRY
from localinfer.machine.power import THERMAL
from localinfer.machine.pulse import LOAD_WINDOW_S, SLOW_EVERY_S
from tests.machine.recorded import MIB, NAMES, Nvml, Recorded
from tests.machine.test_hostile import nasty, strings
from tests.machine.test_nvidia import RTX_3060, card

REGISTRY_ENTRY = """+-o AGXAcceleratorG13G  <class AGXAcceleratorG13G, id 0x100000357, registered, matched, active>
    {
      "model" = "Apple M1"
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Alloc system memory"=1503363072,"Tiler \
Utilization %"=9,"recoveryCount"=0,"Renderer Utilization %"=36,"Device Utilization %"=37,"In use system \
memory"=438239232}
      "gpu-core-count" = 8
    }
"""


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Patient:
    """A recorded machine, its clock, and a reader of its pulse."""

    def __init__(self, name: str, files: Mapping[str, str] | None = None, devices: tuple[Device, ...] = ()) -> None:
        self.sources = Recorded(name)
        self.sources.files |= files or {}
        self.clock = Clock()
        self.reader = PulseReader(devices, self.sources, self.clock)

    def after(self, seconds: float) -> Pulse:
        self.clock.now_s += seconds
        return self.reader.take()


# Graphics cards


def test_an_nvidia_card_is_told_as_its_driver_tells_it() -> None:
    patient = Patient("rtx-3060")
    sensors = {"temperature": 71, "busy_percent": 98, "milliwatts": 169_500}
    patient.sources.nvml = Nvml(SimpleNamespace(**vars(RTX_3060) | sensors))
    (gpu,) = patient.after(0).gpus
    assert gpu == GpuPulse(
        id="CUDA0",
        name="NVIDIA GeForce RTX 3060",
        load=0.98,
        temperature_c=71,
        used_bytes=(12288 - 346 - 11585) * MIB,
        total_bytes=(12288 - 346) * MIB,
        power_w=169.5,
    )


def test_a_card_has_the_id_of_its_device() -> None:
    devices = (
        Device(id="CUDA0", name="NVIDIA GeForce RTX 3090", kind="gpu"),
        Device(id="CUDA1", name="NVIDIA GeForce RTX 3060", kind="gpu"),
        Device(id="cpu", name="AMD Ryzen 9 5950X", kind="cpu"),
    )
    patient = Patient("two-gpus", devices=devices)
    assert {gpu.name: gpu.id for gpu in patient.after(0).gpus} == {device.name: device.id for device in devices[:2]}
    twins = Patient("rtx-3060", devices=(devices[1], Device(id="CUDA7", name=devices[1].name, kind="gpu")))
    twins.sources.nvml = Nvml(RTX_3060, RTX_3060)
    assert [gpu.id for gpu in twins.after(0).gpus] == ["CUDA1", "CUDA7"]


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_those_of_the_machine(name: str) -> None:
    here = look(Recorded(name), tuple(Recorded(name).builds.values())[:1])
    ids = [gpu.id for gpu in Patient(name, devices=here.devices).after(0).gpus]
    assert set(ids) <= {device.id for device in here.devices}
    assert len(set(ids)) == len(ids)


def test_what_a_card_does_not_support_is_asked_once_and_what_fails_again() -> None:
    patient = Patient("rtx-3060")
    mute = card("NVIDIA GeForce RTX 3060", 12288, 11585, (8, 6), reasons=None)
    patient.sources.nvml = nvml = Nvml(mute, failing={"nvmlDeviceGetTemperature": pynvml.NVML_ERROR_GPU_IS_LOST})
    (first,), (second,) = patient.after(0).gpus, patient.after(1).gpus
    assert first == second
    assert (first.load, first.temperature_c, first.power_w) == (None, None, None)
    assert nvml.calls.count("nvmlDeviceGetPowerUsage") == nvml.calls.count("nvmlDeviceGetUtilizationRates") == 1
    assert nvml.calls.count("nvmlDeviceGetTemperature") == nvml.calls.count("nvmlDeviceGetMemoryInfo_v2") == 2
    assert nvml.calls.count("nvmlInit") == nvml.calls.count("nvmlDeviceGetHandleByIndex") == nvml.open == 1
    patient.reader.close()
    assert nvml.open == 0
    assert patient.after(1).gpus == (first,)


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName"])
def test_a_driver_that_does_not_answer_costs_its_figures(call: str) -> None:
    patient = Patient("rtx-3060")
    patient.sources.nvml = Nvml(RTX_3060, failing={call: pynvml.NVML_ERROR_UNKNOWN})
    pulse = patient.after(0)
    assert all(gpu.name for gpu in pulse.gpus)
    assert pulse.ram_total_bytes > 0


def test_an_amd_card_is_told_as_its_driver_tells_it() -> None:
    folder = "/sys/class/drm/card0/device"
    patient = Patient(
        "rx-7900-xtx",
        {
            f"{folder}/gpu_busy_percent": "87\n",
            f"{folder}/hwmon/hwmon3/temp1_input": "64000\n",
            f"{folder}/hwmon/hwmon3/power1_average": "287000000\n",
        },
    )
    gpu = patient.after(0).gpus[0]
    used, total = (int(patient.sources.files[f"{folder}/mem_info_vram_{what}"]) for what in ("used", "total"))
    assert (gpu.load, gpu.temperature_c, gpu.power_w) == (0.87, 64, 287)
    assert (gpu.used_bytes, gpu.total_bytes) == (used, total)
    assert gpu.name == look(Recorded("rx-7900-xtx")).devices[0].name
    del patient.sources.files[f"{folder}/gpu_busy_percent"]
    assert patient.after(1).gpus[0].load is None


def test_the_gpu_of_an_apple_chip_is_asked_now_and_then() -> None:
    patient = Patient("m1-8gb")
    patient.sources.commands[" ".join(REGISTRY)] = REGISTRY_ENTRY
    (gpu,) = patient.after(0).gpus
    assert (gpu.id, gpu.name, gpu.load, gpu.used_bytes) == ("Metal", "Apple M1", 0.37, 438239232)
    assert gpu.total_bytes
    patient.sources.commands[" ".join(REGISTRY)] = ""
    assert patient.after(1).gpus == (gpu,)
    (later,) = patient.after(SLOW_EVERY_S).gpus
    assert (later.load, later.used_bytes) == (None, None)


# The processor


@pytest.mark.parametrize(
    ("files", "celsius"),
    [
        ({}, None),
        ({"hwmon0/name": "coretemp", "hwmon0/temp1_input": "61000", "hwmon0/temp1_label": "Package id 0"}, 61),
        (
            {
                **{"hwmon0/name": "acpitz", "hwmon0/temp1_input": "99000"},
                **{"hwmon1/name": "coretemp", "hwmon1/temp2_input": "90000", "hwmon1/temp2_label": "Core 0"},
                **{"hwmon1/temp1_input": "70000", "hwmon1/temp1_label": "Package id 0"},
                **{"hwmon2/name": "coretemp", "hwmon2/temp1_input": "72000", "hwmon2/temp1_label": "Package id 1"},
            },
            72,
        ),
        (
            {
                **{"hwmon0/name": "k10temp", "hwmon0/temp1_input": "85000", "hwmon0/temp1_label": "Tctl"},
                **{"hwmon0/temp2_input": "58000", "hwmon0/temp2_label": "Tdie"},
            },
            58,
        ),
        ({"hwmon0/name": "k10temp", "hwmon0/temp1_input": "66500", "hwmon0/temp1_label": "Tctl"}, 66.5),
        ({"hwmon0/name": "zenpower", "hwmon0/temp1_input": "50000", "hwmon0/temp1_label": "Tdie"}, 50),
        ({"hwmon0/name": "cpu_thermal", "hwmon0/temp1_input": "48312"}, 48.312),
        ({"hwmon0/name": "nvme", "hwmon0/temp1_input": "40000"}, None),
        ({"hwmon0/name": "coretemp", "hwmon0/temp1_input": "-273000"}, None),
        ({"hwmon0/name": "coretemp", "hwmon0/temp1_input": "hot"}, None),
    ],
)
def test_the_processors_own_sensor_is_chosen(files: Mapping[str, str], celsius: float | None) -> None:
    patient = Patient("rtx-3060", {f"/sys/class/hwmon/{file}": f"{text}\n" for file, text in files.items()})
    assert patient.after(0).cpu_temperature_c == celsius


@pytest.mark.parametrize(
    ("kind", "celsius"), [("x86_pkg_temp", 55), ("cpu-thermal", 55), ("soc_thermal", 55), ("acpitz", None)]
)
def test_a_thermal_zone_stands_in(kind: str, celsius: float | None) -> None:
    zone = "/sys/class/thermal/thermal_zone3"
    patient = Patient("vm-cgroup-v2", {f"{zone}/type": f"{kind}\n", f"{zone}/temp": "55000\n"})
    assert patient.after(0).cpu_temperature_c == celsius


def test_heat_that_struck_since_the_last_look_is_told() -> None:
    cpus = "/sys/devices/system/cpu"
    files = {f"{cpus}/cpu{cpu}/thermal_throttle/package_throttle_count": "40" for cpu in range(4)}
    patient = Patient("rtx-3060", files | {f"{cpus}/cpu{cpu}/topology/physical_package_id": "0" for cpu in range(4)})
    assert patient.after(0).power.throttled == ""  # of the past
    patient.sources.files |= dict.fromkeys(files, "43")
    assert patient.after(SLOW_EVERY_S).power.throttled == "the processor is slowed down to stay cool"
    assert patient.after(SLOW_EVERY_S).power.throttled == ""


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("4800000", ""),
        ("4700000", ""),
        ("1400000", "the processor is limited to 1.4 of its 4.8 GHz"),
        ("", ""),
        ("0", ""),
    ],
)
def test_a_processor_that_may_not_run_fast_is_told(limit: str, words: str) -> None:
    policy = "/sys/devices/system/cpu/cpufreq/policy0"
    patient = Patient("rtx-3060", {f"{policy}/scaling_max_freq": limit, f"{policy}/cpuinfo_max_freq": "4800000"})
    assert patient.after(0).power.throttled == words


def test_a_card_or_a_mac_that_is_too_hot_is_told() -> None:
    patient = Patient("rtx-3060")
    patient.sources.nvml.cards[0].clock_reasons = 0x20
    assert patient.after(0).power.throttled == "the RTX 3060 is too hot"
    patient.sources.nvml.cards[0].clock_reasons = 1
    assert patient.after(0.1).power.throttled == ""
    mac = Patient("m1-8gb")
    mac.sources.commands[" ".join(THERMAL)] = "\tCPU_Speed_Limit \t= 62\n"
    assert mac.after(0).power.throttled == "the processor runs at 62 % of its speed to stay cool"


def test_battery_and_mains_are_told_now_and_then() -> None:
    patient = Patient("rtx-4060-laptop")
    assert patient.after(0).power == Power(source="battery", battery_percent=83)
    patient.sources.files["/sys/class/power_supply/BAT0/capacity"] = "82"
    assert patient.after(1).power.battery_percent == 83
    assert patient.after(SLOW_EVERY_S).power.battery_percent == 82


# Load and memory


def test_load_is_the_share_of_the_time_since_the_last_look() -> None:
    patient = Patient("rtx-3060")
    patient.sources.seconds = (1000.0, 9000.0)
    assert patient.after(0).cpu_load is None
    patient.sources.seconds = (1003.0, 9012.0)
    assert patient.after(1).cpu_load == 0.25
    patient.sources.seconds = (1003.1, 9012.2)
    assert patient.after(LOAD_WINDOW_S / 2).cpu_load == 0.25  # too soon to say
    patient.sources.seconds = (1015.0, 9024.0)
    assert patient.after(1).cpu_load == 1
    assert patient.after(1).cpu_load is None  # no time has passed for the kernel


def test_load_is_that_of_the_quota_where_there_is_one() -> None:
    files = {
        "/proc/self/cgroup": "0::/box\n",
        "/sys/fs/cgroup/box/cpu.max": "150000 100000\n",
        "/sys/fs/cgroup/box/cpu.stat": "usage_usec 5000000\nuser_usec 1\n",
    }
    patient = Patient("rtx-3060", files)
    patient.sources.seconds = (0.0, 1.0)
    assert patient.after(0).cpu_load is None
    patient.sources.files["/sys/fs/cgroup/box/cpu.stat"] = "usage_usec 6500000\n"
    assert patient.after(2).cpu_load == 0.5  # 1.5 s used of 2 × 1.5


def test_load_is_that_of_an_old_control_group_too() -> None:
    files = {
        "/proc/self/cgroup": "4:cpu,cpuacct:/box\n",
        "/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "200000",
        "/sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000",
        "/sys/fs/cgroup/cpuacct/box/cpuacct.usage": "1000000000",
    }
    patient = Patient("rtx-3060", files)
    assert patient.after(0).cpu_load is None
    patient.sources.files["/sys/fs/cgroup/cpuacct/box/cpuacct.usage"] = "1400000000"
    assert patient.after(1).cpu_load == pytest.approx(0.2)


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_what_this_process_may_have(name: str) -> None:
    here = look(Recorded(name))
    pulse = Patient(name).after(0)
    assert pulse.ram_total_bytes == here.ram_total_bytes
    assert pulse.ram_used_bytes == here.ram_total_bytes - here.ram_available_bytes
    assert pulse.at_s == 100


# Whatever is answered


@given(st.sampled_from(NAMES), st.data())
def test_nothing_raises_and_what_is_told_can_be(name: str, data: st.DataObject) -> None:
    added = [
        *(
            "/sys/class/hwmon/hwmon0/name",
            "/sys/class/hwmon/hwmon0/temp1_input",
            "/sys/class/thermal/thermal_zone0/type",
        ),
        *(
            "/sys/class/thermal/thermal_zone0/temp",
            "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count",
        ),
        *("/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "/sys/class/drm/card0/device/gpu_busy_percent"),
        *("/sys/class/drm/card0/device/hwmon/hwmon1/temp1_input", "/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu.max"),
    ]
    patient = Patient(name)
    for path in data.draw(st.lists(st.sampled_from([*patient.sources.files, *added]))):
        patient.sources.files[path] = data.draw(nasty)
    for command in [*patient.sources.commands, " ".join(REGISTRY)]:
        patient.sources.commands[command] = data.draw(nasty | st.just(REGISTRY_ENTRY))
    for sick in patient.sources.nvml.cards:
        for field in ("temperature", "busy_percent", "milliwatts", "clock_reasons", "name"):
            setattr(sick, field, data.draw(nasty | st.integers() | st.floats()))
    for _ in range(2):
        pulse = patient.after(SLOW_EVERY_S)
        assert all(text.isprintable() for text in strings(pulse))
        for load in (pulse.cpu_load, *(gpu.load for gpu in pulse.gpus)):
            assert load is None or 0 <= load <= 1
        assert 0 <= pulse.ram_used_bytes <= pulse.ram_total_bytes


# This machine


def test_this_machine_has_a_pulse_that_costs_little() -> None:
    reader = PulseReader()
    try:
        reader.take()
        costs = []
        for _ in range(20):
            start_s = time.perf_counter()
            reader.take()
            costs.append(time.perf_counter() - start_s)
    finally:
        reader.close()
    assert min(costs) < 0.003


def test_work_is_seen_as_load() -> None:
    reader = PulseReader()
    before = reader.take()
    busy_until_s = time.monotonic() + 2 * LOAD_WINDOW_S
    while time.monotonic() < busy_until_s:
        pass
    pulse = reader.take()
    reader.close()
    assert before.cpu_load is None
    if Sources().processor_seconds()[1]:  # a sandbox may keep its times to itself
        assert pulse.cpu_load is not None
        assert pulse.cpu_load > 0


def test_a_machine_without_files_has_a_pulse(tmp_path: Path) -> None:
    class Bare(Sources):
        nvml = Nvml(failing={"nvmlInit": pynvml.NVML_ERROR_LIBRARY_NOT_FOUND})

    pulse = PulseReader(sources=Bare(tmp_path)).take()
    assert (pulse.gpus, pulse.cpu_temperature_c, pulse.power.throttled) == ((), None, "")
