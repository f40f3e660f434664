"""Asking the build: the real one here, and children that fail as broken drivers make them."""

import os
from pathlib import Path

import pytest

from localinfer import probing
from localinfer.errors import BackendUnavailable
from localinfer.machine import Build
from localinfer.probing import known_build, probe


def test_the_real_build_answers() -> None:
    found = probe()
    assert found.version
    assert found.cores > 0
    assert any(device.kind == "CPU" for device in found.devices)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
def test_a_probe_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "PROBE", "tests.children")
    monkeypatch.setattr(probing, "PROBE_TIMEOUT_S", 0.2)
    monkeypatch.setenv("CHILD", "echo")  # it waits for what never comes
    with pytest.raises(BackendUnavailable, match="did not answer"):
        probe()


def test_a_build_for_the_cpu_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = known_build()
    if found.gpu_offload:
        pytest.skip("this build sees devices that come and go")
    monkeypatch.setattr(probing, "probe", lambda: pytest.fail("it was asked again"))
    assert known_build() == found


def test_another_build_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = known_build()
    monkeypatch.setattr(probing, "library_identity", lambda: ["another file"])
    monkeypatch.setattr(probing, "PROBE", "nothing.there")
    with pytest.raises(BackendUnavailable):
        known_build()
    assert found.version


def test_a_folder_in_place_of_the_answer_costs_only_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Build(version="1", system_info="", gpu_offload=False, cores=1, devices=())
    monkeypatch.setattr(probing, "probe", lambda: found)
    known_build()
    (place,) = (home / "state").glob("build-*.json")
    place.unlink()
    place.mkdir()
    assert known_build() == found
    assert place.is_dir()


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_an_answer_that_was_damaged_is_asked_again(text: str, home: Path) -> None:
    found = known_build()
    for kept in (home / "state").glob("build-*.json"):
        kept.write_text(text)
    assert known_build() == found
