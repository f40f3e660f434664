"""Which build of llama.cpp is loaded: the active one if it can be, else the environment's and the reason."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import msgspec
import pytest

from localinfer import builds, settings
from localinfer.builds import Choice, LlamaBuild
from localinfer.errors import StorageUnavailable

PROGRAM = """
from backends.llama_cpp import library
print(library.lib.__file__)
print(library.version())
print(library.notice)
"""


@pytest.fixture
def build() -> LlamaBuild:
    """A build of this localinfer's version whose bindings are a file of nothing."""
    made = LlamaBuild(
        name="made",
        version=builds.required_version(),
        origin="a stub",
        cards=("NVIDIA GeForce RTX 3060",),
        sizes={"llama_cpp/llama_cpp.py": 6},
        libraries=("nvidia/lib/libcudart.so.12", "/opt/cuda/lib/libcublas.so.12"),
    )
    bindings = made.folder / "llama_cpp"
    bindings.mkdir(parents=True)
    (bindings / "llama_cpp.py").write_text("x = 1\n")
    return made


def test_there_is_none_at_first() -> None:
    assert builds.active() is None
    assert builds.chosen() == Choice()
    assert not builds.deactivate()


def test_what_is_made_active_is_chosen_until_it_is_not(build: LlamaBuild) -> None:
    builds.activate(build)
    assert builds.active() == build
    assert builds.chosen() == Choice(build=build)
    assert builds.deactivate()
    assert builds.chosen() == Choice()


def test_nothing_but_the_one_file_is_written(build: LlamaBuild) -> None:
    builds.activate(build)
    builds.activate(msgspec.structs.replace(build, name="other"))
    assert [path.name for path in settings.state_dir().iterdir()] == ["llama-cpp-build.json"]


def test_libraries_lie_in_the_folder_or_where_they_say(build: LlamaBuild) -> None:
    inside, outside = build.library_paths()
    assert inside == build.folder / "nvidia/lib/libcudart.so.12"
    assert outside == Path("/opt/cuda/lib/libcublas.so.12")


def test_the_required_version_is_the_one_that_localinfer_names() -> None:
    assert builds.required_version() == metadata.version("llama-cpp-python")


def test_a_build_of_another_version_is_not_used(build: LlamaBuild) -> None:
    builds.activate(msgspec.structs.replace(build, version="0.2.1"))
    choice = builds.chosen()
    assert choice.build is None
    assert "0.2.1" in choice.notice
    assert builds.required_version() in choice.notice
    assert "setup-gpu" in choice.notice


@pytest.mark.parametrize(("change", "word"), [("missing", "is missing"), ("changed", "has changed")])
def test_a_build_whose_files_are_not_as_they_were_is_not_used(build: LlamaBuild, change: str, word: str) -> None:
    builds.activate(build)
    file = build.folder / "llama_cpp/llama_cpp.py"
    if change == "missing":
        file.unlink()
    else:
        file.write_text("x = 100\n")
    choice = builds.chosen()
    assert choice.build is None
    assert f"llama_cpp.py {word}" in choice.notice


@pytest.mark.parametrize("data", [b"", b"{}", b'{"name":1}', b"\xff\xfe", b"[" * 10_000])
def test_a_file_that_is_not_ours_is_a_notice(data: bytes) -> None:
    path = settings.make_folder(settings.state_dir()) / "llama-cpp-build.json"
    path.write_bytes(data)
    with pytest.raises(StorageUnavailable):
        builds.active()
    choice = builds.chosen()
    assert choice.build is None
    assert str(path) in choice.notice
    assert builds.deactivate()
    assert builds.chosen() == Choice()


def test_a_state_folder_that_cannot_be_written(build: LlamaBuild, home: Path) -> None:
    (home / "state").touch()
    with pytest.raises(StorageUnavailable):
        builds.activate(build)


# What a process loads


def loaded() -> tuple[str, str, str]:
    """File of the bindings, version and notice of a fresh process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    file, version, notice = done.stdout.splitlines()
    return file, version, notice


def test_a_process_loads_the_environments_build() -> None:
    file, version, notice = loaded()
    assert str(settings.builds_dir()) not in file
    assert version == metadata.version("llama-cpp-python")
    assert notice == ""


def test_a_process_that_cannot_load_the_active_build_loads_the_environments_and_says_why(build: LlamaBuild) -> None:
    bindings = build.folder / "llama_cpp/llama_cpp.py"
    bindings.write_text("raise OSError('libcuda.so.1: cannot open shared object file')\n")
    builds.activate(msgspec.structs.replace(build, sizes={}))
    file, version, notice = loaded()
    assert str(build.folder) not in file
    assert version == metadata.version("llama-cpp-python")
    assert "libcuda.so.1: cannot open" in notice
    assert "The CPU build is used" in notice
    assert "setup-gpu" in notice


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")
def test_a_pipe_in_place_of_the_file_is_said(home: Path) -> None:
    (home / "state").mkdir()
    os.mkfifo(home / "state" / "llama-cpp-build.json")
    with pytest.raises(StorageUnavailable, match="it is not a file"):
        builds.active()
    assert "it is not a file" in builds.chosen().notice
