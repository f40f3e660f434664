"""``localinfer setup-gpu``: what it says and asks on recorded machines, with a real site, pip and child."""

import io
import os
import re
import shlex
from collections.abc import Callable
from importlib import import_module

import pytest

from localinfer import builds, settings
from localinfer.cli.setup_gpu import setup_gpu, undo_gpu
from localinfer.errors import BackendUnavailable, BadRequest, DownloadFailed, Offline
from localinfer.gpu_build import index, setup
from localinfer.gpu_build.found import Found, look
from localinfer.gpu_build.proof import Proof, Run
from localinfer.machine import Build
from localinfer.types import ModelInfo
from tests.gpu_build.conftest import Machine
from tests.gpu_build.machines import RTX_3060, RTX_4060, Nvml, Recorded
from tests.gpu_build.site import Site
from tests.gpu_build.stub import VERSION, file_name, llama_wheel

command = import_module("localinfer.cli.setup_gpu")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs of these machines are POSIX's")

FILE = file_name("llama_cpp_python", VERSION)


class Typed(io.StringIO):
    """A terminal where somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def here(machine: Machine, site: Site, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """The machine it runs on: an RTX 3060, a toolkit, a compiler."""
    recorded = machine(Nvml(RTX_3060))
    recorded.toolkit("usr", "12.4")
    recorded.gcc(13)
    monkeypatch.setattr(command, "look", lambda: look(recorded))
    monkeypatch.setattr(index, "INDEX", site.wheels)
    return recorded


@pytest.fixture
def offer(site: Site, libraries: dict[str, bytes]) -> Callable[..., None]:
    """Offer a wheel for CUDA 12.4; arguments are those of ``llama_wheel``."""
    return lambda *arguments, **more: site.prebuilt("124", FILE, llama_wheel(libraries, *arguments, **more))


Offer = Callable[..., None]
Output = pytest.CaptureFixture[str]


def test_a_wheel_from_the_plan_to_the_proof(here: Recorded, offer: Offer, capsys: Output) -> None:
    offer()
    assert setup_gpu(yes=True, dry_run=False)
    out, err = capsys.readouterr()
    for words in (
        "NVIDIA GeForce RTX 3060 (12.0 GiB, compute capability 8.6)",
        "driver 550.90.07, which runs CUDA up to 12.4",
        "CUDA toolkit 12.4",
        f"llama-cpp-python {VERSION}, prebuilt for CUDA 12.4",
        "nvidia-cublas-cu12>=12.0,<12.5",
        "setup-gpu --undo",
        "Done: llama.cpp sees CUDA0 (NVIDIA GeForce RTX 3060).",
        "not tried with a model",
    ):
        assert words in " ".join(out.split()), out
    assert all(len(line) <= 100 for line in out.splitlines() if "http" not in line and " -m pip " not in line)
    assert err == "Installing llama.cpp …\n"
    build = builds.active()
    assert build is not None
    assert build.cards == ("NVIDIA GeForce RTX 3060",)

    assert setup_gpu(yes=True, dry_run=False)
    out, _ = capsys.readouterr()
    assert out == "There is nothing to set up: llama.cpp sees CUDA0 (NVIDIA GeForce RTX 3060) already.\n"

    assert undo_gpu()
    assert undo_gpu()
    out, _ = capsys.readouterr()
    assert out == "The build that came with localinfer is used again.\nThere is nothing to undo.\n"
    assert builds.active() is None


def test_a_dry_run_shows_the_plan_and_the_command_and_does_nothing(
    here: Recorded, offer: Offer, site: Site, capsys: Output
) -> None:
    offer()
    assert setup_gpu(yes=False, dry_run=True)
    out, _ = capsys.readouterr()
    words = shlex.split(out.splitlines()[-1])
    assert words[words.index("--target") + 1].startswith(str(settings.builds_dir()))
    assert f"{site.url}/releases/cu124/{FILE}" in words
    assert not settings.builds_dir().exists()
    assert not any("releases" in path for path in site.requests)


def test_a_dry_run_of_a_build_from_source(here: Recorded, offer: Offer, capsys: Output) -> None:
    offer()
    assert setup_gpu(yes=False, dry_run=True, source=True)
    out, _ = capsys.readouterr()
    assert out.splitlines()[-1].startswith("CMAKE_ARGS='-DGGML_CUDA=on -DCMAKE_CUDA_ARCHITECTURES=86-real'")
    text = " ".join(out.split())
    assert re.search(r"some \d+ to \d+ minutes with 8 at a time", text)
    assert "A build from source was asked for." in text


def test_nobody_to_ask_is_a_refusal(here: Recorded, offer: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    offer()
    for nobody in (io.StringIO("y\n"), None):
        monkeypatch.setattr("sys.stdin", nobody)
        with pytest.raises(BadRequest) as caught:
            setup_gpu(yes=False, dry_run=False)
        assert "--yes" in caught.value.hint
    assert not settings.builds_dir().exists()


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yesterday\n"])
def test_anything_but_a_yes_changes_nothing(
    here: Recorded, offer: Offer, capsys: Output, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    offer()
    monkeypatch.setattr(command, "_works_already", lambda *_: None)
    monkeypatch.setattr("sys.stdin", Typed(typed))
    assert not setup_gpu(yes=False, dry_run=False)
    _, err = capsys.readouterr()
    assert err.endswith("Go on? [y/N] Nothing was changed.\n")
    assert not settings.builds_dir().exists()


def test_a_yes_is_enough_and_a_terminal_shows_how_it_goes(
    here: Recorded, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer()
    screen = Typed()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(command, "_works_already", lambda *_: None)
    monkeypatch.setattr("sys.stdin", Typed("Y\n"))
    monkeypatch.setattr("sys.stderr", screen)
    assert setup_gpu(yes=False, dry_run=False)
    assert "Installing llama.cpp" in screen.getvalue()
    assert "0:00:0" in screen.getvalue()


def test_a_model_that_ran_is_reported(
    here: Recorded, offer: Offer, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = ModelInfo(
        name="smollm2-135m",
        backend="llama.cpp",
        description="",
        context=256,
        slots=1,
        vocabulary=1,
        parameters=1,
        weights_bytes=1,
        kv_bytes=1,
        placement="GPU 31/31 layers",
    )
    told = Build(version=VERSION, system_info="", gpu_offload=True, cores=1, devices=())
    proof = Proof(build=told, gpus=("CUDA0 (a card)",), run=Run(info=info, tokens=24, tps=412.3))
    offer()
    monkeypatch.setattr(setup, "install", lambda *_, **__: proof)
    assert setup_gpu(yes=True, dry_run=False)
    out, _ = capsys.readouterr()
    assert out.endswith(
        "Done: llama.cpp computes on CUDA0 (a card).\n"
        "Proven with smollm2-135m: GPU 31/31 layers, 412 tok/s over 24 tokens.\n"
    )


def test_a_failure_is_undone_and_said_so(here: Recorded, offer: Offer, capsys: Output) -> None:
    offer("cpu")
    with pytest.raises(BackendUnavailable, match="finds none"):
        setup_gpu(yes=True, dry_run=False)
    _, err = capsys.readouterr()
    assert err.endswith("Undone: what was used before is still in use.\n")
    assert builds.active() is None


def test_ctrl_c_is_undone_and_said_so(
    here: Recorded, offer: Offer, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    offer()
    monkeypatch.setattr(setup, "install", stop)
    with pytest.raises(KeyboardInterrupt):
        setup_gpu(yes=True, dry_run=False)
    assert "Undone" in capsys.readouterr().err


def test_a_wheel_that_has_gone_meanwhile(here: Recorded, offer: Offer, site: Site) -> None:
    offer()
    site.status[f"/releases/cu124/{FILE}"] = 404
    with pytest.raises(DownloadFailed, match="404"):
        setup_gpu(yes=True, dry_run=False)


def test_a_build_that_stopped_working_is_made_anew(here: Recorded, offer: Offer, capsys: Output) -> None:
    bad = builds.LlamaBuild(name="bad", version=VERSION, origin="a stub", cards=("NVIDIA GeForce RTX 3060",))
    bad.folder.mkdir(parents=True)
    builds.activate(bad)
    offer()
    assert setup_gpu(yes=True, dry_run=False)
    _, err = capsys.readouterr()
    assert "does not work any more" in err
    build = builds.active()
    assert build is not None
    assert build.name != "bad"
    assert not bad.folder.exists()


def test_a_build_for_other_cards_is_made_anew(here: Recorded, offer: Offer, capsys: Output) -> None:
    offer()
    builds.activate(builds.LlamaBuild(name="old", version=VERSION, origin="a stub", cards=("NVIDIA GeForce GTX 970",)))
    assert setup_gpu(yes=True, dry_run=False)
    assert "was not made for NVIDIA GeForce RTX 3060" in capsys.readouterr().err
    build = builds.active()
    assert build is not None
    assert build.cards == ("NVIDIA GeForce RTX 3060",)


def test_offline_nothing_is_asked_of_anyone(
    here: Recorded, offer: Offer, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer()
    monkeypatch.setenv("LOCALINFER_OFFLINE", "1")
    with pytest.raises(Offline):
        setup_gpu(yes=True, dry_run=False)
    assert site.requests == []


def test_a_mac_has_nothing_to_set_up(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "look", lambda: Found(system="macos", arch="arm64"))
    assert setup_gpu(yes=True, dry_run=False)
    assert "Metal, which is built in" in capsys.readouterr().out


def test_no_card_is_an_error(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "look", lambda: look(machine(Nvml())))
    with pytest.raises(BackendUnavailable, match="no NVIDIA card"):
        setup_gpu(yes=True, dry_run=False)


def test_wsl_and_a_note_are_shown(
    machine: Machine, site: Site, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = machine(Nvml(RTX_4060), kernel="5.15.153.1-microsoft-standard-WSL2")
    recorded.toolkit("usr/local/cuda", "12.4")
    recorded.gcc(13)
    monkeypatch.setattr(command, "look", lambda: look(recorded))
    monkeypatch.setattr(index, "INDEX", "http://127.0.0.1:1/whl")
    assert setup_gpu(yes=False, dry_run=True)
    out, _ = capsys.readouterr()
    assert "the driver of Windows, 550.90.07" in out
    assert "Note     The index of prebuilt wheels cannot be reached" in out
    assert "-DCMAKE_CUDA_COMPILER=" in out
