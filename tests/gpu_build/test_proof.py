"""Whether a build is said to work, by children that really load it: the stub's, and the one that is installed here."""

import io
import os
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from localinfer import settings
from localinfer.builds import LlamaBuild
from localinfer.errors import BackendUnavailable, StorageUnavailable
from localinfer.gpu_build.proof import prove, run_model
from tests.gpu_build.stub import SYSTEM_INFO, VERSION, llama_wheel
from tests.tiny_models import write_tiny_model

posix = pytest.mark.skipif(os.name == "nt", reason="the stub's libraries are POSIX's")

Unpack = Callable[..., LlamaBuild]


@pytest.fixture
def unpack(libraries: dict[str, bytes]) -> Unpack:
    """A stub in the folder of builds; arguments are those of ``llama_wheel``."""

    def put(*arguments: str, runtime: bool = True, **more: object) -> LlamaBuild:
        build = LlamaBuild(name="stub", version=VERSION, origin="a stub", libraries=("libcudart.so.12",))
        data = llama_wheel(libraries, *arguments, **more)  # type: ignore[arg-type]
        zipfile.ZipFile(io.BytesIO(data)).extractall(build.folder)
        if runtime:
            (build.folder / "libcudart.so.12").write_bytes(libraries["libcudart.so.12"])
        return build

    return put


def refused(build: LlamaBuild | None, tmp_path: Path, **more: object) -> str:
    """The message and the hint."""
    log = tmp_path / "proof-1.log"
    with pytest.raises(BackendUnavailable) as caught:
        prove(build, None, log, **more)  # type: ignore[arg-type]
    assert str(log) in caught.value.hint or "--source" in caught.value.hint
    return f"{caught.value.message} {caught.value.hint}"


@posix
def test_a_build_that_sees_a_card(unpack: Unpack, tmp_path: Path) -> None:
    proof = prove(unpack(), None, tmp_path / "proof.log")
    assert proof.gpus == ("CUDA0 (NVIDIA GeForce RTX 3060)",)
    assert proof.build.system_info == SYSTEM_INFO.strip()
    assert proof.run is None


@posix
@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        (("cpu",), {}, "finds none"),
        (("cpu",), {"offload": False}, "CPU only"),
        ((), {"signal": signal.SIGILL}, "SIGILL"),
        ((), {"signal": signal.SIGSEGV}, "SIGSEGV"),
        ((), {"runtime": False}, "libcudart.so.12"),
    ],
    ids=["no device", "a CPU build", "illegal instruction", "crash", "no CUDA runtime"],
)
def test_a_build_that_does_not_work(
    unpack: Unpack, arguments: tuple[str, ...], more: dict[str, object], words: str, tmp_path: Path
) -> None:
    assert words in refused(unpack(*arguments, **more), tmp_path)


@posix
@pytest.mark.parametrize(
    ("info", "features", "missing"),
    [
        ("CPU : AVX = 1 | AVX512 = 1 | ", ("avx",), "AVX512"),
        ("CPU : AVX = 1 | AVX2 = 1 | FMA = 1 | ", ("avx",), "AVX2, FMA"),
        ("CUDA : ARCHS = 860 | USE_GRAPHS = 1 | CPU : AVX = 1 | AVX512 = 0 | ", ("avx",), ""),
        ("CPU : SSE3 = 1 | OPENMP = 1 | REPACK = 1 | ", ("avx",), ""),
        ("CPU : AVX = 1 | AVX512 = 1 | ", (), ""),  # not known here
    ],
)
def test_a_build_for_another_processor_is_told_from_what_it_says(
    unpack: Unpack, info: str, features: tuple[str, ...], missing: str, tmp_path: Path
) -> None:
    build = unpack(info=info)
    if not missing:
        assert prove(build, None, tmp_path / "proof.log", features=features)
        return
    told = refused(build, tmp_path, features=features)
    assert f"processors with {missing}, which" in told


@posix
def test_a_build_that_hangs_is_given_up(unpack: Unpack, tmp_path: Path) -> None:
    build = unpack(signal=signal.SIGSTOP)
    assert "did not answer within 1 s" in refused(build, tmp_path, timeout_s=1.0)


def test_a_build_that_is_not_there(tmp_path: Path) -> None:
    settings.make_folder(settings.builds_dir() / "gone")
    assert "not installed" in refused(LlamaBuild(name="gone", version=VERSION, origin=""), tmp_path)


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageUnavailable):
        prove(None, None, tmp_path / "file" / "proof.log")


# The build that is installed here


def test_a_model_is_run(tmp_path: Path) -> None:
    run = run_model(str(write_tiny_model(tmp_path, "llama")), require_gpu=False)
    assert run.tokens == 24
    assert run.tps > 0
    assert run.info.name == "llama"


def test_a_model_that_stays_on_the_cpu_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="GPU"):
        run_model(str(write_tiny_model(tmp_path, "llama")))
