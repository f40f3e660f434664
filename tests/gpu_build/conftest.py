"""What the tests of this folder share: a machine, the stub's libraries, a site to fetch from."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gpu_build.machines import Recorded
from tests.gpu_build.site import Site, serving
from tests.gpu_build.stub import compile_libraries, runtime_wheels

_OF_THE_PERSON = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONSTRAINT", "CMAKE_ARGS")


Machine = Callable[..., Recorded]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with that driver; arguments are those of ``Recorded``."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    return lambda nvml, **more: Recorded(tmp_path, nvml, **more)


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The shared libraries of the stub."""
    return compile_libraries(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def site(libraries: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty index of prebuilt wheels, and a package index with NVIDIA's packages: the only one that pip knows."""
    for name in _OF_THE_PERSON:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as served:
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        for file, data in runtime_wheels(libraries).items():
            served.package(file.partition("-")[0].replace("_", "-"), file, data)
        yield served
