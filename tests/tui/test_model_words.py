"""How plans, downloads and lines of the list read, without a screen."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.advice import Planned, of_spec
from localinfer.downloads import Download
from localinfer.machine import Machine
from localinfer.models import fit
from localinfer.models.catalog import catalog
from localinfer.models.explain import gib
from localinfer.models.plan import Ask, MemoryPlan
from localinfer.models.progress import FetchProgress
from tests.models.machines import cpu_only, cuda, dense, experts, machine, metal
from tests.tui.models_app import Here
from tui.widgets.models import lines, words
from tui.widgets.models.lines import Line


def plan(gib: float, here: Machine, **ask: object) -> MemoryPlan:
    return fit.plan(dense(gib), here, Ask(**ask))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (plan(4, machine(32, cuda(12))), "● on the GPU"),
        (plan(9, machine(32, cuda(12)), context=65_536), "● GPU, short"),
        (fit.plan(experts(16), machine(32, cuda(12)), Ask()), "◐ GPU + RAM"),
        (plan(16, machine(32, cuda(12))), "◐ partly"),
        (plan(4, cpu_only(16)), "○ on the CPU"),
        (plan(4, cpu_only(6), context=65_536), "○ CPU, short"),
        (plan(64, cpu_only(16)), "✗ too big"),
        (None, "? not known"),
    ],
)
def test_a_verdict_is_a_glyph_and_a_word(made: MemoryPlan | None, said: str) -> None:
    assert words.verdict(made).plain == said
    assert words.verdict(made).cell_length <= 12  # the column


def test_what_cannot_run_says_so() -> None:
    assert words.verdict(None, "for MLX").plain == "✗ cannot run"


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=6), st.integers(1, 200))
def test_a_bar_is_as_wide_as_it_should_be_and_nothing_in_it_is_invisible(sizes: list[int], width: int) -> None:
    cells = words.shares(sizes, width)
    assert sum(cells) == width
    if width >= len(sizes):
        assert all(count >= 1 for count in cells)


@pytest.mark.parametrize(
    "here", [cpu_only(16), machine(32, cuda(12)), machine(16, metal(11)), machine(32, cuda(12), cuda(8, index=1))]
)
@pytest.mark.parametrize("size_gib", [1.0, 10.0, 40.0])
@pytest.mark.parametrize("width", [30, 42, 76])
def test_every_part_of_a_plan_is_in_the_bars_and_no_line_is_too_long(
    here: Machine, size_gib: float, width: int
) -> None:
    made = plan(size_gib, here)
    text = words.memory(made, width).plain
    assert all(len(line) <= width for line in text.splitlines()), text
    for load in made.devices:
        terms = [term for term in made.terms if term.device == load.id]
        drawn = words.parts(load, terms)
        whole = max(load.needed_bytes + load.margin_bytes, load.free_bytes + load.freed_bytes)
        if load.needed_bytes:
            assert sum(size for *_, size in drawn) == whole
            for glyph, _, name, size in drawn:
                assert f"{glyph} {name} {gib(size)}" in text
            if load.spare_bytes < 0:
                assert f"{gib(-load.spare_bytes)} missing" in text


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "0 s"), (59, "59 s"), (130, "2:10 min"), (3599, "59:59 min"), (3900, "1:05 h")]
)
def test_times(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


def progress(**fields: object) -> FetchProgress:
    usual: dict[str, object] = {"done_bytes": 1_200_000_000, "total_bytes": 2_740_000_000, "stage": "download"}
    return FetchProgress(**(usual | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "queued"}, "waits for its turn"),
        ({"state": "running"}, "connecting…"),
        ({"state": "running", "progress": progress()}, "1.2 GB of 2.7 GB · 44% · – MB/s"),
        (
            {"state": "running", "progress": progress(bytes_per_s=12.3e6, eta_s=130.0)},
            "1.2 GB of 2.7 GB · 44% · 12.3 MB/s · 2:10 min left",
        ),
        ({"state": "running", "progress": progress(stage="verify")}, "checking 44%"),
        ({"state": "running", "progress": progress(stage="wait")}, "another program is fetching it"),
        ({"state": "stopped", "progress": progress()}, "stopped at 44%"),
        ({"state": "stopped"}, "stopped"),
        ({"state": "failed", "message": "no"}, "The download failed."),
    ],
)
def test_a_download_says_how_it_is_doing(fields: dict[str, object], said: str) -> None:
    assert words.download(Download(reference="a", title="A", **fields)) == said  # type: ignore[arg-type]


def test_a_short_progress_fits_its_column() -> None:
    moving = Download(
        reference="a", title="A", state="running", progress=progress(bytes_per_s=1234.5e6, eta_s=35_999.0)
    )
    assert words.download(moving, short=True) == "44% · 1234.5 MB/s · 9:59 h"


def test_each_file_of_the_catalogue_has_a_name_that_means_it_alone() -> None:
    from localinfer.models import store

    for spec in catalog().models:
        for variant in spec.quantizations:
            ref = store.resolve(lines.reference(of_spec(spec, variant)))
            assert ref.spec == spec
            assert ref.quantization == variant


def test_words_are_looked_for_in_names_quantizations_and_abilities() -> None:
    listed = lines.look(Here(machine(32, cuda(12))), Ask()).lines
    (found,) = lines.matching(listed, "GEMMA e2b")
    assert found.key == "gemma-4-e2b"
    assert {line.key for line in lines.matching(listed, "mxfp4")} == {"gpt-oss-20b", "gpt-oss-120b"}
    assert all("vision" in line.capabilities for line in lines.matching(listed, "vision"))
    assert lines.matching(listed, "") == listed
    assert lines.matching(listed, "nothing of that name") == ()


def test_what_is_slow_or_too_big_comes_last_and_the_best_first() -> None:
    listed = lines.look(Here(cpu_only(16)), Ask()).lines
    assert listed[0].recommended
    sections = [line.section for line in listed]
    assert sections == sorted(sections, key=["here", "offered", "heavy"].index)
    for line in listed:
        planned = line.variants[line.usual]
        assert isinstance(planned, Planned)
        assert lines.worthwhile(planned.plan) is (line.section == "offered")


def test_headings_stand_only_over_something() -> None:
    one = Line(key="a", section="hub", title="A")
    two = msgspec.structs.replace(one, key="b", section="here")
    assert list(lines.sectioned((one, two))) == ["here", "hub"]
    assert lines.sectioned(()) == {}
