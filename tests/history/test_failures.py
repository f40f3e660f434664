"""Whatever is wrong with the file or its disk is said in a person's words, and nothing is lost by it."""

import contextlib
import os
import resource
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localinfer.errors import LocalInferError, StorageUnavailable
from localinfer.history import database, schema
from localinfer.history.store import History


def refused(path: Path, *words: str) -> StorageUnavailable:
    """Opening is refused with a hint and with ``words``."""
    with pytest.raises(StorageUnavailable) as raised:
        History(path)
    for word in words:
        assert word in raised.value.message + raised.value.hint
    assert raised.value.hint
    return raised.value


def fill(path: Path, count: int = 40) -> None:
    """Conversations with a few pages of text."""
    with History(path) as history:
        for number in range(count):
            id = history.start().id
            asked = history.add(id, "user", f"question{number} " + "filler " * 50, parent=None)
            history.add(id, "assistant", f"answer{number} " + "words " * 200, parent=asked.id)


def damaged_files(path: Path) -> list[Path]:
    return sorted(path.parent.glob("history-damaged-*.db"))


def test_a_folder_in_its_place(path: Path) -> None:
    path.mkdir()
    refused(path, "not a file")
    assert path.is_dir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")
def test_a_pipe_in_its_place_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    refused(path, "not a file")


def test_a_file_in_the_place_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file" / "history.db", "file is in the way")


@contextlib.contextmanager
def nobody() -> Iterator[Path]:
    """A folder, and within the block nobody's rights: the superuser may write anywhere."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            if os.getuid() == 0:
                os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs rights as POSIX has them")
def test_a_folder_without_the_right_to_write() -> None:
    with nobody() as folder:
        fill(folder / "history.db", 1)
        if os.getuid() == 0:
            os.seteuid(65534)
        else:
            folder.chmod(0o555)
            (folder / "history.db").chmod(0o444)
        refused(folder / "history.db", "LOCALINFER_HOME")
        refused(folder / "new.db", "LOCALINFER_HOME")
        refused(folder / "new" / "history.db", "LOCALINFER_HOME")
        if os.getuid() != 0:
            folder.chmod(0o755)


@pytest.mark.parametrize("data", [b"this is not a database" * 500, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_what_is_no_database_is_moved_aside(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    with History(path) as history:
        (kept,) = damaged_files(path)
        (notice,) = history.notices
        assert kept.name in notice
        assert history.conversations() == ()
        history.start(title="new")
    assert kept.read_bytes() == data
    with History(path) as history:
        assert history.notices == ()
        assert [one.title for one in history.conversations()] == ["new"]


def test_a_file_that_was_cut_off_gives_back_what_it_can(path: Path) -> None:
    fill(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with History(path) as history:
        (kept,) = damaged_files(path)
        assert kept.stat().st_size == len(data) // 2
        saved = history.conversations()
        assert 0 < len(saved) <= 40
        assert str(len(saved)) in history.notices[0]
        turns = history.turns(saved[-1].id)
        assert turns[0].content.startswith("question0 ")
        assert history.search("question0 ")[0].conversation.id == saved[-1].id


def test_damage_found_in_use_is_mended_at_the_next_start(path: Path) -> None:
    fill(path)
    with sqlite3.connect(path) as db:
        (page,) = db.execute("SELECT pageno FROM dbstat WHERE name = 'turns' AND pagetype = 'leaf'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with History(path) as history:
        assert history.notices == ()
        with pytest.raises(StorageUnavailable, match="damaged") as raised:
            list(map(history.turns, [one.id for one in history.conversations()]))
        assert "Start localinfer again" in raised.value.hint
    with History(path) as history:
        assert len(damaged_files(path)) == 1
        saved = [turn for one in history.conversations() for turn in history.turns(one.id)]
        assert 40 < len(saved) < 80
        assert len(history.conversations()) == 40
    with History(path) as history:
        assert history.notices == ()


def test_a_damaged_index_is_made_anew(path: Path) -> None:
    fill(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE words_data SET block = zeroblob(100) WHERE id > 10")
    db.close()
    with History(path) as history, contextlib.suppress(StorageUnavailable):
        history.search("answer7")
        raise AssertionError("the damage should have been noticed")
    with History(path) as history:
        assert history.notices == ()
        assert len(history.search("answer7 ")) == 1
    assert damaged_files(path) == []


def test_a_newer_version_is_left_alone(path: Path) -> None:
    fill(path, 1)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    refused(path, "newer localinfer", "Update")
    assert path.read_bytes() == before


def test_another_programs_database_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    refused(path, "another program")
    assert path.read_bytes() == before


def test_an_older_version_is_brought_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, 2)
    later = (*schema.MIGRATIONS, ("ALTER TABLE turns ADD COLUMN flavour TEXT",))
    monkeypatch.setattr(database, "MIGRATIONS", later)
    with History(path) as history:
        assert len(history.conversations()) == 2
        with history._database.read() as db:
            assert db.execute("SELECT flavour FROM turns").fetchone() == (None,)
            assert db.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, 2)
    broken = (*schema.MIGRATIONS, ("ALTER TABLE turns ADD COLUMN flavour TEXT", "ALTER TABLE nothing ADD COLUMN x"))
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", broken)
        refused(path)
    with History(path) as history:
        assert len(history.conversations()) == 2
        with history._database.read() as db:
            assert "flavour" not in [column[1] for column in db.execute("PRAGMA table_info(turns)")]


def test_a_lock_of_another_program_is_waited_for_only_so_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.1)
    with History(path) as history:
        id = history.start().id
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="locked") as raised:
            history.add(id, "user", "hello", parent=None)
        assert raised.value.hint
        assert history.conversation(id).id == id
        other.execute("ROLLBACK")
        other.close()
        history.add(id, "user", "hello", parent=None)
        assert len(history.turns(id)) == 1


def check_a_full_disk(history: History, fill_up: contextlib.AbstractContextManager[object]) -> None:
    """Writing fails with a hint while there is no room; what was there stays, and it goes on when there is room."""
    id = history.start(title="before").id
    asked = history.add(id, "user", "question", parent=None)
    reply = history.add(id, "assistant", "", parent=asked.id, state="growing")
    written = ""

    def grow() -> None:
        nonlocal written
        for size in range(1, 2_000):
            history.grow(reply.id, "word " * 2_000 * size)
            written = "word " * 2_000 * size

    with fill_up:
        with pytest.raises(LocalInferError) as raised:
            grow()
        assert isinstance(raised.value, StorageUnavailable)
        assert "space" in raised.value.hint
        assert history.turns(id)[1].content == written
        with contextlib.suppress(StorageUnavailable):
            history.search("question")
    assert history.finish(reply.id, "whole").state == "whole"
    assert len(history.search("question")) == 1


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """No file may grow beyond two megabytes, which a process sees as it sees a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_grow(history: History) -> None:
    check_a_full_disk(history, small_files())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk can be mounted only with rights to do so")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_full(small_disk: Path) -> None:
    ballast = small_disk / "ballast"

    @contextlib.contextmanager
    def full() -> Iterator[None]:
        ballast.write_bytes(bytes(1_500_000))
        yield
        ballast.unlink()

    with History(small_disk / "history.db") as history:
        check_a_full_disk(history, full())
    ballast.write_bytes(b"")
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    refused(small_disk / "new.db", "space")
