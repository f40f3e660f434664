"""Choosing by hand, and what a person is told when it cannot be."""

import pytest

from localinfer.errors import BackendUnavailable, BadRequest
from localinfer.machine import Machine, choose, look
from tests.machine.recorded import Recorded


def seen(name: str, *builds: str) -> Machine:
    sources = Recorded(name)
    return look(sources, [sources.builds[build] for build in builds])


@pytest.mark.parametrize(
    ("name", "build", "asked", "device", "reason"),
    [
        ("two-gpus", "cuda", "CUDA1", "CUDA1", "llama.cpp with CUDA on the RTX 3060, as asked for."),
        ("two-gpus", "cuda", "cuda1", "CUDA1", "llama.cpp with CUDA on the RTX 3060, as asked for."),
        ("two-gpus", "cuda", "CPU", "cpu", "llama.cpp on the CPU, as asked for."),
        ("m1-8gb", "metal", "metal", "MTL0", "llama.cpp with Metal on the Apple M1, as asked for."),
        ("m1-8gb", "metal", "MTL0", "MTL0", "llama.cpp with Metal on the Apple M1, as asked for."),
        ("m1-8gb", "metal", "cpu", "cpu", "llama.cpp on the CPU, as asked for."),
        ("rtx-4060-laptop", "vulkan", "Vulkan0", "Vulkan0", "Iris(R) Xe Graphics (RPL-P), as asked for."),
    ],
)
def test_a_device_that_is_asked_for_is_taken(name: str, build: str, asked: str, device: str, reason: str) -> None:
    choice = choose(seen(name, build), device=asked)
    assert choice.device == device
    assert choice.reason.endswith(reason)
    assert choice.warning == choice.fix == choice.command == ""


@pytest.mark.parametrize("asked", ["CUDA2", "", "gpu", "Metal"])
def test_a_device_that_is_not_there_is_an_error_that_names_the_choices(asked: str) -> None:
    with pytest.raises(BadRequest, match="no device") as caught:
        choose(seen("two-gpus", "cuda"), device=asked)
    assert caught.value.param == "device"
    assert caught.value.hint == "Choose one of: cpu, CUDA1, CUDA0."


def test_a_device_that_cannot_be_used_is_an_error_with_the_fix() -> None:
    with pytest.raises(BackendUnavailable, match="cannot use the RTX 3060") as caught:
        choose(seen("two-gpus", "cpu"), device="CUDA0")
    assert "localinfer setup-gpu" in caught.value.hint
    with pytest.raises(BackendUnavailable, match="does not answer") as caught:
        choose(seen("driver-mismatch", "cpu"), device="GPU0")
    assert "Restart" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "build", "message", "hint"),
    [
        ("rtx-4060-laptop", "cpu", "cannot use the RTX 4060 Laptop GPU", "localinfer setup-gpu"),
        ("rtx-3060", "cuda after sleep", "does not find it", "nvidia_uvm"),
        ("error-999-after-sleep", "cuda", r"error 999", "Restart"),
        ("driver-mismatch", "cuda", r"error 18", "Restart"),
        ("rx-7900-xtx", "cpu", "cannot use the Radeon RX 7900 XTX", "GGML_VULKAN=on"),
        ("vm-cgroup-v2", "cpu", "no GPU", "--require-gpu"),
        ("strix-halo-128gb", "cpu", "no GPU that can be used", "--require-gpu"),
    ],
)
def test_a_required_gpu_fails_rather_than_fall_back(name: str, build: str, message: str, hint: str) -> None:
    here = seen(name, build)
    with pytest.raises(BackendUnavailable, match=message) as caught:
        choose(here, require_gpu=True)
    assert hint in caught.value.hint
    assert choose(here).device == "cpu"


def test_a_required_gpu_that_is_there_is_taken() -> None:
    for name, build in (("rtx-4090", "cuda"), ("m1-8gb", "mlx"), ("rx-7900-xtx", "rocm")):
        here = seen(name, build)
        assert choose(here, require_gpu=True) == choose(here)


def test_the_cpu_and_a_required_gpu_exclude_each_other() -> None:
    with pytest.raises(BadRequest, match="GPU"):
        choose(seen("rtx-4090", "cuda"), device="cpu", require_gpu=True)


def test_the_cpu_beside_a_card_is_a_warning_with_the_command() -> None:
    choice = choose(seen("rtx-4060-laptop", "cpu"))
    assert choice.warning == "Models run on the CPU. This build of llama.cpp cannot use the RTX 4060 Laptop GPU."
    assert choice.command == "localinfer setup-gpu"
    assert choice.command in choice.fix


def test_an_integrated_gpu_instead_of_a_card_is_a_warning() -> None:
    choice = choose(seen("rtx-4060-laptop", "vulkan, Intel alone"))
    assert choice.device == "Vulkan0"
    assert "cannot use the RTX 4060 Laptop GPU" in choice.warning
    assert choice.command == "localinfer setup-gpu"


def test_cards_that_are_hidden_are_the_persons_own_doing() -> None:
    sources = Recorded("rtx-3060")
    sources.environment["CUDA_VISIBLE_DEVICES"] = "-1\x1b[2J"
    choice = choose(look(sources, [sources.builds["cuda after sleep"]]))
    assert choice.fix == "CUDA_VISIBLE_DEVICES is “-1[2J”, which hides cards. Unset it."
    sources = Recorded("two-gpus")
    sources.environment["CUDA_VISIBLE_DEVICES"] = "0"
    assert look(sources, [sources.builds["cuda, one hidden"]]).problems == ()


def test_the_cpu_without_a_better_device_is_no_warning() -> None:
    for name in ("vm-cgroup-v2", "strix-halo-128gb"):
        choice = choose(seen(name, "cpu"))
        assert choice.warning == choice.fix == choice.command == ""
