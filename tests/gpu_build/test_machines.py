"""Recorded machines: what each would install, as the whole command, or why it installs nothing."""

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from localinfer.errors import BackendUnavailable
from localinfer.gpu_build.found import look
from localinfer.gpu_build.index import Wheel
from localinfer.gpu_build.plan import make
from tests.gpu_build.conftest import Machine
from tests.gpu_build.machines import (
    GTX_1050,
    IVY_BRIDGE,
    RTX_3060,
    RTX_4060,
    RTX_4090,
    RTX_5090,
    VERSION,
    Nvml,
)
from tests.gpu_build.wheels import UPSTREAM, unreachable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these machines are shell scripts")

PIP = f"{shlex.quote(sys.executable)} -P -m pip install --target /b --no-deps --no-cache-dir " + (
    "--disable-pip-version-check --no-input --no-color "
)
WHEEL = PIP + "--only-binary :all: --progress-bar raw "
SOURCE = PIP + "--no-binary llama-cpp-python --verbose llama-cpp-python==0.3.36"
WSL = "5.15.153.1-microsoft-standard-WSL2"


def wheel(cuda: str, *libraries: str) -> str:
    quoted = " ".join(f"'{library}'" for library in libraries)
    return f"{WHEEL}https://wheels.example/cu{cuda}/llama.whl {quoted}"


def cuda_12(minor: int) -> str:
    ceiling = f">=12.0,<12.{minor + 1}"
    return wheel(f"12{minor}", f"nvidia-cuda-runtime-cu12{ceiling}", f"nvidia-cublas-cu12{ceiling}")


CUDA_13_0 = wheel("130", *(f"nvidia-{name}>=13.0,<13.1" for name in ("cuda-runtime", "cublas", "cuda-nvrtc")))


class Case(NamedTuple):
    """A machine with a driver, what is on it, and what is expected: a command, or words of an error."""

    nvml: Nvml
    expected: str
    more: dict[str, str] = {}  # noqa: RUF012  never changed
    toolkits: tuple[str, ...] = ()
    gcc: int | None = 13
    ask: Callable[..., Wheel | None] = UPSTREAM


def source(settings: str) -> str:
    return f"CMAKE_ARGS={settings} CMAKE_BUILD_PARALLEL_LEVEL=8 {SOURCE}"


CASES = {
    "RTX 3060": Case(Nvml(RTX_3060), cuda_12(4)),
    "RTX 4090": Case(Nvml(RTX_4090, driver="580.95.05", cuda=13000), CUDA_13_0),
    "RTX 4060 laptop": Case(Nvml(RTX_4060, driver="565.57.01", cuda=12070), cuda_12(5)),
    "GTX 1050 Ti, newest driver": Case(Nvml(GTX_1050, driver="580.95.05", cuda=13000), cuda_12(5)),
    "two different cards": Case(Nvml(RTX_4090, GTX_1050, driver="580.95.05", cuda=13000), cuda_12(5)),
    "WSL2": Case(Nvml(RTX_3060, driver="551.86"), cuda_12(4), {"kernel": WSL}),
    "two cards, no index": Case(
        Nvml(RTX_4090, GTX_1050),
        source("'-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=61-real;89-real'"),
        toolkits=("usr 12.4",),
        ask=unreachable,
    ),
    "WSL2, no index": Case(
        Nvml(RTX_3060, driver="551.86"),
        source("'-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=86-real'"),
        {"kernel": WSL},
        toolkits=("usr 12.4",),
        ask=unreachable,
    ),
    "old processor": Case(
        Nvml(RTX_3060),
        source("'-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=86-real'"),
        {"features": IVY_BRIDGE},
        toolkits=("usr 12.4",),
    ),
    "RTX 5090, two toolkits, no index": Case(
        Nvml(RTX_5090, driver="580.95.05", cuda=13000),
        source("'-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=120-real'"),
        toolkits=("usr 12.8", "opt/cuda 12.4"),
        ask=unreachable,
    ),
    "driver failing": Case(Nvml(RTX_3060, broken=True), "driver does not answer"),
    "no card": Case(Nvml(), "no NVIDIA card"),
    "driver too old": Case(Nvml(RTX_3060, driver="470.256.02", cuda=11040), "470.256.02 is too old"),
    "no toolkit": Case(Nvml(RTX_3060), "CUDA toolkit, which is not here", ask=unreachable),
    "no compiler": Case(
        Nvml(RTX_3060), "C++ compiler, which is not here", toolkits=("usr 12.4",), gcc=None, ask=unreachable
    ),
    "GTX 1050 Ti, toolkit too new": Case(
        Nvml(GTX_1050, driver="580.95.05", cuda=13000), "(13.0) cannot build", toolkits=("usr 13.0",), ask=unreachable
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_machine_gets_its_command_or_its_reason(machine: Machine, name: str) -> None:
    case = CASES[name]
    here = machine(case.nvml, **case.more)
    for toolkit in case.toolkits:
        here.toolkit(*toolkit.split())
    if case.gcc is not None:
        here.gcc(case.gcc)
    try:
        said = make(look(here), VERSION, case.ask).shown(Path("/b"))
    except BackendUnavailable as error:
        said = error.message
    if case.expected.startswith((PIP, "CMAKE_ARGS")):
        assert said == case.expected
    else:
        assert case.expected in said
