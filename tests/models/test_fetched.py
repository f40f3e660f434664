"""Deleting what we fetched, and nothing else."""

import os
from pathlib import Path

import pytest

from localinfer.errors import StorageUnavailable
from localinfer.models import fetched


def snapshot(cache: Path, commit: str, blob: str, data: bytes = b"weights") -> Path:
    """A file of a repository as the cache keeps it."""
    root = cache / "models--owner--repo"
    held = root / "blobs" / blob
    held.parent.mkdir(parents=True, exist_ok=True)
    held.write_bytes(data)
    path = root / "snapshots" / commit / "model.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(held, path.parent))
    return path


def test_only_what_was_recorded_is_ours(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.gguf", tmp_path / "theirs.gguf"
    fetched.record([ours])
    fetched.record([ours])
    assert fetched.ours([ours])
    assert not fetched.ours([ours, theirs])


def test_the_blob_goes_with_its_last_link(tmp_path: Path) -> None:
    first, second = (snapshot(tmp_path, commit, "b" * 64) for commit in ("1" * 40, "2" * 40))
    fetched.record([first, second])
    blob = first.resolve()

    assert fetched.delete([first]) == 0
    assert blob.exists()
    assert not fetched.ours([first])
    assert fetched.delete([second]) == len(b"weights")
    assert not blob.exists()
    assert not (tmp_path / "models--owner--repo" / "snapshots" / ("2" * 40)).exists()


def test_a_file_in_the_place_of_a_link_goes_too(tmp_path: Path) -> None:
    path = tmp_path / "models--owner--repo" / "snapshots" / ("1" * 40) / "model.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"12345")
    assert fetched.delete([path]) == 5
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_a_damaged_record_owns_nothing(text: str, home: Path, tmp_path: Path) -> None:
    (home / "state").mkdir(parents=True, exist_ok=True)
    (home / "state" / "fetched.json").write_text(text)
    assert not fetched.ours([tmp_path / "a"])
    fetched.record([tmp_path / "a"])
    assert fetched.ours([tmp_path / "a"])


def test_a_record_that_cannot_be_written_is_said(home: Path, tmp_path: Path) -> None:
    (home / "state").write_text("in the way")
    with pytest.raises(StorageUnavailable):
        fetched.record([tmp_path / "a"])
