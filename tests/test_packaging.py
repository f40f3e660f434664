"""The wheel holds what a person installs: three packages, the catalogue, the licence and the command."""

import subprocess
import sys
from configparser import ConfigParser
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    (path,) = folder.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    return ZipFile(path)


def metadata(wheel: ZipFile, name: str) -> str:
    (path,) = (path for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_exactly_three_packages(wheel: ZipFile) -> None:
    top_level = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top_level if not name.endswith(".dist-info")} == {"backends", "localinfer", "tui"}


def test_every_module_of_the_checkout_is_inside(wheel: ZipFile) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in ("backends", "localinfer", "tui")
        for path in (ROOT / package).rglob("*.py")
    }
    assert {name for name in wheel.namelist() if name.endswith(".py")} == modules


def test_the_catalogue_travels_with_the_package(wheel: ZipFile) -> None:
    assert wheel.read("localinfer/models.toml") == (ROOT / "models.toml").read_bytes()


def test_the_text_that_models_are_compared_on_travels_with_the_package(wheel: ZipFile) -> None:
    assert wheel.read("localinfer/sample.txt") == (ROOT / "localinfer" / "sample.txt").read_bytes()


def test_the_command_is_there(wheel: ZipFile) -> None:
    scripts = ConfigParser()
    scripts.read_string(metadata(wheel, "entry_points.txt"))
    assert dict(scripts["console_scripts"]) == {"localinfer": "localinfer.cli:main"}


def test_the_licence_is_named_and_whole(wheel: ZipFile) -> None:
    assert Parser().parsestr(metadata(wheel, "METADATA"))["License-Expression"] == "Apache-2.0"
    text = metadata(wheel, "licenses/LICENSE")
    assert text == (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
