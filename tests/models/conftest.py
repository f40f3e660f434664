"""The package index that the tests of this folder fetch from."""

import os
from collections.abc import Iterator

import pytest

from tests.models.package_index import PackageIndex, serving

_OF_THE_PERSON = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CONSTRAINT", "PIP_QUIET")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """A local package index, the only one that pip knows in this test."""
    for name in _OF_THE_PERSON:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(PackageIndex()) as served:
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        yield served
