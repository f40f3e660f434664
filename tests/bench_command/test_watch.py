"""What may spoil a measurement: other programs, heat and batteries, by recorded looks and on this machine."""

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.bench.watch import BUSY, Look, Watch, judge
from localinfer.machine import PulseReader
from localinfer.machine.values import Power, Pulse


def look(start: float, end: float, others: float | None, power: str = "") -> Look:
    return Look(start, end, others, power)


def test_a_quiet_machine_has_no_marks() -> None:
    assert judge([look(0, 1, 0.0), look(1, 2, BUSY)], [(0, 2)]) == ()
    assert judge([], [(0, 2)]) == ()
    assert judge([look(0, 1, None)], [(0, 2)]) == ()


def test_others_count_by_the_time_they_share_with_what_is_measured() -> None:
    looks = [look(0, 1, 0.0), look(1, 2, 0.8), look(2, 3, 0.0)]
    assert judge(looks, [(0, 1), (2.0, 3)]) == ()
    assert judge(looks, [(1, 2)]) == ("other programs used 80% of the processor",)
    assert judge(looks, [(0.5, 1.5)]) == ("other programs used 40% of the processor",)


def test_power_is_told_once() -> None:
    looks = [look(0, 1, 0.0, "it is hot"), look(1, 2, 0.0, "it is hot"), look(2, 3, 0.0, "on battery")]
    assert judge(looks, [(0, 2)]) == ("it is hot",)
    assert judge(looks, [(0, 3)]) == ("it is hot", "on battery")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 19), st.floats(0.1, 20))
def test_the_mean_is_between_the_least_and_the_most(loads: list[float], start: float, length: float) -> None:
    looks = [look(second, second + 1, load) for second, load in enumerate(loads)]
    told = judge(looks, [(start, start + length)])
    if min(loads) > 1.001 * BUSY and start < len(loads) - 0.01:
        assert told
    if max(loads) < 0.999 * BUSY:
        assert told == ()


class Scripted(PulseReader):
    """A reader that tells what it is told."""

    def __init__(self, power: Power) -> None:
        super().__init__()
        self._told = power

    def take(self) -> Pulse:
        return Pulse(at_s=time.monotonic(), ram_used_bytes=0, ram_total_bytes=1, cpu_load=0.0, power=self._told)


@pytest.mark.parametrize(
    ("power", "wanted"),
    [
        (Power(source="mains"), ()),
        (Power(source="battery"), ("the machine runs on its battery",)),
        (Power(source="battery", throttled="it is hot"), ("it is hot",)),
    ],
)
def test_power_is_told_before_anything_is_measured(power: Power, wanted: tuple[str, ...]) -> None:
    with Watch(reader=Scripted(power)) as watch:
        assert watch.settle() == wanted


def test_a_busy_program_is_seen_and_a_measured_one_is_not() -> None:
    program = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(program) as busy:
        try:
            with Watch() as watch:
                mine = watch.settle()
            with Watch() as watch:
                watch.measures(busy.pid)
                watch.settle()
                start_s = time.monotonic()
                watch.settle()
                without = watch.marks([(start_s, time.monotonic())])
        finally:
            busy.kill()
    assert any("other programs" in mark for mark in mine)
    assert _percent(without) < _percent(mine)


def _percent(marks: tuple[str, ...]) -> int:
    return next((int(mark.split("%")[0].split()[-1]) for mark in marks if "other programs" in mark), 0)
