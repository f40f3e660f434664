"""What loads teach: medians, plausible ratios, a file that may be damaged or missing."""

from pathlib import Path

import pytest

from localinfer import kept
from localinfer.models import fit
from localinfer.models.lessons import KEPT, Lesson, compare, keep, learnt, summary
from localinfer.models.plan import Ask
from tests.models.machines import cpu_only, dense

PLAN = fit.plan(dense(1), cpu_only(16), Ask())


def test_the_median_counts_by_device() -> None:
    known = summary(
        [
            Lesson(device="cpu", model="a", overhead_bytes=10, decode=1.0),
            Lesson(device="cpu", model="b", overhead_bytes=1000, decode=2.0),
            Lesson(device="cpu", model="c", overhead_bytes=30),
            Lesson(device="CUDA0", model="a", overhead_bytes=7, prefill=0.5),
        ]
    )
    assert known.overhead_bytes == {"cpu": 30, "CUDA0": 7}
    assert known.decode == {"cpu": 1.5}
    assert known.prefill == {"CUDA0": 0.5}


@pytest.mark.parametrize("size", [-1, 65 << 30])
@pytest.mark.parametrize("ratio", [0.0, -1.0, 1e9, float("inf")])
def test_a_figure_that_cannot_be_is_passed_over(size: int, ratio: float) -> None:
    odd = Lesson(device="cpu", model="a", overhead_bytes=size, decode=ratio, prefill=ratio)
    assert summary([odd]) == summary([])
    known = summary([odd, odd, Lesson(device="cpu", model="a", overhead_bytes=5, decode=2.0, prefill=0.5)])
    assert (known.overhead_bytes, known.decode, known.prefill) == ({"cpu": 5}, {"cpu": 2.0}, {"cpu": 0.5})


def test_a_load_as_planned_teaches_the_overhead_of_the_plan() -> None:
    (overhead,) = [term.size_bytes for term in PLAN.terms if term.kind == "overhead"]
    assert PLAN.decode_tps is not None
    lesson = compare(PLAN, "a", held_bytes=PLAN.total_bytes, decode_tps=PLAN.decode_tps.middle)
    assert lesson == Lesson(device="cpu", model="a", overhead_bytes=overhead, decode=1.0)


@pytest.mark.parametrize("tps", [0.0, None, 1e9, 1e-9])
def test_what_was_not_measured_or_cannot_be_teaches_nothing(tps: float | None) -> None:
    assert compare(PLAN, "a", decode_tps=tps, prefill_tps=tps).decode is None
    assert compare(PLAN, "a", decode_tps=tps, prefill_tps=tps).prefill is None


def test_the_last_lessons_of_each_device_are_kept(home: Path) -> None:
    keep(Lesson(device="CUDA0", model="a", overhead_bytes=5))
    for number in range(KEPT + 5):
        keep(Lesson(device="cpu", model="a", overhead_bytes=number))
    known = kept.load(home / "state" / "lessons.json", list[Lesson], [])
    assert [x.overhead_bytes for x in known if x.device == "cpu"] == list(range(5, KEPT + 5))
    assert learnt().overhead_bytes == {"cpu": 9, "CUDA0": 5}


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}', '[{"device": 3}]'])
def test_a_damaged_file_teaches_nothing_and_is_replaced(text: str, home: Path) -> None:
    (home / "state").mkdir(parents=True, exist_ok=True)
    (home / "state" / "lessons.json").write_text(text)
    assert learnt().overhead_bytes == {}
    keep(Lesson(device="cpu", model="a", overhead_bytes=3))
    assert learnt().overhead_bytes == {"cpu": 3}


def test_a_folder_that_cannot_be_written_costs_the_lesson_alone(home: Path) -> None:
    (home / "state").write_text("in the way")
    keep(Lesson(device="cpu", model="a", overhead_bytes=3))
    assert learnt().overhead_bytes == {}
