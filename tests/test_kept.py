"""Small files of the state folder: whole or not there."""

import os
import threading
from pathlib import Path

import pytest

from localinfer import kept
from localinfer.errors import StorageUnavailable


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    kept.save(path, {"a": [1, 2]})
    assert kept.load(path, dict[str, list[int]], None) == {"a": [1, 2]}
    assert [entry.name for entry in path.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b'{"a": "b"}', b"[1]"])
def test_what_makes_no_sense_was_never_kept(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)
    assert kept.load(path, dict[str, int], 7) == 7
    assert kept.load(tmp_path / "missing", dict[str, int], 7) == 7
    assert kept.load(tmp_path, dict[str, int], 7) == 7


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.json")
    assert kept.load(tmp_path / "a.json", int, 7) == 7
    kept.save(tmp_path / "a.json", 3)
    assert kept.load(tmp_path / "a.json", int, 7) == 3


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_device_and_a_huge_file_were_never_kept(tmp_path: Path) -> None:
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "huge").write_bytes(b"1" + b" " * (kept.MOST_BYTES - 1))
    assert kept.load(tmp_path / "device", int, 7) == 7
    assert kept.load(tmp_path / "huge", int, 7) == 1
    (tmp_path / "huge").write_bytes(b"1" + b" " * kept.MOST_BYTES)
    assert kept.load(tmp_path / "huge", int, 7) == 7


def test_a_folder_that_cannot_be_made_costs_only_those_who_must_know(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kept.save(tmp_path / "file" / "a.json", 1)
    with pytest.raises((StorageUnavailable, OSError)):
        kept.replace(tmp_path / "file" / "a.json", 1)


def test_what_cannot_be_written_leaves_the_old(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    kept.save(path, 1)
    with pytest.raises(TypeError):
        kept.replace(path, object())
    assert kept.load(path, int, None) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_readers_find_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    long, short = ["x" * 1000] * 50, ["y"]
    kept.save(path, long)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            kept.save(path, short)
            kept.save(path, long)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(300):
            assert kept.load(path, list[str], None) in (long, short)
    finally:
        stop.set()
        writer.join()


def test_the_oldest_go_first(tmp_path: Path) -> None:
    for number in range(5):
        kept.save(tmp_path / str(number), number)
        os.utime(tmp_path / str(number), (number, number))
    kept.trim(tmp_path, 2)
    assert {entry.name for entry in tmp_path.iterdir()} == {"3", "4"}
    kept.trim(tmp_path / "missing", 2)
