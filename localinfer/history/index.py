"""The search index: the words of titles and turns, kept beside them.

A turn is put in when it is finished. A long one, and what a crash has left out, is put in by the next search, which
runs in a thread of its own: neither a new message nor a growing reply waits for the index. How words are split takes
a while to import, so that is done when there is a word.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from localinfer.history import rows
from localinfer.history.database import Database
from localinfer.history.values import Hit

if TYPE_CHECKING:
    import sqlite3

    from localinfer.history.words import Piece

AT_ONCE = 20_000  # characters that are put in without delay: a few milliseconds
_BATCH = 200_000  # characters, about, of one transaction
_MOST_ROWS = 20_000  # matches that are looked at for different conversations

_MATCHING_TITLES = """
    SELECT c.id FROM titles CROSS JOIN conversations c ON c.id = titles.rowid
    WHERE titles MATCH ? AND c.deleted_s IS NULL ORDER BY titles.rowid DESC LIMIT ?"""
_MATCHING_TURNS = """
    SELECT t.id, t.conversation FROM words CROSS JOIN turns t ON t.id = words.rowid
    CROSS JOIN conversations c ON c.id = t.conversation
    WHERE words MATCH ? AND c.deleted_s IS NULL ORDER BY words.rowid DESC LIMIT ?"""


def put_title(db: "sqlite3.Connection", conversation_id: int, title: str) -> None:
    """Have a conversation found by ``title``."""
    from localinfer.history.words import indexed

    db.execute("INSERT OR REPLACE INTO titles (rowid, text) VALUES (?, ?)", (conversation_id, indexed(title)))


def put_turn(db: "sqlite3.Connection", turn_id: int, text: str) -> None:
    """Have a turn found by ``text``."""
    from localinfer.history.words import indexed

    db.execute("INSERT OR REPLACE INTO words (rowid, text) VALUES (?, ?)", (turn_id, indexed(text)))
    db.execute("UPDATE turns SET indexed = 1 WHERE id = ?", (turn_id,))


def forget(db: "sqlite3.Connection", conversation_id: int) -> None:
    """Have a conversation that is about to be deleted not found any more."""
    db.execute("DELETE FROM titles WHERE rowid = ?", (conversation_id,))
    db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM turns WHERE conversation = ?)", (conversation_id,))


def catch_up(database: Database) -> None:
    """Put in what is not in yet."""
    with database.read() as db:
        waiting = [row[0] for row in db.execute("SELECT id FROM turns WHERE indexed = 0 AND state != 'growing'")]
    left = iter(waiting)
    for first in left:
        with database.write() as db:
            put = 0
            for id in itertools.chain((first,), left):
                put += _put_waiting(db, id)
                if put > _BATCH:
                    break


def _put_waiting(db: "sqlite3.Connection", turn_id: int) -> int:
    row = db.execute("SELECT content, attachments FROM turns WHERE id = ? AND indexed = 0", (turn_id,)).fetchone()
    if row is None:
        return 0
    text = rows.searchable(rows.text(row[0]), rows.attachments(row[1]))
    put_turn(db, turn_id, text)
    return 100 + len(text)


def find(db: "sqlite3.Connection", pieces: "tuple[Piece, ...]", limit: int) -> tuple[Hit, ...]:
    """Up to ``limit`` conversations: first those whose title matches, then those with a matching turn, the newest
    first in both."""
    from localinfer.history.words import expression

    wanted = expression(pieces)
    found: dict[int, int | None] = {id: None for (id,) in db.execute(_MATCHING_TITLES, (wanted, limit))}
    if len(found) < limit:
        for turn_id, conversation_id in db.execute(_MATCHING_TURNS, (wanted, _MOST_ROWS)):
            if found.setdefault(conversation_id, turn_id) == turn_id and len(found) == limit:
                break
    return tuple(_hits(db, pieces, found))


def _hits(db: "sqlite3.Connection", pieces: "tuple[Piece, ...]", found: dict[int, int | None]) -> Iterator[Hit]:
    from localinfer.history.excerpt import excerpt

    for conversation_id, turn_id in found.items():
        row = db.execute(f"SELECT {rows.CONVERSATION} FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        conversation = rows.conversation(row)
        text = conversation.title
        if turn_id is not None:
            content, attached = db.execute("SELECT content, attachments FROM turns WHERE id = ?", (turn_id,)).fetchone()
            text = rows.searchable(rows.text(content), rows.attachments(attached))
        line, marks = excerpt(text, pieces)
        yield Hit(conversation=conversation, turn=turn_id, excerpt=line, marks=marks)
