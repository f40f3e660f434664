"""The thread count follows the cores that are free: the policy by made-up loads, the measure by a real neighbour."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.llama_cpp.threads import EVERY_S, SLACK, FreeCores
from localinfer.machine import usable_cores

needs_two_cores = pytest.mark.skipif(usable_cores() < 2, reason="one core: the count is always one")
loads = st.lists(st.floats(0, 20), min_size=1, max_size=40)


def counts(cores: FreeCores, others: Sequence[float]) -> list[int]:
    return [cores.settle(load) for load in others]


@given(st.integers(1, 16), st.integers(0, 16), loads)
def test_the_count_stays_within_its_bounds_and_near_what_is_free(limit: int, more: int, others: list[float]) -> None:
    cores = FreeCores(limit, limit + more)
    before, free_before = limit, float(limit)
    for load in others:
        now, free = cores.settle(load), limit + more - load
        assert 1 <= now <= limit
        assert now <= max(1, free + 0.5 + SLACK), "more threads than are free"
        if now > before:
            assert min(free, free_before) > before + 0.5, "it rose by one sample"
        if min(free, free_before, limit) > before + 0.5 + SLACK:
            assert now > before, "it did not rise by two samples"
        before, free_before = now, free


def test_a_busy_neighbour_lowers_the_count_at_once() -> None:
    assert counts(FreeCores(8, 8), [1.0, 3.0, 7.9, 30.0]) == [7, 5, 1, 1]
    assert counts(FreeCores(2, 2), [1.0]) == [1]


def test_an_idle_machine_raises_it_after_two_samples() -> None:
    assert counts(FreeCores(8, 8), [5.0, 0.0, 0.0, 0.0]) == [3, 3, 8, 8]
    assert counts(FreeCores(8, 8), [5.0, 0.0, 5.0, 0.0, 0.0]) == [3, 3, 3, 3, 8]
    assert counts(FreeCores(8, 8), [5.0, 1.0, 2.0, 1.0]) == [3, 3, 6, 6], "as far as both agree"


@given(
    st.integers(1, 16),
    st.floats(0, 18),
    st.lists(st.floats(-SLACK, SLACK).map(lambda noise: noise * 0.99), min_size=3, max_size=60),
)
def test_noise_does_not_make_it_flap(limit: int, level: float, noise: list[float]) -> None:
    seen = counts(FreeCores(limit, limit), [max(0.0, level + each) for each in noise])
    changes = sum(one != other for one, other in pairwise(seen))
    assert changes <= 1, seen


def test_around_a_threshold_it_stays_as_it_is() -> None:
    assert set(counts(FreeCores(2, 2), [0.45, 0.55] * 20)) == {2}
    assert set(counts(FreeCores(2, 2), [1.0, *[0.45, 0.55] * 20])) == {1}


@given(loads)
def test_one_thread_is_the_least(others: list[float]) -> None:
    assert set(counts(FreeCores(1, 1), others)) == {1}
    assert set(counts(FreeCores(1), others)) == {1}


@given(st.lists(st.floats(0, 30), max_size=20))
def test_where_few_of_many_cores_may_be_used_neighbours_elsewhere_take_none(others: list[float]) -> None:
    assert set(counts(FreeCores(2, 64), [0.0, *others])) == {2}


class Counting(FreeCores):
    """Counts its measures."""

    measures = 0

    def settle(self, others: float) -> int:
        assert others >= 0
        self.measures += 1
        return super().settle(others)


def test_it_measures_at_most_every_quarter_second() -> None:
    start = time.monotonic()
    cores = Counting(4)
    assert wait_until(lambda: bool(cores.poll()) and cores.measures == 2, 10)
    assert time.monotonic() - start >= 2 * EVERY_S


# Real work


@needs_two_cores
def test_a_real_neighbour_takes_a_core_and_gives_it_back() -> None:
    limit = usable_cores()
    cores = FreeCores(limit)
    wait_for_idle_cores(cores)
    with spinning():
        assert wait_until(lambda: cores.poll() < limit, 1)
    wait_for_idle_cores(cores)


@needs_two_cores
def test_our_own_work_is_no_neighbour() -> None:
    limit = usable_cores()
    for _ in range(3):  # another program may start to work just then
        cores = Counting(limit)
        wait_for_idle_cores(cores)
        enough = cores.measures + 3
        while cores.measures < enough:
            cores.poll()
        if cores.threads == limit:
            return
    raise AssertionError("our own work took a thread away")


def wait_for_idle_cores(cores: FreeCores) -> None:
    cores.settle(cores.limit)  # so that an idle machine is seen and not assumed
    if not wait_until(lambda: cores.poll() == cores.limit, 10):
        pytest.skip("other programs keep the cores busy")


@contextmanager
def spinning() -> Iterator[None]:
    """A child process that keeps one core busy."""
    code = "print('spinning', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "spinning\n"
        try:
            yield
        finally:
            child.kill()


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < deadline:
        if condition():
            return True
        pause.wait(0.01)
    return False
