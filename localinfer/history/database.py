"""One SQLite file: opened, made or brought up to date; transactions for any thread; every failure in a person's words.

One connection writes, under a lock; those that read are taken from a pool and wait for nobody. It knows the schema's
version and not what is in the tables. A file that is damaged is for ``damage.py``.
"""

import contextlib
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from localinfer import settings
from localinfer.errors import StorageUnavailable
from localinfer.history.schema import APPLICATION_ID, MIGRATIONS

if TYPE_CHECKING:
    import sqlite3

BUSY_S = 4.0  # how long another program's lock is waited for
_IDLE_READERS = 4
_DAMAGE = (11, 26)  # SQLITE_CORRUPT, SQLITE_NOTADB
_WRITABLE = "Make it and its folder writable, or set LOCALINFER_HOME to a folder where you may write."


class Damaged(Exception):
    """The file is no database, or what it holds contradicts itself."""


class Database:
    """The database at ``path``, made if it is missing. Raises ``Damaged``, ``StorageUnavailable``.

    ``thorough``: read all of it first, which takes a second for each gigabyte.
    """

    def __init__(self, path: Path, *, thorough: bool = False) -> None:
        self.path = path
        self._lock = threading.Lock()  # of the writer
        self._pool_lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._closed = False
        settings.make_folder(path.parent)
        _check_place(path)
        try:
            self._prepare(thorough)
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def write(self) -> Iterator["sqlite3.Connection"]:
        """A transaction, on disk when the block ends and undone if it raises. Raises ``StorageUnavailable``."""
        with self._lock, self._worded():
            if self._writer is None:
                self._writer = self._connect()
            connection = self._writer
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._undo(connection)
                raise

    @contextlib.contextmanager
    def read(self) -> Iterator["sqlite3.Connection"]:
        """A connection that sees one state of the data throughout the block. Raises ``StorageUnavailable``."""
        with self._worded():
            with self._pool_lock:
                connection = self._readers.pop() if self._readers else None
            if connection is None:
                connection = self._connect()
                connection.execute("PRAGMA query_only = ON")
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            with self._pool_lock:
                keep = not self._closed and len(self._readers) < _IDLE_READERS
                if keep:
                    self._readers.append(connection)
            if not keep:
                connection.close()

    def close(self) -> None:
        """Let go of the file. Further use raises ``StorageUnavailable``."""
        with self._lock, self._pool_lock:
            self._closed = True
            for connection in (*self._readers, self._writer):
                if connection is not None:
                    connection.close()
            self._readers.clear()
            self._writer = None

    def _connect(self) -> "sqlite3.Connection":
        import sqlite3

        if self._closed:
            raise StorageUnavailable("The conversations are closed.")
        connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        connection.text_factory = _text
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = FAST")  # what was deleted for good is not left in free pages
            connection.execute("PRAGMA cache_size = -8000")
            connection.execute("PRAGMA journal_size_limit = 16000000")
        except BaseException:
            connection.close()
            raise
        return connection

    def _undo(self, connection: "sqlite3.Connection") -> None:
        """Roll back; a connection that cannot even do that is given up."""
        import sqlite3

        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
            self._writer = None

    def _prepare(self, thorough: bool) -> None:
        with contextlib.suppress(OSError):  # the connection says what is wrong
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))  # only its owner may read what was said
        with self._worded(opening=True):
            self._writer = self._connect()
            self._check_version(self._writer)
            if thorough and not _sound(self._writer):
                raise Damaged
            _use_wal(self._writer)
            if self._writer.execute("PRAGMA user_version").fetchone()[0] < len(MIGRATIONS):
                self._migrate()

    def _check_version(self, connection: "sqlite3.Connection") -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and owner != APPLICATION_ID:
            raise StorageUnavailable(
                f"{self.path} is a database of another program.", "Move it away: a new one is made in its place."
            )
        if version > len(MIGRATIONS):
            raise StorageUnavailable(
                f"{self.path} was made by a newer localinfer.", "Update localinfer, or set LOCALINFER_HOME."
            )

    def _migrate(self) -> None:
        with self.write() as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()  # another process may have been faster
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {max(version, len(MIGRATIONS))}")

    @contextlib.contextmanager
    def _worded(self, *, opening: bool = False) -> Iterator[None]:
        import sqlite3

        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLite quotes the damaged part in a message that then is no text.
            damaged = isinstance(error, UnicodeDecodeError)
            code = _DAMAGE[0] if damaged else getattr(error, "sqlite_errorcode", 0) & 0xFF
            if opening and code in _DAMAGE:
                raise Damaged from error
            if code in (*_DAMAGE, sqlite3.SQLITE_ERROR):  # our statements are right: it is the tables that are not
                suspect(self.path)
            raise _unavailable(error, code, self.path) from error


def suspicion(path: Path) -> Path:
    """The file whose presence says that the database at ``path`` was found damaged while it was in use."""
    return path.with_name(f"{path.name}-suspect")


def suspect(path: Path) -> None:
    """Have the database at ``path`` looked at when it is opened next."""
    with contextlib.suppress(OSError):
        suspicion(path).touch()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _check_place(path: Path) -> None:
    """A directory, a pipe or a device in the file's place is refused before anything waits for it."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error.strerror}.", _WRITABLE) from error
    if not stat.S_ISREG(mode):
        raise StorageUnavailable(f"{path} is not a file; the conversations belong there.", "Move it away.")


def _use_wal(connection: "sqlite3.Connection") -> None:
    """With a write-ahead log readers and writers do not wait for each other. SQLite does not wait for its lock here."""
    import sqlite3

    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _sound(connection: "sqlite3.Connection") -> bool:
    """Whether the pages agree with each other and the tables are as we made them. A file that is still to be brought
    up to date is checked by what follows."""
    import sqlite3

    made = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        for statement in (one for statements in MIGRATIONS[:version] for one in statements):
            model.execute(statement)
        same = connection.execute(made).fetchall() == model.execute(made).fetchall()
    return same and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)


def _unavailable(error: Exception, code: int, path: Path) -> StorageUnavailable:
    import sqlite3

    match code:
        case sqlite3.SQLITE_ERROR if "no such module" in str(error):
            return StorageUnavailable(
                "The SQLite of this Python has no full-text search (FTS5).",
                "Use another build of Python, such as uv's.",
            )
        case sqlite3.SQLITE_FULL:
            return StorageUnavailable(f"The disk is full: {path} cannot be written.", "Free some space and try again.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageUnavailable(f"Another program keeps {path} locked.", "Close it and try again.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StorageUnavailable(f"{path} cannot be written.", _WRITABLE)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:
            return StorageUnavailable(
                f"{path} is damaged.",
                "Start localinfer again: it takes over what can be read, and keeps the damaged file.",
            )
        case sqlite3.SQLITE_IOERR:
            return StorageUnavailable(
                f"{path} cannot be read or written.", "Check the disk and its free space, and try again."
            )
    return StorageUnavailable(f"{path} cannot be used: {error}.", "Try again; please report it if it stays.")
