"""``localinfer doctor``: the real command here, and machines simulated through what a build and a driver say."""

import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from localinfer import probing
from localinfer.cli.doctor import choice
from localinfer.machine import Build, BuildDevice, Machine, look, nvidia_gpus
from tests.cli.commands import run
from tests.machine.recorded import Recorded

doctor = import_module("localinfer.cli.doctor")  # the package also has a command of that name

GIB = 2**30
NAMES = [
    "versions",
    "processor",
    "memory",
    "build",
    "devices",
    "choice",
    "threads",
    "settings",
    "models",
    "logs",
    "state",
]

CPU = BuildDevice(name="CPU", description="A processor", kind="CPU", free_bytes=8 * GIB, total_bytes=8 * GIB)


def build(*devices: BuildDevice, gpu_offload: bool) -> Build:
    return Build(version="0.3.36", system_info="CPU : AVX = 1 |", gpu_offload=gpu_offload, cores=8, devices=devices)


# The choice


def recorded(name: str, build: str) -> Machine:
    sources = Recorded(name)
    return look(sources, [sources.builds[build]])


def test_a_machine_that_does_its_best_is_fine() -> None:
    finding = choice(recorded("rtx-3060", "cuda"))
    assert finding.state == "ok"
    assert finding.value == "llama.cpp with CUDA on the RTX 3060."
    assert finding.fix == finding.command == ""
    assert choice(recorded("vm-cgroup-v2", "cpu")).state == "ok"


def test_a_cpu_build_beside_a_card_is_bad_and_the_fix_is_a_command() -> None:
    finding = choice(recorded("rtx-4060-laptop", "cpu"))
    assert finding.state == "bad"
    assert "Models run on the CPU" in finding.value
    assert "RTX 4060 Laptop GPU" in finding.value
    assert finding.command == "localinfer setup-gpu"


def test_a_driver_that_does_not_answer_is_bad() -> None:
    finding = choice(recorded("driver-mismatch", "cpu"))
    assert finding.state == "bad"
    assert "The NVIDIA driver does not answer" in finding.value
    assert "Restart" in finding.fix
    assert finding.command == ""


# The probe


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
@pytest.mark.parametrize(
    ("action", "log", "words"),
    [
        ("signal 6", "ggml_cuda_init: failed\n", ("SIGABRT", "ggml_cuda_init: failed")),
        ("signal 9", "", ("SIGKILL",)),
        ("exit 1", "Traceback\nlocalinfer.errors.BackendUnavailable: libcudart.so.12 is missing\n", ("libcudart",)),
        ("bytes 04000000c1c1c1c1", "", ("cannot be used",)),
    ],
)
def test_a_probe_that_fails_is_a_bad_line_with_a_fix(
    action: str,
    log: str,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(probing, "PROBE", "tests.children")
    monkeypatch.setenv("CHILD", action)
    monkeypatch.setenv("CHILD_LOG", log)
    assert not doctor.doctor()
    report = capsys.readouterr().out
    (bad,) = re.findall(r"(?m)^BAD  (.*(?:\n .*)*)", report)
    assert bad.startswith("build")
    for word in words:
        assert word in bad
    assert "BackendUnavailable" not in bad
    (command,) = re.findall(r"(?m)^\S+ -m pip install .*", report)
    assert shlex.split(command)[0] == sys.executable
    assert "models" in report  # the rest is checked all the same


# The report


def test_the_command_here() -> None:
    done = run("doctor", COLUMNS="80")
    states = {name: state for state, name in re.findall(r"(?m)^(ok|BAD) +(\w+)", done.stdout)}
    assert [name for name in states if name != "power"] == NAMES
    bad = {name for name, state in states.items() if state == "BAD"}
    assert bad <= ({"choice"} if nvidia_gpus() else set())  # a card beside a build for the CPU
    assert done.returncode == bool(bad), done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "/" not in line and "\\" not in line)
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in done.stdout
    assert done.stderr == ""


def report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sources: Recorded, found: Build
) -> tuple[bool, str]:
    """Whether ``doctor`` finds all well on a recorded machine with that build, and what it prints."""
    monkeypatch.setattr(doctor, "probe", lambda: found)
    monkeypatch.setattr(doctor.machine, "look", lambda builds: look(sources, builds))
    monkeypatch.setenv("COLUMNS", "100")
    good = doctor.doctor()
    return good, capsys.readouterr().out


def test_a_laptop_on_battery_with_a_build_for_its_card(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = Recorded("rtx-4060-laptop")
    good, text = report(monkeypatch, capsys, sources, sources.builds["cuda"])
    assert good
    assert "ok   processor 13th Gen Intel(R) Core(TM) i7-13700H, 14 cores\n" in text
    assert "sse4_2 avx avx2" in text
    assert "ok   memory    11.0 GiB of 15.3 GiB free\n" in text
    assert "llama-cpp-python 0.3.36, with GPU offload" in text
    assert "CUDA: ARCHS=500,610,700,750,800,860,890 USE_GRAPHS PEER_MAX_BATCH_SIZE=128\n" in text
    devices = " ".join(text.partition("ok   devices ")[2].partition("ok   power")[0].split())
    assert devices.startswith(
        "CUDA0: NVIDIA GeForce RTX 4060 Laptop GPU, 7.6 GiB of 7.6 GiB free, 256 GB/s, compute capability 8.9, "
        "driver 560.35.03 GPU0: Intel GPU (8086:a7a0), not usable cpu:"
    )
    assert "ok   power     battery, battery at 83 %\n" in text
    assert "ok   choice    llama.cpp with CUDA on the RTX 4060 Laptop GPU" in text
    assert "up to 14" in text


def test_a_mac_with_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sources = Recorded("m3-max-64gb")
    sources.commands = {
        words: text.replace("wired_limit_mb: 0", "wired_limit_mb: 57344") for words, text in sources.commands.items()
    }
    good, text = report(monkeypatch, capsys, sources, sources.builds["metal"])
    assert good
    assert "400 GB/s (published), 40 GPU cores, limited to 56.0 GiB" in " ".join(text.split())


def test_what_is_bad_comes_with_the_command_on_a_line_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = Recorded("rtx-3060")
    good, text = report(monkeypatch, capsys, sources, sources.builds["cpu"])
    assert not good
    assert "BAD  choice    Models run on the CPU. This build of llama.cpp cannot use the RTX 3060.\n" in text
    assert "\nlocalinfer setup-gpu\n" in text


def test_names_of_devices_cannot_command_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = BuildDevice(name="Vulkan0\x1b[2J", description="a\x1b]0;title\x07b", kind="GPU", free_bytes=0, total_bytes=0)
    _, text = report(monkeypatch, capsys, Recorded("vm-cgroup-v2"), build(evil, CPU, gpu_offload=True))
    assert "Vulkan0[2J: a]0;titleb\n" in text
    assert "\x1b" not in text


def test_folders_and_settings_that_do_not_work(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "models").write_text("in the way")
    (home / "config.toml").write_text("treads = 4\n")
    done = run("doctor", LOCALINFER_HOME=str(home))
    assert done.returncode == 1
    assert re.findall(r"(?m)^BAD  (\w+)", done.stdout) == ["settings", "models"]
    assert "threads" in done.stdout
    assert "LOCALINFER_HOME" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_state_folder_that_cannot_be_used_and_named_folders_that_are_none(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "file"
    home.mkdir()
    file.touch()
    (home / "state").touch()
    done = run(
        "doctor", LOCALINFER_HOME=str(home), LOCALINFER_MODEL_FOLDERS=str(tmp_path / "gone"), HF_HUB_CACHE=str(file)
    )
    assert done.returncode == 1
    bad = re.findall(r"(?m)^BAD  (\w+)", done.stdout)
    assert [name for name in bad if name != "choice"] == ["folders", "folders", "state"], done.stdout
    text = " ".join(done.stdout.split())
    assert f"{file} is not a folder. → Set HF_HUB_CACHE" in text
    assert f"{tmp_path / 'gone'} is not there now" in text


def test_a_disk_that_is_full_is_bad(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    usage = doctor.shutil.disk_usage("/")._replace(free=900_000_000)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage)
    sources = Recorded("rtx-4060-laptop")
    good, text = report(monkeypatch, capsys, sources, sources.builds["cuda"])
    assert not good
    assert re.findall(r"(?m)^BAD  (\w+)", text) == ["models", "logs"]
    assert "Only 0.8 GiB are free" in text


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals are POSIX")
def test_what_is_bad_is_red_where_there_are_colours(tmp_path: Path) -> None:
    from tests.cli.terminal import Terminal

    (tmp_path / "models").write_text("in the way")
    screens = {}
    for colour, extra in (("yes", {"NO_COLOR": ""}), ("no", {}), ("dumb", {"NO_COLOR": "", "term": "dumb"})):
        with Terminal("doctor", LOCALINFER_HOME=str(tmp_path), **extra) as terminal:
            assert terminal.exit_code() == 1
            screens[colour] = terminal.screen
    assert "\x1b[1;31mBAD  models" in screens["yes"]
    assert "BAD  models" in screens["no"]
    assert "\x1b" not in screens["no"] + screens["dumb"]


@pytest.mark.skipif(os.name == "nt", reason="the C locale is POSIX")
def test_an_output_that_cannot_spell_it_all() -> None:
    done = run("doctor", PYTHONIOENCODING="ascii")
    assert "ok   versions  localinfer" in done.stdout
    assert "logs" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_fix_names_options_that_pip_has() -> None:
    command = shlex.split(doctor._install("--no-binary", "llama-cpp-python", "-C", "cmake.args=-DGGML_CUDA=on"))
    known = subprocess.run([*command[:4], "--help"], capture_output=True, text=True, check=True).stdout
    for option in [word for word in command[4:] if word.startswith("-")]:
        assert re.search(rf"(?m)^\s+.*{re.escape(option)}\b", known), option
