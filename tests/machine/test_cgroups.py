"""What control groups leave of memory and processor time: real files of simulated groups."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from localinfer.machine import Sources, available_memory_bytes, cgroups, total_memory_bytes
from tests.machine.recorded import MIB

Groups = Callable[..., Sources]


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    """Write the files of one group; ``own`` is what /proc/self/cgroup says then."""

    def write(folder: str = "", own: str | None = None, **files: object) -> Sources:
        group = tmp_path / "sys/fs/cgroup" / folder
        group.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (group / name.replace("__", ".")).write_text(f"{content}\n")
        if own is not None:
            (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
            (tmp_path / "proc/self/cgroup").write_text(own)
        return Sources(tmp_path)

    return write


STAT = {"memory__stat": "anon 1\ninactive_file 0"}
ROOT = "0::/\n"

# Memory


def test_memory_without_groups_is_the_machines(tmp_path: Path) -> None:
    machine = psutil.virtual_memory().total
    assert 0 < available_memory_bytes(Sources(tmp_path)) <= total_memory_bytes(Sources(tmp_path)) == machine


def test_the_limit_of_a_container_counts(groups: Groups) -> None:
    sources = groups("", ROOT, memory__max=100 * MIB, memory__current=30 * MIB, **STAT)
    assert available_memory_bytes(sources) == 70 * MIB
    assert total_memory_bytes(sources) == 100 * MIB


def test_what_the_kernel_gives_back_is_free(groups: Groups) -> None:
    stat = f"anon 1\ninactive_file {20 * MIB}"
    sources = groups("", ROOT, memory__max=100 * MIB, memory__current=30 * MIB, memory__stat=stat)
    assert available_memory_bytes(sources) == 90 * MIB


def test_the_tightest_limit_on_the_way_up_counts(groups: Groups) -> None:
    groups("user/app/scope", memory__max="max", memory__current=10 * MIB, **STAT)
    groups("user/app", memory__max=64 * MIB, memory__current=14 * MIB, **STAT)
    groups("user", memory__max=60 * MIB, memory__current=30 * MIB, **STAT)
    sources = groups("other", "0::/user/app/scope\n", memory__max=1, memory__current=0, **STAT)
    assert available_memory_bytes(sources) == 30 * MIB
    assert total_memory_bytes(sources) == 60 * MIB


def test_a_group_over_its_limit_leaves_nothing(groups: Groups) -> None:
    sources = groups("", ROOT, memory__max=10 * MIB, memory__current=11 * MIB, **STAT)
    assert available_memory_bytes(sources) == 0


def test_memory_of_version_1(groups: Groups) -> None:
    sources = groups(
        "memory/docker/box",
        "5:cpu,cpuacct:/x\n4:memory:/docker/box\n0::/\n",
        memory__limit_in_bytes=50 * MIB,
        memory__usage_in_bytes=20 * MIB,
        memory__stat=f"inactive_file 1\ntotal_inactive_file {5 * MIB}",
    )
    assert available_memory_bytes(sources) == 35 * MIB


def test_a_path_that_leads_out_of_the_groups_stays_inside(groups: Groups) -> None:
    sources = groups("app", "0::/../app\n", memory__max=50 * MIB, memory__current=0, **STAT)
    assert available_memory_bytes(sources) == 50 * MIB


@pytest.mark.parametrize("own", ["nonsense\n", "0\n::::\n", "", "4:memory\n"])
def test_files_that_make_no_sense_are_ignored(groups: Groups, own: str) -> None:
    sources = groups("", own, memory__max="lots", memory__current="", memory__stat="what is this", cpu__max="a b c")
    assert available_memory_bytes(sources) > 0
    assert cgroups.cpu_quota(sources) == cgroups.NO_QUOTA


# Processor time


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("max 100000", None),
        ("200000 100000", 2.0),
        ("150000 100000", 1.5),
        ("10000 100000", 0.1),
        ("", None),
        ("100000", None),
        ("100000 0", None),
        ("-1 100000", None),
        ("one two", None),
        ("é", None),
    ],
)
def test_the_quota_of_a_container(groups: Groups, text: str, quota: float | None) -> None:
    for own in (ROOT, None):
        sources = groups("", own, cpu__max=text)
        assert cgroups.cpu_quota(sources) == (quota or cgroups.NO_QUOTA)


def test_the_smallest_quota_of_all_enclosing_groups_counts(groups: Groups) -> None:
    own = "4:memory:/elsewhere\n0::/user.slice/app.scope\n"
    sources = groups("user.slice/app.scope", own)
    assert cgroups.cpu_quota(sources) == cgroups.NO_QUOTA
    groups("user.slice/app.scope", cpu__max="400000 100000")
    assert cgroups.cpu_quota(sources) == 4
    groups("user.slice", cpu__max="300000 100000")
    assert cgroups.cpu_quota(sources) == 3
    groups("", ROOT)
    assert cgroups.cpu_quota(sources) == cgroups.NO_QUOTA


@pytest.mark.parametrize(("quota", "cores"), [(150000, 1.5), (-1, cgroups.NO_QUOTA)])
def test_the_quota_of_version_1(groups: Groups, quota: int, cores: float) -> None:
    groups("cpu/docker/box", "3:cpu,cpuacct:/docker/box\n0::/\n", cpu__cfs_quota_us=quota, cpu__cfs_period_us=100000)
    assert cgroups.cpu_quota(groups()) == cores
