"""A damaged database: moved aside, never deleted, and what can be read of it taken over into a new one."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from localinfer.errors import StorageUnavailable
from localinfer.history import rows
from localinfer.history.database import Damaged, Database, suspicion
from localinfer.history.index import put_title
from localinfer.history.lines import title_of

if TYPE_CHECKING:
    import sqlite3

_FILES = ("", "-wal", "-shm")  # of one database
_LONGEST_GROWTH = 100  # times what is left; a larger number in a damaged file is no number of pages
_INDEXES = ("words", "titles")


def opened(path: Path) -> tuple[Database, tuple[str, ...]]:
    """The database at ``path``, and what the person should know about it. Raises ``StorageUnavailable``."""
    suspected = suspicion(path).exists()
    notices: tuple[str, ...] = ()
    try:
        database = Database(path, thorough=suspected)
        if suspected:
            _mend_indexes(database)
    except Damaged:
        database, notice = _begin_anew(path)
        notices = (notice,)
    if suspected:
        suspicion(path).unlink(missing_ok=True)
    return database, notices


def _begin_anew(path: Path) -> tuple[Database, str]:
    aside = _set_aside(path)
    try:
        database = Database(path)
    except Damaged as error:
        raise StorageUnavailable(
            f"{path} cannot be made.", "Set LOCALINFER_HOME to a folder on another disk."
        ) from error
    saved = _take_over(aside, database)
    taken = f"{saved} of its conversations could be taken over" if saved else "nothing in it could be read"
    return database, f"The file of conversations was damaged; {taken}. It was moved to {aside}."


def _set_aside(path: Path) -> Path:
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    aside = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    try:
        for suffix in _FILES:
            source, target = (name.with_name(name.name + suffix) for name in (path, aside))
            if source.exists():
                source.replace(target)
    except OSError as error:
        raise StorageUnavailable(
            f"{path} is damaged and cannot be moved aside: {error.strerror}.", "Move it away yourself."
        ) from error
    return aside


def _take_over(aside: Path, database: Database) -> int:
    """Copy what can be read, row by row; how many conversations that makes."""
    with _readable(aside) as old, database.write() as db:
        for row in _rows(old, "conversations"):
            _insert(db, "conversations", row)
        for row in _rows(old, "turns"):
            row |= {"indexed": 0, "writer": None}
            if row.get("state") == "growing":
                row["state"] = "stopped"
            _insert(db, "conversations", _stand_in(row))
            _insert(db, "turns", row)
        taken = db.execute("SELECT id, title FROM conversations").fetchall()
        for id, title in taken:
            put_title(db, id, rows.text(title))
    return len(taken)


@contextlib.contextmanager
def _readable(aside: Path) -> Iterator["sqlite3.Connection"]:
    """A connection to a copy, so that nothing SQLite does to repair it touches the original."""
    import shutil
    import sqlite3
    import tempfile

    with tempfile.TemporaryDirectory(dir=aside.parent) as folder:
        copy = Path(folder) / aside.name
        with contextlib.suppress(OSError):  # of what is not there nothing can be read
            for suffix in ("-wal", ""):
                if (source := aside.with_name(aside.name + suffix)).exists():
                    shutil.copyfile(source, copy.with_name(copy.name + suffix))
            _restore_length(copy)
        with contextlib.closing(sqlite3.connect(copy)) as old:
            old.text_factory = lambda data: data.decode("utf-8", "replace")
            yield old


def _restore_length(copy: Path) -> None:
    """A file that was cut off gets empty pages in place of those that are missing: SQLite reads nothing of it else.

    The header has the size of a page at byte 16 and their number at byte 28, https://sqlite.org/fileformat.html.
    """
    with copy.open("r+b") as file:
        header = file.read(32)
        length = int.from_bytes(header[16:18]) * int.from_bytes(header[28:32])
        size = copy.stat().st_size
        if size < length <= _LONGEST_GROWTH * size:
            file.truncate(length)


def _rows(old: "sqlite3.Connection", table: str) -> Iterator[dict[str, object]]:
    import sqlite3

    with contextlib.suppress(sqlite3.Error):
        columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
        for id in range(1, _last(old, table) + 1):
            with contextlib.suppress(sqlite3.Error):
                row = old.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE id = ?", (id,)).fetchone()
                if row is not None:
                    yield dict(zip(columns, row, strict=True))


def _last(old: "sqlite3.Connection", table: str) -> int:
    import sqlite3

    ask = (f"SELECT max(id) FROM {table}", f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'")
    for statement in ask:
        with contextlib.suppress(sqlite3.Error):
            row = old.execute(statement).fetchone()
            if row is not None and isinstance(row[0], int):
                return min(row[0], 100_000_000)
    return 0


def _insert(db: "sqlite3.Connection", table: str, row: dict[str, object]) -> None:
    """Add ``row``, unless there is one of that number or it makes no sense."""
    import sqlite3

    known = {column[1] for column in db.execute(f"PRAGMA table_info({table})")}
    names = [name for name in row if name in known]
    with contextlib.suppress(sqlite3.IntegrityError, sqlite3.InterfaceError):
        places = ", ".join("?" * len(names))
        db.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})", [row[name] for name in names])


def _stand_in(turn: dict[str, object]) -> dict[str, object]:
    """A conversation for a turn whose own could not be read."""
    return {
        "id": turn["conversation"],
        "title": title_of(rows.text(turn["content"])),
        "created_s": turn["created_s"],
        "changed_s": turn["created_s"],
        "model": "",
        "head": turn["id"],
        "parameters": "{}",
    }


def _mend_indexes(database: Database) -> None:
    """Make the search indexes anew, which hold nothing of their own. Raises ``Damaged`` where that does not work."""
    try:
        for name in _INDEXES:
            with database.write() as db:
                db.execute(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")
    except StorageUnavailable as error:
        database.close()
        raise Damaged from error
