"""What a report looks like: nothing foreign commands the terminal, nothing is wider than it, marks are explained."""

import re

import msgspec
import pytest

from localinfer.bench.compare import compare
from localinfer.bench.sums import spread
from localinfer.bench.tables import drawn
from localinfer.bench.values import Level, Report, Result, Shape, Speculated, Subject
from tests.bench_command.test_compare import report

EVIL = "a\x1b[31m\x9b2J[red]b\n\u202ec"
SOME = spread([1234.5, 0.01, 12.3])


def full(marks: tuple[str, ...] = ()) -> Report:
    return report(
        Result(
            subject=Subject(
                kind="model",
                name=EVIL,
                backend="llama.cpp",
                placement="CPU",
                threads=2,
                parameters=30_000_000_000,
                active_parameters=3_000_000_000,
                url=EVIL,
                draft=EVIL,
            ),
            load_s=1.0,
            resident_bytes=2**30,
            planned_bytes=2**31,
            shapes=(
                Shape(
                    isl=8192,
                    osl=256,
                    prefill_tps=SOME,
                    prefill_flops=1.5e12,
                    decode_tps=SOME,
                    itl_ms=SOME,
                    bytes_per_token=123_456_789,
                    bandwidth_share=0.5,
                    bandwidth_estimated=True,
                    joules_per_token=SOME,
                    marks=marks,
                ),
                Shape(isl=1, osl=2),
            ),
            levels=(
                Level(concurrency=256, requests=512, ttft_s=SOME, itl_ms=SOME, tps=SOME, total_tps=SOME),
                Level(concurrency=1, requests=0),
            ),
            speculation=(
                Speculated(workload=EVIL, drafter="off", prompts=6, tps=SOME),
                Speculated(workload=EVIL, drafter="model", prompts=6, tps=SOME, gain=SOME, same_text=5),
            ),
            notes=(EVIL,),
        )
    )


@pytest.mark.parametrize("width", [72, 80, 120])
def test_nothing_foreign_commands_the_terminal_or_breaks_the_lines(width: int) -> None:
    shown = msgspec.structs.replace(full((EVIL,)), warnings=(EVIL,))
    shown = msgspec.structs.replace(shown, comparison=compare(shown, shown))
    text = drawn(shown, width, colours=False)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "[red]" in text
    assert max(map(len, text.splitlines())) <= width
    coloured = drawn(shown, width, colours=True)
    assert "\x1b[" in coloured
    assert "\x1b[31m\x9b" not in coloured


def test_what_was_not_measured_is_a_dash() -> None:
    (line,) = (line for line in drawn(full(), 100, colours=False).splitlines() if line.lstrip().startswith("1 + 2"))
    assert line.split() == ["1", "+", "2", *"–" * 7]


def test_estimates_and_active_parameters_say_so() -> None:
    text = drawn(full(), 120, colours=False)
    assert "~50%" in text
    assert "30.0B parameters · 3.0B active" in text
    assert "1.0 GiB of RAM (planned in all: 2.0 GiB)" in text


def test_marks_of_one_kind_are_told_once_with_the_worst() -> None:
    text = drawn(
        full(("other programs used 9% of it", "other programs used 81% of it", "it is hot")), 120, colours=False
    )
    assert text.count("other programs") == 1
    assert "! other programs used 81% of it while" in text
    assert "! it is hot while" in text
    assert "!" not in drawn(full(), 120, colours=False)


def test_a_stopped_run_says_so() -> None:
    stopped = msgspec.structs.replace(full(), complete=False)
    assert "Stopped" in drawn(stopped, 80, colours=False)
    assert "Stopped" not in drawn(full(), 80, colours=False)
