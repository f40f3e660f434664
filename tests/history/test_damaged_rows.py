"""Rows in which a column holds something of another kind, as in a file that was damaged: they are read all the same."""

import contextlib
import sqlite3
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from localinfer.history import export, tree
from localinfer.history.store import History
from localinfer.history.values import Conversation, Turn

WRONG: dict[str, object] = {
    "bytes": b"\xff\x00 words",
    "nothing in bytes": b"",
    "text": "words \x1b[31m",
    "no text": "",
    "minus": -1,
    "huge": 2**62,
    "half": 0.5,
    "far": 1e300,
    "farther": float("inf"),
    "long ago": -1e300,
    "none": None,
    "another json": '{"upto": "x"}',
    "half a pair": '["\\ud800"]',
    "deep json": "[" * 100_000,
}
COLUMNS = {
    "conversations": (
        *("title", "created_s", "changed_s", "pinned", "model", "head", "parameters", "omissions", "deleted_s"),
    ),
    "turns": (
        *("conversation", "parent", "role", "created_s", "state", "writer", "indexed", "model", "thought_s"),
        *("thought_tokens", "note", "metrics", "content", "reasoning", "attachments"),
    ),
}


def filled(path: Path) -> int:
    """A conversation with a question, an answer and a reply that nobody ended; its number."""
    with History(path) as history:
        id = history.start("a title").id
        asked = history.add(id, "user", "a question of words", parent=None)
        answer = history.add(id, "assistant", "an answer", parent=asked.id)
        history.add(id, "assistant", "half of", parent=answer.id)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE turns SET indexed = 0")
        db.execute("UPDATE turns SET state = 'growing', writer = 'deadbeef' WHERE content = 'half of'")
    return id


def put(path: Path, table: str, column: str, value: object) -> bool:
    """Write ``value`` into ``column`` of every row; False where SQLite itself does not take it."""
    with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.IntegrityError), db:
        db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        return True
    return False


def check(path: Path) -> None:
    """All that can be done with a history is done; what it gives is of the kinds it says."""
    with History(path) as history:
        history.latest()
        for one in history.conversations():
            turns = history.turns(one.id)
            assert msgspec.convert(msgspec.to_builtins(one), Conversation) == one
            assert [msgspec.convert(msgspec.to_builtins(turn), Turn) for turn in turns] == list(turns)
            for at_s in (one.created_s, one.changed_s, *(turn.created_s for turn in turns)):
                assert datetime.fromtimestamp(at_s)
            path_of = tree.branch(turns, one.head)
            tree.messages(path_of, one.parameters, one.omissions)
            assert export.to_markdown(one, turns)
            assert export.to_json(one, turns)
            kept = history.add(one.id, "user", "more words", parent=one.head)
            history.finish(kept.id, "more words")
            history.change(one.id, pinned=True)
        for query in ("words", "title"):
            for hit in history.search(query):
                assert isinstance(hit.excerpt, str)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_with_every_wrong_kind(path: Path, table: str) -> None:
    filled(path)
    pristine = path.read_bytes()
    for column in COLUMNS[table]:
        for kind, value in WRONG.items():
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            path.write_bytes(pristine)
            if put(path, table, column, value):
                try:
                    check(path)
                except Exception as error:
                    raise AssertionError(f"{table}.{column} = {kind}") from error


def test_these_are_all_columns(path: Path) -> None:
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table, columns in COLUMNS.items():
            assert ["id", *columns] == [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def test_what_still_makes_sense_is_kept(path: Path) -> None:
    id = filled(path)
    put(path, "turns", "content", b"was text")
    put(path, "turns", "note", b"\xff")
    put(path, "turns", "thought_s", float("inf"))
    put(path, "turns", "role", "system")
    put(path, "conversations", "changed_s", 1e300)
    with History(path) as history:
        first = history.turns(id)[0]
        assert (first.content, first.note, first.thought_s, first.role) == ("was text", "\ufffd", None, "assistant")
        one: Conversation = history.conversation(id)
        assert one.title == "a title"
        assert datetime.fromtimestamp(one.changed_s).year == 1970


@pytest.mark.parametrize("kind", WRONG)
def test_a_damaged_file_with_such_rows_is_taken_over(path: Path, kind: str) -> None:
    filled(path)
    for table, columns in COLUMNS.items():
        for column in columns:
            if column not in ("deleted_s", "conversation"):
                put(path, table, column, WRONG[kind])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 4096])  # the last page is gone: the file is moved aside
    check(path)
    assert list(path.parent.glob("history-damaged-*.db"))
