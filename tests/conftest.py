"""What all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import platformdirs
import pytest
from hypothesis import settings

from localinfer.errors import Offline
from localinfer.models import store
from localinfer.models.catalog import catalog
from localinfer.settings import Settings

# Tests start hundreds of processes: each would compile every module anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine is no failure: the time an example takes is not what a property is about.
settings.register_profile("localinfer", deadline=None)
settings.load_profile("localinfer")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of its own for the files of every test, and none of the person's settings."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for field in msgspec.structs.fields(Settings):
            patch.delenv(f"LOCALINFER_{field.name.upper()}", raising=False)
        patch.setenv("LOCALINFER_HOME", str(folder))
        for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
            patch.delenv(name, raising=False)
        for name in ("HF_HOME", "OLLAMA_MODELS", "LLAMA_CACHE"):  # models of the person's
            patch.setenv(name, str(folder / "none" / name))
        yield folder


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """The real starter model, fetched once into a cache that outlives the run."""
    cache = os.environ.get("LOCALINFER_TEST_CACHE") or platformdirs.user_cache_path("localinfer-tests", appauthor=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALINFER_HOME", str(cache))
        try:
            return store.ensure(store.catalogued(catalog().starter), offline=False, progress=lambda _: None)
        except Offline as error:
            pytest.skip(f"the starter model cannot be fetched: {error}")
