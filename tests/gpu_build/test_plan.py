"""From a machine to a plan: every kind of machine and the exact command."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from localinfer.errors import DownloadFailed
from localinfer.gpu_build.found import look
from localinfer.gpu_build.index import Wheel
from localinfer.gpu_build.plan import Plan, make, wheel_versions
from localinfer.machine.cuda import Cuda
from tests.gpu_build.conftest import Machine
from tests.gpu_build.machines import (
    GB10,
    GTX_680,
    GTX_970,
    GTX_1050,
    IVY_BRIDGE,
    RTX_3060,
    RTX_4060,
    RTX_4090,
    RTX_5090,
    VERSION,
    Nvml,
)
from tests.gpu_build.wheels import UPSTREAM, offering, unreachable, url

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these machines are shell scripts")

FOLDER = Path("/builds/new")
PIP = [
    *(sys.executable, "-P", "-m", "pip", "install", "--target", str(FOLDER)),
    *("--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-color"),
]
FROM_SOURCE = ["--no-binary", "llama-cpp-python", "--verbose", "llama-cpp-python==0.3.36"]


# Wheels


@pytest.mark.parametrize(
    ("cards", "driver", "told", "cuda"),
    [
        ([RTX_3060], "550.90.07", 12040, (12, 4)),
        ([RTX_4090], "580.95.05", 13000, (13, 0)),
        ([RTX_4090], "595.10.01", 13030, (13, 2)),  # newer than any wheel
        ([RTX_4060], "555.99", 12050, (12, 5)),  # Windows' numbers
        ([RTX_3060], "545.23.08", 12030, (12, 1)),  # none for exactly that
        ([GTX_1050], "580.95.05", 13000, (12, 5)),  # CUDA 13 has no code for it
        ([RTX_3060, GTX_1050], "580.95.05", 13000, (12, 5)),
        ([RTX_3060], "520.61.05", 11080, (11, 8)),
        ([RTX_5090], "580.95.05", 13000, (13, 0)),
        ([RTX_3060], "550.90.07", None, (12, 4)),  # by the version of the driver
        ([RTX_3060, GTX_680], "550.90.07", 12040, (12, 4)),  # one too old is left out
    ],
)
def test_the_newest_wheel_that_the_driver_runs_and_that_has_code_for_the_cards(
    machine: Machine, cards: list[tuple[str, Cuda]], driver: str, told: int | None, cuda: Cuda
) -> None:
    plan = make(look(machine(Nvml(*cards, driver=driver, cuda=told))), VERSION, UPSTREAM)
    assert (plan.kind, plan.cuda) == ("wheel", cuda)
    assert plan.requirements[0] == url(cuda)


def test_the_command_of_a_wheel_names_the_file_and_nvidias_libraries_and_no_index(machine: Machine) -> None:
    plan = make(look(machine(Nvml(RTX_3060))), VERSION, UPSTREAM)
    expected = [
        *PIP,
        *("--only-binary", ":all:", "--progress-bar", "raw"),
        url((12, 4)),
        *("nvidia-cuda-runtime-cu12>=12.0,<12.5", "nvidia-cublas-cu12>=12.0,<12.5"),
    ]
    assert list(plan.command(FOLDER)) == expected
    assert shlex.split(plan.shown(FOLDER)) == expected
    assert plan.environment == {}


@pytest.mark.parametrize(
    ("cuda", "libraries"),
    [
        ((11, 8), ("nvidia-cuda-runtime-cu11==11.8.*", "nvidia-cublas-cu11==11.11.*")),
        (
            (13, 2),
            ("nvidia-cuda-runtime>=13.0,<13.3", "nvidia-cublas>=13.0,<13.3", "nvidia-cuda-nvrtc>=13.0,<13.3"),
        ),
    ],
)
def test_every_cuda_has_its_own_libraries(machine: Machine, cuda: Cuda, libraries: tuple[str, ...]) -> None:
    plan = make(look(machine(Nvml(RTX_3060, cuda=13020))), VERSION, offering(cuda))
    assert plan.requirements == (url(cuda), *libraries)


def test_a_card_that_a_wheel_has_no_code_for_is_said_to_start_slowly(machine: Machine) -> None:
    plan = make(look(machine(Nvml(RTX_5090, RTX_3060, cuda=13000))), VERSION, UPSTREAM)
    assert "RTX 5090" in plan.reasons[0]
    assert "RTX 3060" not in plan.reasons[0]
    assert make(look(machine(Nvml(RTX_3060))), VERSION, UPSTREAM).reasons == ()


def test_only_versions_that_can_be_used_are_asked_for() -> None:
    assert wheel_versions((12, 2), [(8, 6)]) == ((12, 2), (12, 1), (12, 0), (11, 8))
    assert wheel_versions((13, 1), [(8, 6)])[:3] == ((13, 1), (13, 0), (12, 9))
    assert wheel_versions((13, 1), [(8, 6), (7, 0)])[0] == (12, 9)
    assert (11, 8) not in wheel_versions((13, 1), [(12, 0)])
    assert wheel_versions((11, 4), [(8, 6)]) == ()


# Source


def test_the_command_of_a_build_from_source(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060, GTX_1050, RTX_3060))
    here.toolkit("usr", "12.4")
    here.gcc(13)
    plan = make(look(here), VERSION, unreachable)
    assert plan.kind == "source"
    assert list(plan.command(FOLDER)) == [*PIP, *FROM_SOURCE]
    assert plan.environment == {
        "CMAKE_ARGS": "-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=61-real;86-real",
        "CMAKE_BUILD_PARALLEL_LEVEL": "8",
    }
    settings, level, *command = shlex.split(plan.shown(FOLDER))
    assert settings == f"CMAKE_ARGS={plan.environment['CMAKE_ARGS']}"
    assert level == "CMAKE_BUILD_PARALLEL_LEVEL=8"
    assert command == [*PIP, *FROM_SOURCE]
    assert "cannot be reached" in plan.reasons[0]
    assert 0 < plan.minutes[0] < plan.minutes[1]


def cmake(plan: Plan) -> list[str]:
    return shlex.split(plan.environment["CMAKE_ARGS"])


def test_a_compiler_that_is_not_on_the_path_is_named(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060))
    compiler = here.toolkit("usr/local/cuda-12.4", "12.4")
    here.gcc(13)
    assert f"-DCMAKE_CUDA_COMPILER={compiler}" in cmake(make(look(here), VERSION, unreachable))


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_a_toolkit_is_found_where_the_environment_says(machine: Machine, tmp_path: Path, variable: str) -> None:
    here = machine(Nvml(RTX_3060), environment={variable: str(tmp_path / "my tools/cuda")})
    compiler = here.toolkit("my tools/cuda", "12.2")
    here.gcc(12)
    assert f"-DCMAKE_CUDA_COMPILER={compiler}" in cmake(make(look(here), VERSION, unreachable))


@pytest.mark.parametrize(
    ("card", "told", "toolkits", "chosen"),
    [
        (RTX_3060, 12040, ["12.2", "12.4"], (12, 4)),
        (RTX_3060, 12040, ["12.2", "12.8"], (12, 2)),  # the driver knows it
        (RTX_3060, 12040, ["12.8", "13.0"], (12, 8)),  # the driver runs what is of its own major version
        (RTX_3060, 13000, ["12.4", "13.0"], (13, 0)),
        (GTX_1050, 13000, ["12.4", "13.0"], (12, 4)),  # CUDA 13 cannot build for it
        (RTX_5090, 13000, ["12.4", "12.9"], (12, 9)),  # CUDA before 12.8 cannot build for it
        (RTX_4090, 12040, ["11.7", "11.8"], (11, 8)),
    ],
)
def test_the_toolkit_that_builds_for_the_card_and_suits_the_driver(
    machine: Machine, card: tuple[str, Cuda], told: int, toolkits: list[str], chosen: Cuda
) -> None:
    here = machine(Nvml(card, cuda=told))
    for version in toolkits:
        here.toolkit(f"usr/local/cuda-{version}", version)
    here.gcc(11)
    plan = make(look(here), VERSION, unreachable)
    assert plan.cuda == chosen
    assert plan.toolkit is not None
    assert plan.toolkit.version == chosen


def test_an_older_gcc_beside_one_that_is_too_new(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060))
    here.toolkit("usr", "12.4")
    here.gcc(14)
    older = here.gcc(13, "g++-13")
    assert f"-DCMAKE_CUDA_HOST_COMPILER={older}" in cmake(make(look(here), VERSION, unreachable))


def test_what_the_person_has_set_for_builds_stays(machine: Machine) -> None:
    mine = {"CMAKE_ARGS": "-DGGML_CCACHE=off", "CMAKE_BUILD_PARALLEL_LEVEL": "3"}
    here = machine(Nvml(RTX_3060), environment=mine)
    here.toolkit("usr", "12.4")
    here.gcc(13)
    plan = make(look(here), VERSION, unreachable)
    assert cmake(plan)[:2] == ["-DGGML_CCACHE=off", "-DGGML_CUDA=on"]
    assert plan.environment["CMAKE_BUILD_PARALLEL_LEVEL"] == "3"


@pytest.mark.parametrize(("cores", "memory_gib", "jobs"), [(16, 64, 16), (16, 8, 3), (2, 64, 2), (8, 1, 1)])
def test_no_more_compilers_at_once_than_cores_and_memory_allow(
    machine: Machine, cores: int, memory_gib: int, jobs: int
) -> None:
    here = machine(Nvml(RTX_3060), cores=cores, memory_gib=memory_gib)
    here.toolkit("usr", "12.4")
    here.gcc(13)
    plan = make(look(here), VERSION, unreachable)
    assert plan.environment["CMAKE_BUILD_PARALLEL_LEVEL"] == str(jobs)


@pytest.mark.parametrize(
    ("nvml", "more", "ask", "word"),
    [
        (Nvml(RTX_3060), {"features": IVY_BRIDGE}, UPSTREAM, "AVX2, FMA, BMI2"),
        (Nvml(GTX_970), {}, UPSTREAM, "no code for NVIDIA GeForce GTX 970"),
        (Nvml(RTX_3060), {}, offering((13, 0)), "no prebuilt wheel of 0.3.36"),
        (Nvml(RTX_3060), {}, unreachable, "cannot be reached"),
    ],
    ids=["old processor", "old card", "none for that driver", "index down"],
)
def test_the_reason_for_building_is_said(
    machine: Machine, nvml: Nvml, more: dict[str, str], ask: Callable[..., Wheel | None], word: str
) -> None:
    here = machine(nvml, **more)
    here.toolkit("usr", "12.4")
    here.gcc(13)
    plan = make(look(here), VERSION, ask)
    assert plan.kind == "source"
    assert word in plan.reasons[0]


def test_an_index_that_answers_nonsense_is_a_reason_too(machine: Machine) -> None:
    def nonsense(_: Iterable[Cuda]) -> Wheel | None:
        raise DownloadFailed("The index of prebuilt wheels answered “500 oops”.")

    here = machine(Nvml(RTX_3060))
    here.toolkit("usr", "12.4")
    here.gcc(13)
    assert "500 oops" in make(look(here), VERSION, nonsense).reasons[0]


def test_a_build_from_source_can_be_asked_for(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060))
    here.toolkit("usr", "12.4")
    here.gcc(13)
    plan = make(look(here), VERSION, UPSTREAM, source=True)
    assert plan.kind == "source"
    assert "asked for" in plan.reasons[0]


def test_another_processor_than_x86_builds(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    here = machine(Nvml(GB10, driver="580.95.05", cuda=13000), features="asimd")
    here.toolkit("usr", "13.0")
    here.gcc(13)
    plan = make(look(here), VERSION, UPSTREAM)
    assert "arm64" in plan.reasons[0]
    assert cmake(plan) == ["-DGGML_CUDA=on"]  # CMake asks the card, which does not tell us
