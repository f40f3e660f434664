"""The package index and the model hub that the tests of this folder fetch from."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models import hub_server
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


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[hub_server.HubServer]:
    """A local model hub, and an environment without the person's token, proxies and cache."""
    from huggingface_hub import close_session

    for name in list(os.environ):
        if name.upper().startswith(("HF_", "HUGGING")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # no certificates: reading the system's takes longest of all
    close_session()  # made for the environment as it was
    with hub_server.serving(hub_server.HubServer()) as served:
        yield served
        close_session()
