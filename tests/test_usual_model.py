"""Which model somebody gets who names none."""

from pathlib import Path

import pytest

from localinfer.advice import Advice
from localinfer.engines import opening
from localinfer.models.catalog import catalog
from localinfer.models.progress import FetchProgress
from tests.models.machines import cpu_only


class Here(Advice):
    """Advice about a machine with plenty of memory."""

    def __init__(self, *, measure: bool = True) -> None:
        super().__init__(measure=False)
        self.__dict__["machine"] = cpu_only(32)


def usual() -> tuple[str, list[str]]:
    said: list[FetchProgress] = []
    return opening.usual(Here(), said.append), [report.notice for report in said]


def test_the_persons_own_choice_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALINFER_MODEL", "./mine.gguf")
    assert usual() == ("./mine.gguf", [])


def test_else_the_best_that_is_here(starter_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALINFER_MODEL_FOLDERS", str(starter_model.parent))
    assert usual() == ("smollm2-135m", [])


def test_else_the_starter_and_a_word_about_a_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "Advice", Here)
    name, (told,) = usual()
    assert name == catalog().starter.id
    assert "would answer better on this machine: localinfer pull" in told
