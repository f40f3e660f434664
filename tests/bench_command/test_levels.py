"""Clients at the same time, on a target that only counts: how many there are, what they ask, and how they end."""

import threading
import time

import pytest

from localinfer.bench.levels import measure_levels
from localinfer.bench.target import Trace
from localinfer.bench.values import Drafter, Level
from localinfer.bench.workloads import MIXED, Prompt, built_in, interleaved
from localinfer.errors import LocalInferError, WorkerDied
from localinfer.metrics import now_ns
from tests.bench_command.test_running import SHORT

PROMPTS = interleaved(built_in(MIXED))


class Counting:
    """Answers at once; with ``together`` it waits until so many are being answered. ``failing``: the request that
    fails, counted from 1; the others then wait for ``stop``."""

    def __init__(self, together: int = 1, failing: int | None = None) -> None:
        self._barrier = threading.Barrier(together)
        self._lock = threading.Lock()
        self._failing = failing
        self._stopped = threading.Event()
        self.asked: list[str] = []

    def answer(self, prompt: Prompt, max_tokens: int, drafter: Drafter | None = None) -> Trace:
        submitted_ns = now_ns()
        with self._lock:
            self.asked.append(prompt.messages[0].content)
            number = len(self.asked)
        if self._failing is not None:
            if number == self._failing:
                raise WorkerDied("It died.")
            assert self._stopped.wait(30)
            raise LocalInferError("The measurement was stopped.")
        self._barrier.wait(30)
        return Trace(
            submitted_ns=submitted_ns,
            ended_ns=now_ns(),
            ttft_s=0.1,
            tps=float(number),
            prompt_tokens=3,
            completion_tokens=max_tokens if number != 5 else None,
        )

    def stop(self) -> None:
        self._stopped.set()


def measured(target: Counting, level: int, seed: int = 1, pause_s: float = 0.0) -> Level:
    kept: list[tuple[Level, ...]] = []
    measure_levels(
        target,
        PROMPTS,
        (level,),
        SHORT,
        pause_s,
        None,
        lambda: 0.0,
        seed,
        say=lambda _: None,
        keep=lambda cells, _: kept.append(cells),
    )
    assert [cells[0].requests for cells in kept[:3]] == [
        level,
        2 * level,
        3 * level,
    ]  # what is known is told each round
    return kept[-1][0]


def test_as_many_are_answered_at_the_same_time_as_the_level_says() -> None:
    assert measured(Counting(together=4), 4).requests == 12


def test_each_request_has_a_mark_of_its_own_before_the_same_prompts() -> None:
    target = Counting()
    measured(target, 4)
    marks = [text.partition("] ")[0] for text in target.asked]
    assert len(set(marks)) == len(marks)
    asked = [text.partition("] ")[2] for text in target.asked]
    rounds = [sorted(asked[start : start + 4]) for start in (0, 4, 8)]
    assert rounds[0] == rounds[1] == rounds[2] == sorted(prompt.messages[0].content for prompt in PROMPTS[:4])


def test_the_same_seed_asks_the_same() -> None:
    first, again, other = Counting(), Counting(), Counting()
    measured(first, 3, seed=1)
    measured(again, 3, seed=1)
    measured(other, 3, seed=2)
    assert sorted(first.asked) == sorted(again.asked) != sorted(other.asked)


def test_a_count_that_one_answer_lacks_is_not_made_up() -> None:
    level = measured(Counting(), 3)
    assert level.prompt_tokens == 27
    assert level.completion_tokens is None
    assert level.total_tps is not None
    assert len(level.total_tps.samples) == 2  # of three rounds
    assert level.itl_ms is None


def test_clients_wait_between_requests() -> None:
    started_s = time.monotonic()
    measured(Counting(), 3, pause_s=0.02)
    assert time.monotonic() - started_s > 0.02


def test_the_first_error_ends_all_clients() -> None:
    target = Counting(failing=3)
    with pytest.raises(WorkerDied, match="It died"):
        measured(target, 3)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("bench-client")]
