"""How a pass is cut into parts, and the measuring of passes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.base import Prepares, SequenceJob
from backends.drafting import Part
from backends.llama_cpp import LlamaCppBackend
from backends.llama_cpp.passes import streams
from localinfer.types import Sampling
from tests.backends.llama_cpp.driving import answers, opened
from tests.tiny_models import write_tiny_model


@pytest.mark.parametrize(
    ("places", "rows", "parts"),
    [
        ([0], [1], [(1, 1)]),
        ([0], [9], [(1, 9)]),
        ([0, 1, 2], [1, 1, 1], [(3, 3)]),
        ([0, 1, 2], [1, 4, 4], [(3, 3), (2, 6)]),
        ([0, 1, 2], [4, 1, 4], [(3, 3), (1, 3), (1, 3)]),
        ([0, 2, 3], [1, 1, 1], [(1, 1), (2, 2)]),
        ([1, 2], [2, 5], [(2, 4), (1, 3)]),
    ],
)
def test_neighbours_are_computed_together_as_far_as_they_go(
    places: Sequence[int], rows: Sequence[int], parts: Sequence[tuple[int, int]]
) -> None:
    assert streams(places, rows) == [Part(*part) for part in parts]


def test_passes_are_measured_while_nothing_is_asked(tmp_path: Path) -> None:
    with opened(write_tiny_model(tmp_path, "llama"), slots=2, context=256) as backend:
        assert isinstance(backend, LlamaCppBackend)
        assert isinstance(backend, Prepares)
        costs = backend.speculator.costs
        assert costs.plain_s is None
        count = 0
        while backend.prepare():
            count += 1
        assert count > 10
        assert costs.plain_s
        assert costs.curve()[32] > costs.curve()[1]
        job = SequenceJob(id=1, tokens=[50, 51, 52], sampling=Sampling(temperature=0), max_tokens=4, ignore_eos=True)
        assert answers(backend, [job])[0].cached == 0


def test_a_request_ends_the_measuring(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path, "llama")
    jobs = [
        SequenceJob(id=id, tokens=[50, 51, 52], sampling=Sampling(temperature=0), max_tokens=8, ignore_eos=True)
        for id in (1, 2)
    ]
    with opened(path, context=256) as backend:
        undisturbed = answers(backend, jobs[:1])[0].tokens
    with opened(path, context=256) as backend:
        assert isinstance(backend, Prepares)
        assert backend.prepare()
        assert answers(backend, jobs[1:])[0].tokens == undisturbed
        assert not backend.prepare()
