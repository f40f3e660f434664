"""When the library is asked about a model that is not here, and which quantization is taken."""

from pathlib import Path
from typing import Any

import pytest

from localinfer import lookup
from localinfer.advice import Advice
from localinfer.machine import Machine
from localinfer.models import fit, gguf
from localinfer.models.oracle import SizingChild
from localinfer.models.plan import Ask, MemoryPlan
from localinfer.models.quantizations import RepoFile, RepoQuantization
from localinfer.models.shape import from_gguf
from tests.architectures import write_header
from tests.models.machines import cpu_only


class Here(Advice):
    """Advice about a machine that was made up."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(measure=False)
        self.__dict__["machine"] = machine


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time the library is asked; it answers nothing new."""
    questions: list[str] = []

    def refine(shape: Any, machine: Machine, ask: Ask, *_: object) -> MemoryPlan:
        questions.append(shape.architecture)
        return fit.plan(shape, machine, ask)

    monkeypatch.setattr(lookup, "refine", refine)
    return questions


@pytest.mark.parametrize(
    ("header_bytes", "ram_gib", "times"), [(1000, 64, 1), (9_000_000, 64, 0), (9_000_000, 8, 1), (9_000_000, 2, 1)]
)
def test_a_long_header_is_shown_to_the_library_only_where_it_matters(
    header_bytes: int, ram_gib: float, times: int, asked: list[str], tmp_path: Path
) -> None:
    headers = gguf.check_all([write_header(tmp_path, "llama-8b")])
    unit = RepoQuantization(
        name="Q4_K_M", files=(RepoFile(path="a-Q4_K_M.gguf", size_bytes=headers[0].file_size_bytes),), format="gguf"
    )
    plan = lookup._asked_of_library(
        unit, headers, [bytes(header_bytes)], from_gguf(headers), Here(cpu_only(ram_gib)), Ask(), SizingChild()
    )
    assert len(asked) == times
    assert plan.verdict in ("cpu", "too_big")


def test_a_model_in_another_quantization_weighs_in_proportion(tmp_path: Path) -> None:
    shape = from_gguf(gguf.check_all([write_header(tmp_path, "qwen3moe")]))
    double = lookup.scaled(shape, 2.0)
    assert abs(double.weights_bytes - 2 * shape.weights_bytes) < 1000
    assert double.layers[0].keys == shape.layers[0].keys
