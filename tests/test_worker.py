"""The worker process seen from its pipe: which frames it sends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localinfer.process import Child
from localinfer.types import Done, LoadOptions, Piece, Queued, Report, Stepped, Submit
from tests.engines import ask


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    children: list[Child[Report]] = []

    def start_(script: str) -> Child[Report]:
        child: Child[Report] = Child("localinfer.worker", Report, tmp_path / f"worker-{len(children)}.log")
        children.append(child)
        child.send(LoadOptions(backend="scripted", model=script, name="scripted"))
        child.send(Submit(id=1, request=ask(ignore_eos=True, max_tokens=60)))
        return child

    yield start_
    for child in children:
        child.close()
        child.death()


def frames(child: Child[Report]) -> list[Stepped]:
    """Every frame of the generation up to its end."""
    seen = []
    for report in child.reports():
        if isinstance(report, Stepped):
            seen.append(report)
            if any(isinstance(event, Done) for _, event in report.events):
                return seen
    raise AssertionError("it did not end")


def tokens(frame: Stepped) -> int:
    return sum(event.tokens for _, event in frame.events if isinstance(event, Piece))


def test_fast_text_shares_frames_but_the_first_comes_at_once(start: object) -> None:
    assert callable(start)
    seen = frames(start("pace_s=0.002"))
    assert isinstance(seen[0].events[0][1], Queued)
    with_text = [tokens(frame) for frame in seen if tokens(frame)]
    assert sum(with_text) == 60
    assert with_text[0] == 1
    assert len(with_text) < 40


def test_slow_text_is_sent_with_each_step(start: object) -> None:
    assert callable(start)
    seen = frames(start("pace_s=0.03"))
    assert [tokens(frame) for frame in seen if tokens(frame)] == [1] * 60
