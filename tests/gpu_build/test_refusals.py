"""Machines for which nothing can be done yet: what is said, and what to install or update."""

import os
from collections.abc import Callable

import pytest

from localinfer.errors import BackendUnavailable
from localinfer.gpu_build.found import look
from localinfer.gpu_build.index import Wheel
from localinfer.gpu_build.plan import make
from localinfer.machine.cuda import Cuda, newest_cuda
from tests.gpu_build.conftest import Machine
from tests.gpu_build.machines import GTX_680, GTX_1050, RTX_3060, RTX_5090, VERSION, Nvml, Recorded
from tests.gpu_build.wheels import unreachable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these machines are shell scripts")

WSL = "5.15.153.1-microsoft-standard-WSL2"


def refused(here: Recorded, ask: Callable[..., Wheel | None] = unreachable) -> tuple[str, str]:
    with pytest.raises(BackendUnavailable) as caught:
        make(look(here), VERSION, ask)
    return caught.value.message, caught.value.hint


def test_no_card(machine: Machine) -> None:
    message, hint = refused(machine(Nvml()))
    assert "no NVIDIA card" in message
    assert "driver" in hint


def test_a_driver_that_does_not_answer(machine: Machine) -> None:
    message, hint = refused(machine(Nvml(RTX_3060, broken=True)))
    assert "does not answer" in message
    assert "Restart" in hint


def test_a_card_that_is_too_old(machine: Machine) -> None:
    message, _ = refused(machine(Nvml(GTX_680, driver="470.256.02", cuda=11040)))
    assert "GTX 680 has compute capability 3.0" in message


@pytest.mark.parametrize("told", [11040, None])
def test_a_driver_that_is_too_old(machine: Machine, told: int | None) -> None:
    message, hint = refused(machine(Nvml(RTX_3060, driver="470.256.02", cuda=told)))
    assert "470.256.02 is too old: it runs CUDA up to 11.4" in message
    assert "Update the driver" in hint
    assert "Nothing was changed" in hint


def test_a_driver_that_tells_nothing(machine: Machine) -> None:
    message, _ = refused(machine(Nvml(RTX_3060, driver="?", cuda=None)))
    assert "does not say" in message


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt", "sudo apt install nvidia-cuda-toolkit"),
        ("dnf", "sudo dnf install cuda-toolkit"),
        ("pacman", "sudo pacman -S cuda"),
        ("winget", "winget install Nvidia.CUDA"),
        ("", "https://developer.nvidia.com/cuda-downloads"),
    ],
)
def test_no_toolkit(machine: Machine, manager: str, command: str) -> None:
    here = machine(Nvml(RTX_3060))
    if manager:
        here.program(f"usr/bin/{manager}")
    message, hint = refused(here)
    assert "CUDA toolkit, which is not here" in message
    assert "cannot be reached" in message
    assert command in hint
    assert "11.8 to 12.x" in hint


@pytest.mark.parametrize(
    ("card", "told", "there", "wanted"),
    [(GTX_1050, 13000, "13.0", "11.8 to 12.x"), (RTX_5090, 13000, "12.4", "12.8 to 13.x")],
)
def test_a_toolkit_that_cannot_build_for_the_card(
    machine: Machine, card: tuple[str, Cuda], told: int, there: str, wanted: str
) -> None:
    here = machine(Nvml(card, cuda=told))
    here.toolkit("usr", there)
    message, hint = refused(here)
    assert f"({there}) cannot build for {card[0]}" in message
    assert wanted in hint


def test_in_wsl_the_driver_stays_that_of_windows(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060), kernel=WSL)
    here.program("usr/bin/apt")
    _, hint = refused(here)
    assert "WSL-Ubuntu" in hint
    assert "no driver" in hint
    _, hint = refused(machine(Nvml(RTX_3060, driver="470.10", cuda=11040), kernel=WSL))
    assert "in Windows, not in WSL" in hint


def test_no_cublas(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060))
    here.program("usr/bin/apt")
    here.toolkit("usr/local/cuda-12.4", "12.4", cublas=False)
    message, hint = refused(here)
    assert "lacks cuBLAS" in message
    assert "sudo apt install libcublas-dev-12-4" in hint


@pytest.mark.parametrize("complete", [("opt/cuda",), ("usr/local/cuda",), ()])
def test_a_toolkit_behind_a_script_on_the_path_is_one_toolkit(machine: Machine, complete: tuple[str, ...]) -> None:
    here = machine(Nvml(RTX_3060))
    script = here.program("usr/bin/nvcc", "Cuda compilation tools, release 12.4, V12.4.131")
    for folder in ("opt/cuda", "usr/local/cuda"):
        here.toolkit(folder, "12.4", cublas=folder in complete)
    (kit,) = look(here).toolkits
    assert (kit.compiler, kit.on_path, kit.cublas) == (script, True, bool(complete))


def test_no_compiler(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060))
    here.program("usr/bin/apt")
    here.toolkit("usr", "12.4")
    message, hint = refused(here)
    assert "C++ compiler, which is not here" in message
    assert "sudo apt install g++." in hint


def test_a_compiler_that_is_too_new(machine: Machine) -> None:
    here = machine(Nvml(RTX_3060))
    here.program("usr/bin/dnf")
    here.toolkit("usr", "12.4")
    here.gcc(15)
    message, hint = refused(here)
    assert "GCC up to 13; here is 15" in message
    assert "gcc13-c++" in hint


# The driver's word


@pytest.mark.parametrize(
    ("driver", "told", "cuda"),
    [
        ("550.90.07", 12040, (12, 4)),
        ("550.90.07", 13020, (13, 2)),  # its own word counts
        ("550.90.07", None, (12, 4)),
        ("551.86", None, (12, 4)),
        ("535.183.01", None, (12, 2)),
        ("999.1", None, (13, 1)),
        ("340.108", None, None),
        ("?", None, None),
        ("?", 0, None),
    ],
)
def test_the_newest_cuda_of_a_driver(driver: str, told: int | None, cuda: Cuda | None) -> None:
    assert newest_cuda(driver, Nvml(RTX_3060, cuda=told)) == cuda


def test_a_driver_that_is_not_there_runs_no_cuda() -> None:
    assert newest_cuda("?", Nvml()) is None
