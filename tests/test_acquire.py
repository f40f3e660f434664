"""Having a model, whatever else goes wrong."""

from pathlib import Path

import pytest

from localinfer.acquire import acquire
from localinfer.models import fetched
from localinfer.models.progress import FetchProgress
from tests.models.conftest import hub
from tests.models.hub_server import HubServer
from tests.tiny_models import write_tiny_model

__all__ = ["hub"]


def test_a_record_that_cannot_be_written_does_not_end_a_pull(
    hub: HubServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    data = write_tiny_model(tmp_path, "llama").read_bytes()
    hub.offer("owner/tiny-GGUF", {"tiny-Q8_0.gguf": data})
    (home / "state" / "fetched.json").mkdir(parents=True)
    seen: list[FetchProgress] = []

    ref = acquire("owner/tiny-GGUF:Q8_0", offline=False, progress=seen.append)

    assert ref.path.read_bytes() == data
    (notice,) = [state.notice for state in seen if state.notice]
    assert "fetched.json cannot be written" in notice
    assert "localinfer rm" in notice
    assert not fetched.ours(ref.paths)
