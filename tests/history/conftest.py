"""A history in a file of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localinfer.history.store import History


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    with History(path) as opened:
        yield opened
