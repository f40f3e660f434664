"""``localinfer doctor``: the real command here, and machines simulated through what a build and a driver say."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from localinfer import machine
from localinfer.cli.doctor import offload, probe
from localinfer.errors import BackendUnavailable
from localinfer.machine import Build, BuildDevice, NvidiaGpu
from tests.cli.commands import run

doctor = import_module("localinfer.cli.doctor")  # the package also has a command of that name

GIB = 2**30
NAMES = ["versions", "build", "devices", "offload", "threads", "memory", "settings", "models", "logs"]

CPU = BuildDevice(name="CPU", description="A processor", kind="CPU", free_bytes=8 * GIB, total_bytes=8 * GIB)
CUDA = BuildDevice(
    name="CUDA0", description="NVIDIA GeForce RTX 3060", kind="GPU", free_bytes=11 * GIB, total_bytes=12 * GIB
)
INTEL = BuildDevice(
    name="Vulkan0", description="Intel UHD Graphics", kind="integrated GPU", free_bytes=2 * GIB, total_bytes=2 * GIB
)
METAL = BuildDevice(name="Metal", description="Apple M3", kind="GPU", free_bytes=16 * GIB, total_bytes=16 * GIB)


def build(*devices: BuildDevice, gpu_offload: bool) -> Build:
    return Build(version="0.3.36", system_info="CPU : AVX = 1 |", gpu_offload=gpu_offload, cores=8, devices=devices)


def card(name: str = "NVIDIA GeForce RTX 3060", capability: str = "8.6", total: int | None = 12 * GIB) -> NvidiaGpu:
    return NvidiaGpu(name=name, total_bytes=total, free_bytes=total, compute_capability=capability, driver="550.90.07")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A machine whose CUDA compiler is only where the test puts it."""
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(doctor, "_CUDA_FOLDERS", (str(tmp_path / "cuda"),))

    def install(folder: str) -> Path:
        compiler = tmp_path / folder / "nvcc"
        compiler.parent.mkdir(parents=True)
        compiler.write_text("#!/bin/sh\n")
        compiler.chmod(0o755)
        return compiler

    return install


# Offload


@pytest.mark.parametrize(
    ("devices", "cards", "names"),
    [
        ((CPU, CUDA), (card(),), "CUDA0"),
        ((CPU, CUDA), (card(), card("NVIDIA GeForce GTX 1050 Ti")), "CUDA0"),  # one card is enough
        ((INTEL, CPU), (), "Vulkan0"),
        ((METAL, CPU), (), "Metal"),
    ],
)
def test_a_build_that_uses_the_gpu(devices: tuple[BuildDevice, ...], cards: tuple[NvidiaGpu, ...], names: str) -> None:
    finding = offload(build(*devices, gpu_offload=True), cards)
    assert finding.state == "ok"
    assert names in finding.value
    assert finding.fix == finding.command == ""


@pytest.mark.parametrize("gpu_offload", [True, False])
def test_a_machine_without_a_gpu_is_fine(gpu_offload: bool) -> None:
    finding = offload(build(CPU, gpu_offload=gpu_offload), ())
    assert finding.state == "ok"
    assert "CPU" in finding.value


def test_a_cpu_build_beside_a_card_is_bad_and_the_fix_builds_for_it(tools: Callable[[str], Path]) -> None:
    tools("bin")
    finding = offload(build(CPU, gpu_offload=False), (card(),))
    assert finding.state == "bad"
    assert "NVIDIA GeForce RTX 3060 (12.0 GiB, compute capability 8.6, driver 550.90.07)" in finding.value
    assert "cannot use it" in finding.value
    assert "CUDA toolkit" in finding.fix
    assert "12" not in finding.fix
    words = shlex.split(finding.command)
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert words[-1].startswith("llama-cpp-python==")
    assert words[words.index("-C") + 1] == "cmake.args=-DGGML_CUDA=on"
    assert "--force-reinstall" in words
    assert "--no-deps" in words
    assert words[words.index("--no-binary") + 1] == "llama-cpp-python"


def test_the_fix_says_when_the_compiler_is_missing_or_not_on_the_path(tools: Callable[[str], Path]) -> None:
    missing = offload(build(CPU, gpu_offload=False), (card(),))
    assert "nvcc" in missing.fix
    assert "CMAKE_CUDA_COMPILER" not in missing.command
    compiler = tools("cuda/bin")
    hidden = offload(build(CPU, gpu_offload=False), (card(),))
    assert "nvcc" not in hidden.fix
    assert f"cmake.args=-DGGML_CUDA=on;-DCMAKE_CUDA_COMPILER={compiler}" in shlex.split(hidden.command)


@pytest.mark.parametrize(("capability", "old"), [("6.1", True), ("7.0", True), ("7.5", False), ("?", False)])
def test_an_old_card_needs_an_older_toolkit(capability: str, old: bool, tools: Callable[[str], Path]) -> None:
    finding = offload(build(CPU, gpu_offload=False), (card("NVIDIA GeForce GTX 1050 Ti", capability),))
    assert ("toolkit 12" in finding.fix) == old


def test_a_card_that_tells_little_is_named_all_the_same(tools: Callable[[str], Path]) -> None:
    finding = offload(build(CPU, gpu_offload=False), (card("NVIDIA GB10", "?", None),))
    assert "NVIDIA GB10 (compute capability ?, driver 550.90.07)" in finding.value


def test_a_build_for_another_gpu_than_the_card(tools: Callable[[str], Path]) -> None:
    finding = offload(build(INTEL, CPU, gpu_offload=True), (card(),))
    assert finding.state == "bad"
    assert "GGML_CUDA" in finding.command


def test_a_gpu_build_that_finds_no_device(tools: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    finding = offload(build(CPU, gpu_offload=True), (card(),))
    assert finding.state == "bad"
    assert "finds no device" in finding.value
    assert "driver" in finding.fix
    assert finding.command == ""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    finding = offload(build(CPU, gpu_offload=True), (card(),))
    assert "CUDA_VISIBLE_DEVICES is “-1”" in finding.fix


# The probe


def test_the_real_build_answers() -> None:
    found = probe()
    assert found.version
    assert found.cores > 0
    assert any(device.kind == "CPU" for device in found.devices)


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
    monkeypatch.setattr(doctor, "PROBE", "tests.children")
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


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_a_probe_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROBE", "tests.children")
    monkeypatch.setattr(doctor, "PROBE_TIMEOUT_S", 0.2)
    monkeypatch.setenv("CHILD", "echo")  # it waits for what never comes
    with pytest.raises(BackendUnavailable, match="did not answer"):
        probe()


# The report


def test_the_command_here() -> None:
    done = run("doctor", COLUMNS="80")
    states = {name: state for state, name in re.findall(r"(?m)^(ok|BAD) +(\w+)", done.stdout)}
    assert list(states) == NAMES
    bad = {name for name, state in states.items() if state == "BAD"}
    assert bad <= ({"offload"} if machine.nvidia_gpus() else set())  # a card beside a build for the CPU
    assert done.returncode == bool(bad), done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "/" not in line and "\\" not in line)
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in done.stdout
    assert done.stderr == ""


def report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: Build, *cards: NvidiaGpu) -> str:
    monkeypatch.setattr(doctor, "probe", lambda: found)
    monkeypatch.setattr(machine, "nvidia_gpus", lambda: cards)
    doctor.doctor()
    return capsys.readouterr().out


def test_a_gpu_build_is_shown_with_its_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Build(
        version="0.3.36",
        system_info="CUDA : ARCHS = 860 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 1 | AVX_VNNI = 0 |",
        gpu_offload=True,
        cores=12,
        devices=(CUDA, CPU),
    )
    text = report(monkeypatch, capsys, found, card())
    assert "llama-cpp-python 0.3.36, with GPU offload" in text
    assert "CUDA: ARCHS=860 USE_GRAPHS\n" in text
    assert "CPU: SSE3 AVX2 AVX_VNNI=0\n" in text
    assert "CUDA0: NVIDIA GeForce RTX 3060, 11.0 GiB of 12.0 GiB free\n" in text
    assert "up to 12" in text


def test_names_of_devices_cannot_command_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = BuildDevice(name="CUDA0", description="a\x1b]0;title\x07b", kind="GPU", free_bytes=0, total_bytes=0)
    assert "CUDA0: a]0;titleb\n" in report(monkeypatch, capsys, build(evil, gpu_offload=True))


def test_a_driver_that_does_not_answer_is_bad(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> tuple[NvidiaGpu, ...]:
        raise BackendUnavailable("The NVIDIA driver does not answer: mismatch.", "Restart the machine.")

    monkeypatch.setattr(doctor, "probe", lambda: build(CPU, gpu_offload=True))
    monkeypatch.setattr(machine, "nvidia_gpus", fail)
    assert not doctor.doctor()
    text = capsys.readouterr().out
    assert "BAD  offload   The NVIDIA driver does not answer: mismatch." in text
    assert "→ Restart the machine." in text


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
