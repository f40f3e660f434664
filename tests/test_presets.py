"""Presets: kept whole, by name, and never in the way of those built in."""

from pathlib import Path

import pytest

from localinfer import presets
from localinfer.errors import BadRequest, StorageUnavailable
from localinfer.generation import check
from localinfer.presets import Preset
from localinfer.types import GenerationRequest, Sampling


def names() -> list[str]:
    return [preset.name for preset in presets.presets()]


def test_three_are_there_from_the_start_and_each_can_be_carried_out() -> None:
    assert names() == ["precise", "balanced", "creative"]
    for preset in presets.presets():
        check(GenerationRequest(prompt="x", sampling=preset.sampling))
        assert preset.system is None, "a built-in one leaves the system prompt alone"


def test_what_was_saved_is_there_again_and_replaces_its_namesake(home: Path) -> None:
    mine = Preset(name="  Code ", sampling=Sampling(temperature=0, seed=1, logit_bias={5: -1.5}), system="Be brief.")
    presets.save(mine)
    presets.save(Preset(name="all"))
    assert names() == ["precise", "balanced", "creative", "all", "Code"]
    assert presets.presets()[-1] == Preset(name="Code", sampling=mine.sampling, system="Be brief.")
    presets.save(Preset(name="Code"))
    assert presets.presets()[-1] == Preset(name="Code")
    presets.delete("Code")
    presets.delete("never there")
    assert names() == ["precise", "balanced", "creative", "all"]
    assert [path.name for path in (home / "state").iterdir()] == ["presets.json"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 41, "a\nb", "a\x1b[31m", "precise", " Balanced "])
def test_a_name_that_will_not_do(name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        presets.save(Preset(name=name))
    assert caught.value.hint
    with pytest.raises(BadRequest):
        presets.delete(name)
    assert names() == ["precise", "balanced", "creative"]


def test_a_damaged_or_edited_file_costs_only_what_makes_no_sense(home: Path) -> None:
    (home / "state").mkdir()
    file = home / "state" / "presets.json"
    file.write_text("{")
    assert names() == ["precise", "balanced", "creative"]
    file.write_text('[{"name": "precise"}, {"name": "\\u001b[2J"}, {"name": "good"}]')
    assert names() == ["precise", "balanced", "creative", "good"]


def test_a_folder_that_cannot_be_written(home: Path) -> None:
    (home / "state").write_text("in the way")
    with pytest.raises(StorageUnavailable):
        presets.save(Preset(name="mine"))
