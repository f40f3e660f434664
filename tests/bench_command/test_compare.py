"""Then and now: both directions, noise, too few samples, and files that are no reports."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.bench.compare import FLOOR, caveats, compare, read_report
from localinfer.bench.sums import spread
from localinfer.bench.values import Difference, Host, Level, Report, Result, Shape, Speculated, Subject
from localinfer.errors import BadRequest

BASE = (100.0, 101.0, 99.0, 100.5, 99.5)


def report(*results: Result) -> Report:
    return Report(
        format=1,
        localinfer="0",
        taken_at="2026-01-01T00:00:00+00:00",
        complete=True,
        extent="usual",
        seed=1,
        workload="mixed",
        host=Host(system="linux", processor="p", cores=2, memory_bytes=1),
        warnings=(),
        results=results,
    )


def result(
    name: str = "m", factor: float = 1.0, marks: tuple[str, ...] = (), samples: tuple[float, ...] = BASE
) -> Result:
    scaled = spread(value * factor for value in samples)
    return Result(
        subject=Subject(kind="model", name=name),
        load_s=factor,
        shapes=(Shape(isl=128, osl=32, decode_tps=scaled, joules_per_token=scaled, marks=marks),),
        levels=(Level(concurrency=4, requests=5, ttft_s=scaled, total_tps=scaled),),
        speculation=(Speculated(workload="chat", drafter="lookup", prompts=5, tps=scaled),),
    )


def verdicts(differences: tuple[Difference, ...]) -> dict[tuple[str, str], str]:
    return {(one.figure, one.unit): one.verdict for one in differences}


@pytest.mark.parametrize(
    ("factor", "rate", "time", "energy"), [(1.2, "faster", "slower", "more"), (0.8, "slower", "faster", "less")]
)
def test_both_directions(factor: float, rate: str, time: str, energy: str) -> None:
    found = verdicts(compare(report(result()), report(result(factor=factor))))
    assert found["decode, 128 + 32 tokens", "tok/s"] == rate
    assert found["together, 4 clients", "tok/s"] == rate
    assert found["chat, lookup", "tok/s"] == rate
    assert found["first text, 4 clients", "s"] == time
    assert found["decode, 128 + 32 tokens", "J/token"] == energy
    assert found["loading", "s"] == "too few samples"


@given(st.floats(1.2, 5))
def test_now_and_then_are_opposites(factor: float) -> None:
    there = compare(report(result()), report(result(factor=factor)))
    back = compare(report(result(factor=factor)), report(result()))
    opposite = {"faster": "slower", "slower": "faster", "more": "less", "less": "more"}
    for one, other in zip(there, back, strict=True):
        assert other.verdict == opposite.get(one.verdict, one.verdict)
        assert (1 + one.change) * (1 + other.change) == pytest.approx(1)
        assert one.p == other.p


def test_the_same_and_a_change_below_the_floor_are_no_difference() -> None:
    for factor in (1.0, 1 + FLOOR * 0.9, 1 - FLOOR * 0.9):
        found = verdicts(compare(report(result()), report(result(factor=factor))))
        assert set(found.values()) == {"no difference", "too few samples"}


def test_three_samples_cannot_tell() -> None:
    few = result(samples=(1.0, 1.01, 0.99))
    found = compare(report(few), report(result(samples=(2.0, 2.01, 1.99))))
    assert {one.verdict for one in found} == {"too few samples"}
    assert {one.p for one in found} == {None}


def test_subjects_are_paired_by_name_where_there_are_several() -> None:
    then = report(result("a"), result("b"))
    found = compare(then, report(result("b", 2.0), result("c")))
    assert {one.subject for one in found} == {"b"}
    alone = compare(report(result("a")), report(result("b")))
    assert {one.subject for one in alone} == {"b"}


def test_what_was_measured_in_another_way_is_not_compared() -> None:
    then = msgspec.structs.replace(report(result()), extent="quick", warnings=("busy",))
    assert {one.figure for one in compare(then, report(result()))} == {"loading", "decode, 128 + 32 tokens"}
    told = " ".join(caveats(then, report(result())))
    assert "quick run" in told
    assert "disturbed" in told
    elsewhere = msgspec.structs.replace(then, host=msgspec.structs.replace(then.host, processor="q"), complete=False)
    assert "another machine" in " ".join(caveats(elsewhere, report(result())))
    assert "stopped" in " ".join(caveats(elsewhere, report(result())))
    assert caveats(report(result()), report(result())) == ()


def test_a_disturbed_figure_is_marked() -> None:
    found = compare(report(result(marks=("busy",))), report(result()))
    assert {one.figure for one in found if one.marked} == {"decode, 128 + 32 tokens"}


def test_a_report_survives_its_json(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_bytes(msgspec.json.encode(report(result())))
    assert read_report(file) == report(result())


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff\xfe", b"[]", b'{"format": 2}', b"[" * 100_000, b'{"results": [{"subject": "\\u001b[31m"}]}'],
)
def test_what_is_no_report(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_bytes(content)
    with pytest.raises(BadRequest, match=r"old\.json is no report") as caught:
        read_report(file)
    assert "--json" in caught.value.hint
    with pytest.raises(BadRequest, match="cannot be read"):
        read_report(tmp_path / "missing.json")
