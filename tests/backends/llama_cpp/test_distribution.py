"""What is drawn with drafts has the distribution of what is drawn without them."""

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest

from backends.base import Backend, SequenceJob
from backends.drafting import policy
from localinfer.types import Sampling, Speculation
from tests.backends.llama_cpp.driving import opened
from tests.backends.llama_cpp.speculating import draft_always, say
from tests.tiny_models import write_tiny_model

DRAWS = 1500
LENGTH = 4
PROMPT = [40, 41, 42, 43, 44, 45, 46, 47] * 3
_ids = itertools.count(1)


def draws(backend: Backend, first_seed: int, prediction: list[int]) -> tuple[Counter[tuple[int, ...]], int, int]:
    """How often each text was drawn; tokens drafted and accepted."""
    jobs = [
        SequenceJob(
            id=next(_ids),
            tokens=PROMPT,
            sampling=Sampling(temperature=1.0, top_k=3, top_p=1.0, min_p=0.0, seed=first_seed + index),
            max_tokens=LENGTH,
            ignore_eos=True,
            speculation=Speculation(drafter="lookup" if prediction else "off"),
            prediction=prediction,
        )
        for index in range(DRAWS)
    ]
    said = say(backend, jobs)
    return Counter(tuple(one.tokens) for one in said), sum(s.drafted for s in said), sum(s.accepted for s in said)


def chi_squared(one: Counter[tuple[int, ...]], two: Counter[tuple[int, ...]]) -> tuple[float, int]:
    """Of two samples of equal size, and its degrees of freedom; what is rare in both is one class."""
    usual = [key for key in one | two if one[key] + two[key] >= 10]
    cells = [(one[key], two[key]) for key in usual]
    cells.append((one.total() - sum(a for a, _ in cells), two.total() - sum(b for _, b in cells)))
    cells = [(a, b) for a, b in cells if a + b]
    return sum((a - b) ** 2 / (a + b) for a, b in cells), len(cells) - 1


def critical(freedom: int, z: float = 3.7) -> float:
    """The value that chance passes once in ten thousand times (Wilson and Hilferty 1931)."""
    return freedom * (1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))) ** 3


@pytest.mark.parametrize("slots", [1, 4])
def test_the_distribution_is_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    monkeypatch.setattr(policy, "MARGIN_TOGETHER", policy.MARGIN)
    with opened(write_tiny_model(tmp_path, "llama"), slots=slots, context=256) as backend:
        draft_always(backend)
        plain, drafted, _ = draws(backend, 1, [])
        assert not drafted
        assert len(plain) > 10  # there is something to distinguish
        usual = max(plain, key=plain.__getitem__)
        drafts, drafted, accepted = draws(backend, 100_000, [*PROMPT[-8:], *usual])
        assert drafted > DRAWS / 2
        assert 0 < accepted < drafted
        value, freedom = chi_squared(plain, drafts)
        assert value < critical(freedom), (value, freedom)


def test_the_test_would_see_a_difference() -> None:
    """If one token in ten were taken from the draft without asking the model."""
    honest: Counter[tuple[int, ...]] = Counter({(place,): 100 for place in range(15)})
    biased: Counter[tuple[int, ...]] = Counter({(place,): 90 + 150 * (place == 0) for place in range(15)})
    value, freedom = chi_squared(honest, biased)
    assert value > critical(freedom)
