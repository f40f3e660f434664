"""What loads teach: medians, plausible ratios, a file that may be damaged or missing."""

from pathlib import Path

import pytest

from localinfer import kept
from localinfer.models import fit
from localinfer.models.layout import Lessons
from localinfer.models.lessons import KEPT, Lesson, compare, keep, learnt, summary
from localinfer.models.plan import Ask
from tests.models.machines import cpu_only, dense

GIB = 2**30
PLAN = fit.plan(dense(1), cpu_only(16), Ask())


def test_overheads_are_medians_and_all_is_by_device() -> None:
    known = summary(
        [
            Lesson(device="cpu", model="a", overhead_bytes=10, decode=1.0),
            Lesson(device="cpu", model="b", overhead_bytes=1000, decode=2.0),
            Lesson(device="cpu", model="c", overhead_bytes=30),
            Lesson(device="CUDA0", model="a", overhead_bytes=7, prefill=0.5),
        ]
    )
    assert known.overhead_bytes == {"cpu": 30, "CUDA0": 7}
    assert [pace.ratio for pace in known.decode["cpu"]] == [1.0, 2.0]
    assert [pace.ratio for pace in known.prefill["CUDA0"]] == [0.5]
    assert "CUDA0" not in known.decode


@pytest.mark.parametrize("size", [-1, 65 << 30])
@pytest.mark.parametrize("ratio", [0.0, -1.0, 1e9, float("inf")])
def test_a_figure_that_cannot_be_is_passed_over(size: int, ratio: float) -> None:
    odd = Lesson(device="cpu", model="a", overhead_bytes=size, decode=ratio, prefill=ratio)
    assert summary([odd]) == summary([])
    known = summary([odd, odd, Lesson(device="cpu", model="a", overhead_bytes=5, decode=2.0, prefill=0.5)])
    assert known.overhead_bytes == {"cpu": 5}
    assert [[pace.ratio for pace in told["cpu"]] for told in (known.decode, known.prefill)] == [[2.0], [0.5]]


def test_a_load_as_planned_teaches_the_overhead_of_the_plan() -> None:
    (overhead,) = [term.size_bytes for term in PLAN.terms if term.kind == "overhead"]
    assert PLAN.decode_tps is not None
    lesson = compare(PLAN, "a", held_bytes=PLAN.total_bytes, decode_tps=PLAN.decode_tps.middle)
    assert (lesson.device, lesson.model, lesson.overhead_bytes, lesson.decode) == ("cpu", "a", overhead, 1.0)
    assert GIB < lesson.read_bytes < 1.5 * GIB


@pytest.mark.parametrize("tps", [0.0, None, 1e9, 1e-9])
def test_what_was_not_measured_or_cannot_be_teaches_nothing(tps: float | None) -> None:
    assert compare(PLAN, "a", decode_tps=tps, prefill_tps=tps).decode is None
    assert compare(PLAN, "a", decode_tps=tps, prefill_tps=tps).prefill is None


def replies(ratio: float, *, times: int, size: float) -> Lessons:
    """What ``times`` replies of a model of ``size`` GiB taught on the CPU."""
    lesson = Lesson(device="cpu", model="a", decode=ratio, prefill=ratio, read_bytes=int(size * GIB))
    return summary([lesson] * times)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 3.0])
@pytest.mark.parametrize(("times", "size"), [(1, 1), (2, 1), (50, 0.1), (50, 8)])
def test_a_few_replies_or_those_of_another_kind_of_model_change_nothing(ratio: float, times: int, size: float) -> None:
    taught = fit.plan(dense(1), cpu_only(16), Ask(), lessons=replies(ratio, times=times, size=size))
    assert (taught.decode_tps, taught.prefill_tps) == (PLAN.decode_tps, PLAN.prefill_tps)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 3.0])
def test_several_of_a_comparable_model_move_the_middle_by_what_was_measured(ratio: float) -> None:
    taught = fit.plan(dense(1), cpu_only(16), Ask(), lessons=replies(ratio, times=3, size=2))
    for now, plain in ((taught.decode_tps, PLAN.decode_tps), (taught.prefill_tps, PLAN.prefill_tps)):
        assert now is not None
        assert plain is not None
        assert now.middle == pytest.approx(ratio * plain.middle)


def test_what_was_learnt_is_learnt_again_from_the_same_speed() -> None:
    """A machine of a constant speed teaches the same ratio, whatever has been learnt already."""
    assert PLAN.decode_tps is not None
    measured = 0.4 * PLAN.decode_tps.middle
    known: list[Lesson] = []
    for _ in range(8):
        plan = fit.plan(dense(1), cpu_only(16), Ask(), lessons=summary(known))
        known.append(compare(plan, "a", decode_tps=measured))
    assert [lesson.decode for lesson in known] == pytest.approx([0.4] * 8)


def test_the_last_lessons_of_each_model_and_device_are_kept(home: Path) -> None:
    keep(Lesson(device="CUDA0", model="a", overhead_bytes=5))
    keep(Lesson(device="cpu", model="b", decode=0.5))
    for number in range(KEPT + 5):
        keep(Lesson(device="cpu", model="a", overhead_bytes=number))
    known = kept.load(home / "state" / "lessons.json", list[Lesson], [])
    assert [x.overhead_bytes for x in known if (x.device, x.model) == ("cpu", "a")] == list(range(5, KEPT + 5))
    assert [x.decode for x in known if x.model == "b"] == [0.5]
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
