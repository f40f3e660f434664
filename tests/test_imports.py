"""Starting costs little: what is slow to load, native or optional is imported by what needs it, when it needs it."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

HEAVY = {
    "faster_whisper",
    "httpx2",
    "huggingface_hub",
    "jinja2",
    "llama_cpp",
    "llguidance",
    "mlx",
    "numpy",
    "plotext",
    "pydantic",
    "sounddevice",
    "starlette",
    "textual",
    "uvicorn",
}


def loaded_by(*arguments: str) -> set[str]:
    """The names of all modules that a fresh interpreter has loaded when ``arguments`` have run."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "import localinfer"),
        ("-c", "import backends"),
        ("-c", "import tui"),
        ("-c", "from localinfer.cli import main; main()", "--help"),
        ("-m", "localinfer.cli", "--help"),
    ],
    ids=["localinfer", "backends", "tui", "localinfer --help", "python -m localinfer.cli --help"],
)
def test_nothing_heavy_is_loaded(arguments: Sequence[str]) -> None:
    loaded = loaded_by(*arguments)
    assert loaded & {"localinfer", "backends", "tui"}
    assert not {name.split(".")[0] for name in loaded} & HEAVY


def test_importing_the_backends_imports_no_backend() -> None:
    ours = {name for name in loaded_by("-c", "import backends") if name.startswith("backends.")}
    assert ours == {"backends.base"}


def test_loading_a_backend_imports_that_one_alone() -> None:
    program = (
        "import backends; from localinfer.types import LoadOptions;"
        "backends.load(LoadOptions(backend='scripted', model='', name='demo'), lambda progress: None)"
    )
    packages = {name.split(".")[1] for name in loaded_by("-c", program) if name.startswith("backends.")}
    assert packages == {"base", "drafting", "scripted"}
