"""``localinfer rm`` deletes what localinfer fetched, and nothing else."""

import shutil
from pathlib import Path

import pytest

from tests.cli.commands import assert_one_clear_error, run
from tests.tiny_models import write_tiny_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path, "llama")


@pytest.mark.parametrize("place", ["own/mine.gguf", "mine.gguf", "smollm2-135m/mine.gguf"])
def test_what_the_person_put_into_our_folder_stays(place: str, model: Path, home: Path) -> None:
    path = home / "models" / place
    path.parent.mkdir(parents=True)
    shutil.copy(model, path)
    assert_one_clear_error(run("rm", "mine", "--yes"), 2, "did not fetch")
    assert path.exists()


def test_no_link_leads_out_of_our_folder(model: Path, starter_model: Path, home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(starter_model, outside / starter_model.name)
    (home / "models").mkdir(parents=True)
    (home / "models" / "smollm2-135m").symlink_to(outside)
    (home / "models" / "link.gguf").symlink_to(model)
    for name in ("smollm2-135m", "link"):
        assert_one_clear_error(run("rm", name, "--yes"), 2, "did not fetch")
    assert (outside / starter_model.name).exists()
    assert model.exists()
    assert (home / "models" / "link.gguf").is_symlink()


def test_what_came_from_the_package_index_goes(starter_model: Path, home: Path) -> None:
    path = home / "models" / "smollm2-135m" / starter_model.name
    path.parent.mkdir(parents=True)
    shutil.copy(starter_model, path)
    done = run("rm", "smollm2-135m", "--yes")
    assert done.returncode == 0, done.stderr
    assert "98 MB are free again" in done.stdout
    assert not path.exists()


def test_a_file_elsewhere_is_named_and_stays(model: Path) -> None:
    assert_one_clear_error(run("rm", str(model), "--yes"), 2, "did not fetch", str(model))
    assert model.exists()


def test_what_a_stopped_download_left_can_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    blobs = tmp_path / "models--owner--repo" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / ("a" * 64 + ".part")).write_bytes(bytes(2_000_000))
    (blobs / ("b" * 64)).write_bytes(b"a whole file")
    assert_one_clear_error(run("rm", "owner/other", "--yes"), 3, "not on this machine")
    done = run("rm", "owner/repo:Q4_0", "--yes")
    assert "was stopped; 2 MB" in done.stdout
    assert [path.name for path in blobs.iterdir()] == ["b" * 64]
