"""Setting up a build for real: a site, pip, a child that proves it; and that whatever fails leaves all as it was."""

import errno
import io
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import psutil
import pytest

from localinfer import builds, settings
from localinfer.errors import (
    BackendUnavailable,
    DownloadFailed,
    LocalInferError,
    NotEnoughDisk,
    Offline,
    StorageUnavailable,
)
from localinfer.gpu_build import pip, setup
from localinfer.gpu_build.found import Toolkit
from localinfer.gpu_build.plan import Plan
from localinfer.gpu_build.proof import Proof
from localinfer.lock import try_exclusive
from tests.gpu_build.site import LLAMA, Site
from tests.gpu_build.stub import VERSION, file_name, llama_source, llama_wheel, runtime_wheels

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stub's libraries and compilers are POSIX's")

FILE = file_name("llama_cpp_python", VERSION)
RUNTIME = file_name("nvidia_cuda_runtime_cu12", "12.4.127")
LIBRARIES = ("nvidia-cuda-runtime-cu12>=12.0,<12.5", "nvidia-cublas-cu12>=12.0,<12.5")

Offer = Callable[..., Plan]


@pytest.fixture
def prebuilt(site: Site, libraries: dict[str, bytes]) -> Offer:
    """The plan for a wheel that the site offers; arguments are those of ``llama_wheel``."""

    def offer(*arguments: str, **more: object) -> Plan:
        site.prebuilt("124", FILE, llama_wheel(libraries, *arguments, **more))  # type: ignore[arg-type]
        return Plan(
            kind="wheel",
            version=VERSION,
            cuda=(12, 4),
            cards=("NVIDIA GeForce RTX 3060",),
            requirements=(f"{site.url}/releases/cu124/{FILE}", *LIBRARIES),
            options=("--only-binary", ":all:", "--progress-bar", "raw"),
        )

    return offer


@pytest.fixture
def source(site: Site, libraries: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """The plan for a build from source with a compiler that does what a shell script says."""

    def offer(compiler: str) -> Plan:
        nvcc = tmp_path / "tools" / "nvcc"
        nvcc.parent.mkdir()
        nvcc.write_text(f"#!/bin/sh\n{compiler}\n")
        nvcc.chmod(0o755)
        monkeypatch.setenv("PATH", f"{nvcc.parent}{os.pathsep}{os.environ['PATH']}")
        cuda = toolkit_folder(libraries, tmp_path)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(cuda))
        site.package(LLAMA, f"llama_cpp_python-{VERSION}.tar.gz", llama_source(llama_wheel(libraries)))
        site.package(LLAMA, FILE, llama_wheel(libraries, "cpu", offload=False))  # what must not be taken
        return Plan(
            kind="source",
            version=VERSION,
            cuda=(12, 4),
            cards=("NVIDIA GeForce RTX 3060",),
            requirements=(f"{LLAMA}=={VERSION}",),
            options=("--no-binary", LLAMA, "--verbose"),
            environment={"CMAKE_ARGS": "-DGGML_CUDA=on"},
            toolkit=Toolkit(compiler="nvcc", version=(12, 4)),
        )

    return offer


@pytest.fixture
def unpacked(prebuilt: Offer, libraries: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Offer:
    """As ``prebuilt``, with pip's part done at once, for what comes after it."""

    def offer(*arguments: str, **more: object) -> Plan:
        plan = prebuilt(*arguments, **more)
        wheels = [llama_wheel(libraries, *arguments, **more), runtime_wheels(libraries)[RUNTIME]]  # type: ignore[arg-type]

        def unpack(command: Sequence[str], *_: object) -> None:
            for wheel in wheels:
                zipfile.ZipFile(io.BytesIO(wheel)).extractall(command[command.index("--target") + 1])

        monkeypatch.setattr(pip, "run", unpack)
        return plan

    return offer


def toolkit_folder(libraries: dict[str, bytes], folder: Path) -> Path:
    """A toolkit's folder of libraries, where the dynamic loader looks."""
    cuda = folder / "toolkit"
    cuda.mkdir()
    (cuda / "libcudart.so.12").write_bytes(libraries["libcudart.so.12"])
    return cuda


def install(plan: Plan, progress: Callable[[str], None] = lambda _: None) -> Proof:
    return setup.install(plan, None, progress)


def folders() -> list[str]:
    """What lies in the folder of builds."""
    root = settings.builds_dir()
    return sorted(path.name for path in root.iterdir() if path.name != ".lock") if root.exists() else []


def failure(plan: Plan, kind: type[LocalInferError], *words: str) -> LocalInferError:
    """Installing fails so, and nothing is left of it."""
    before, were = builds.active(), folders()
    with pytest.raises(kind) as caught:
        install(plan)
    assert type(caught.value) is kind
    for word in words:
        assert word in f"{caught.value.message} {caught.value.hint}", (caught.value.message, caught.value.hint)
    assert "\n" not in caught.value.message
    assert builds.active() == before
    assert folders() == were
    return caught.value


def log_of(error: LocalInferError) -> str:
    """The log that the hint names."""
    return next(Path(word.rstrip(".")).read_text() for word in error.hint.split() if ".log" in word)


def stub(name: str, *, active: bool = True) -> None:
    """A build that is there; with nothing in it but a name."""
    build = builds.LlamaBuild(name=name, version=VERSION, origin="a stub")
    build.folder.mkdir(parents=True)
    (build.folder / "file").touch()
    if active:
        builds.activate(build)


# A wheel


def test_a_wheel_is_installed_proven_and_used(prebuilt: Offer) -> None:
    seen: list[str] = []
    proof = setup.install(prebuilt(), None, seen.append)
    assert proof.gpus == ("CUDA0 (NVIDIA GeForce RTX 3060)",)
    assert proof.build.version == VERSION
    assert proof.build.gpu_offload
    assert proof.run is None
    build = builds.active()
    assert build is not None
    assert folders() == [build.name]
    assert builds.chosen() == builds.Choice(build=build)
    assert build.libraries == ("nvidia/cuda_runtime/lib/libcudart.so.12",)
    assert "llama_cpp/lib/libggml.so" in build.sizes
    assert "CUDA 12.4" in build.origin
    assert any("MB" in line for line in seen)
    assert seen[-1] == "Trying the build"
    assert setup.prove_current(None) == proof


def test_the_next_build_takes_the_place_of_the_first_and_of_what_was_left(unpacked: Offer) -> None:
    stub("first")
    stub("left", active=False)
    install(unpacked())
    second = builds.active()
    assert second is not None
    assert folders() == [second.name]


def test_undo_goes_back_to_the_build_of_the_environment() -> None:
    assert not setup.undo()
    stub("first")
    assert folders() == ["first"]
    assert setup.undo()
    assert builds.chosen() == builds.Choice()
    assert folders() == []
    assert not setup.undo()


def test_a_wheel_that_is_not_proven_is_taken_away_and_what_was_active_stays(unpacked: Offer) -> None:
    stub("first")
    failure(unpacked("cpu"), BackendUnavailable, "finds none")
    assert folders() == ["first"]


def test_a_wheel_that_holds_another_version(prebuilt: Offer, site: Site, libraries: dict[str, bytes]) -> None:
    plan = prebuilt()
    other = file_name("llama_cpp_python", "0.3.30")
    site.prebuilt("124", other, llama_wheel(libraries, version="0.3.30"))
    plan = msgspec.structs.replace(plan, requirements=(f"{site.url}/releases/cu124/{other}", *LIBRARIES))
    failure(plan, DownloadFailed, "0.3.30 instead of 0.3.36")


def test_a_wheel_that_is_missing(prebuilt: Offer, site: Site) -> None:
    plan = prebuilt()
    site.status[f"/releases/cu124/{FILE}"] = 404
    error = failure(plan, DownloadFailed, "404")
    assert "404" in log_of(error)


def test_a_library_that_is_missing(prebuilt: Offer, site: Site) -> None:
    plan = prebuilt()
    del site.pages["/simple/nvidia-cublas-cu12/"]
    failure(plan, DownloadFailed, "nvidia-cublas-cu12")


def test_a_wheel_that_breaks_off(prebuilt: Offer, site: Site) -> None:
    plan = prebuilt()
    site.drop_at = 1000
    failure(plan, DownloadFailed, "broke off")


def test_a_site_that_is_down(prebuilt: Offer) -> None:
    plan = prebuilt()
    nobody = f"http://127.0.0.1:1/{FILE}"
    failure(msgspec.structs.replace(plan, requirements=(nobody,)), Offline, "cannot be reached")


# A build from source


def test_a_build_from_source_takes_no_wheel(source: Offer) -> None:
    seen: list[str] = []
    plan = source("echo compiling with $CMAKE_ARGS")
    proof = setup.install(plan, None, seen.append)
    assert proof.gpus == ("CUDA0 (NVIDIA GeForce RTX 3060)",)
    assert "compiling with -DGGML_CUDA=on" in seen
    assert "[1/2] Building CUDA object ggml-cuda.cu.o" in seen


def test_a_compiler_that_fails(source: Offer) -> None:
    compiler = "echo 'ggml-cuda.cu(12): error: identifier \"x\" is undefined' >&2; exit 1"
    error = failure(source(compiler), BackendUnavailable, "cannot be compiled", 'identifier "x" is undefined')
    assert "Building CUDA object" in log_of(error)


def test_a_disk_that_fills_up_while_it_is_compiled(source: Offer) -> None:
    failure(source("echo 'ld: final link failed: No space left on device'; exit 1"), NotEnoughDisk, "are free")


# Stopping


def test_ctrl_c_ends_the_download_and_undoes_it(prebuilt: Offer, site: Site) -> None:
    plan = prebuilt()
    site.hold = True

    def stop(_: str) -> None:
        if site.held.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        setup.install(plan, None, stop)
    assert folders() == []
    assert builds.active() is None
    assert psutil.Process().children(recursive=True) == []


def test_ctrl_c_ends_every_compiler(source: Offer, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    plan = source(f"sleep 1000 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; echo started; wait")

    def stop(line: str) -> None:
        if line == "started":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        setup.install(plan, None, stop)
    assert not [pid for pid in map(int, pids.read_text().split()) if psutil.pid_exists(pid)]
    assert folders() == []


def test_ctrl_c_just_after_it_became_active_leaves_it_whole(unpacked: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    activate = builds.activate

    def interrupted(build: builds.LlamaBuild) -> None:
        activate(build)
        raise KeyboardInterrupt

    monkeypatch.setattr(builds, "activate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        install(unpacked())
    assert setup.prove_current(None).gpus


def test_two_at_once(prebuilt: Offer) -> None:
    root = settings.make_folder(settings.builds_dir())
    with try_exclusive(root / ".lock") as held:
        assert held
        failure(prebuilt(), BackendUnavailable, "Another localinfer")
        with pytest.raises(BackendUnavailable):
            setup.undo()


# The disk


def test_too_little_room_is_said_before_anything_is_fetched(prebuilt: Offer, site: Site) -> None:
    plan = msgspec.structs.replace(prebuilt(), needs_bytes=10**18)
    error = failure(plan, NotEnoughDisk, "GB are free", "Nothing was changed")
    assert isinstance(error, NotEnoughDisk)
    assert error.needed_bytes == 10**18
    assert not any("releases" in path for path in site.requests)


def test_a_disk_that_fills_up_while_it_is_made_active(unpacked: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.mkstemp", full)
    failure(unpacked(), StorageUnavailable, "No space left")


def test_a_folder_that_cannot_be_made(prebuilt: Offer, home: Path) -> None:
    (home / "builds").touch()
    with pytest.raises(StorageUnavailable, match="a file is in the way"):
        install(prebuilt())
