"""The conversations on disk. Every call is one transaction: what it has returned is in the file, whatever becomes of
the process. Several programs may share the file. It may be used from any thread and knows nothing of models.

Each call raises ``StorageUnavailable`` when the file cannot be used, and ``ConversationNotFound`` for a number that
names nothing; after a failed call the store goes on working as soon as the disk does.
"""

import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType

from localinfer import settings
from localinfer.errors import ConversationNotFound, StorageUnavailable
from localinfer.history import damage, index, owners, rows
from localinfer.history.database import suspicion
from localinfer.history.lines import one_line, storable, title_of
from localinfer.history.values import Attachment, Conversation, Hit, Omission, Parameters, Turn, TurnState
from localinfer.types import Metrics

if TYPE_CHECKING:
    import sqlite3

_DEFAULT = Parameters()
KEPT_S = 86_400.0  # how long a deleted conversation can be restored
_PURGE_S = 0.05  # of opening may go into deleting for good; what is left is for the next time


class History:
    """All conversations of the person, in ``path`` (default: ``settings.history_file()``).

    Opening ends the replies that a process which is gone has left unfinished, and deletes for good what was deleted a
    day ago. ``notices`` is what the person should know about the file, such as that it was damaged.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or settings.history_file()
        self._open()
        self._owner = owners.Owner(self._path)

    def _open(self) -> None:
        self._database, self.notices = damage.opened(self._path)
        try:
            self._recover()
        except StorageUnavailable:
            self._database.close()
            if not suspicion(self._path).exists():
                raise
            self._database, self.notices = damage.opened(self._path)  # the damage was noticed just now
            self._recover()

    def _recover(self) -> None:
        self._end_abandoned()
        self._purge()

    # Reading

    def conversations(self, limit: int | None = None, offset: int = 0) -> tuple[Conversation, ...]:
        """Those that are pinned first, then the newest."""
        with self._database.read() as db:
            found = db.execute(
                f"SELECT {rows.CONVERSATION} FROM conversations WHERE deleted_s IS NULL "
                "ORDER BY pinned DESC, changed_s DESC, id DESC LIMIT ? OFFSET ?",
                (-1 if limit is None else limit, offset),
            )
            return tuple(map(rows.conversation, found))

    def conversation(self, conversation_id: int) -> Conversation:
        """The conversation of that number."""
        with self._database.read() as db:
            return _conversation(db, conversation_id)

    def latest(self) -> Conversation | None:
        """The one in which something was said last."""
        with self._database.read() as db:
            row = db.execute(
                f"SELECT {rows.CONVERSATION} FROM conversations WHERE deleted_s IS NULL "
                "ORDER BY changed_s DESC, id DESC LIMIT 1"
            ).fetchone()
            return rows.conversation(row) if row else None

    def turns(self, conversation_id: int) -> tuple[Turn, ...]:
        """The turns of all branches, in the order in which they were begun."""
        with self._database.read() as db:
            found = db.execute(f"SELECT {rows.TURN} FROM turns WHERE conversation = ? ORDER BY id", (conversation_id,))
            return tuple(map(rows.turn, found))

    def search(self, query: str, limit: int = 50) -> tuple[Hit, ...]:
        """Conversations with all words of ``query`` in the title or in one message, see ``words.parse``; the newest
        first, titles before messages. Takes up to a tenth of a second, and longer after a long text was added: call it
        in a thread."""
        from localinfer.history.words import parse

        pieces = parse(query)
        if not pieces:
            return ()
        index.catch_up(self._database)
        with self._database.read() as db:
            return index.find(db, pieces, limit)

    # Writing

    def start(self, title: str = "", model: str = "", parameters: Parameters = _DEFAULT) -> Conversation:
        """A new conversation."""
        now = time.time()
        with self._database.write() as db:
            id = db.execute(
                "INSERT INTO conversations (title, created_s, changed_s, model, parameters) VALUES (?, ?, ?, ?, ?)",
                (one_line(title), now, now, storable(model), rows.encode(parameters)),
            ).lastrowid
            assert id is not None
            index.put_title(db, id, one_line(title))
            return _conversation(db, id)

    def add(
        self,
        conversation_id: int,
        role: Literal["user", "assistant"],
        content: str,
        *,
        parent: int | None,
        attachments: Sequence[Attachment] = (),
        state: TurnState = "whole",
        model: str = "",
        reasoning: str = "",
    ) -> Turn:
        """A new turn after ``parent``, which becomes the head of its conversation. The first message of the person
        gives a conversation without a title one. A reply that is being written is added with the state ``growing``."""
        now = time.time()
        content, reasoning = storable(content), storable(reasoning)
        attached = [Attachment(name=one_line(one.name), text=storable(one.text)) for one in attachments]
        text = rows.searchable(content, attached)
        with self._database.write() as db:
            conversation = _conversation(db, conversation_id)
            values = {
                "conversation": conversation_id,
                "parent": parent,
                "role": role,
                "created_s": now,
                "state": state,
                "writer": self._owner.token if state == "growing" else None,
                "model": storable(model),
                "content": content,
                "reasoning": reasoning,
                "attachments": rows.encode(attached),
            }
            id = db.execute(f"INSERT INTO turns {_columns(values)}", values).lastrowid
            assert id is not None
            if state != "growing":
                _index_soon(db, id, text)
            title = conversation.title
            if not title and role == "user":
                title = title_of(content) or (attached[0].name if attached else "")
                index.put_title(db, conversation_id, title)
            db.execute(
                "UPDATE conversations SET head = ?, changed_s = ?, title = ? WHERE id = ?",
                (id, now, title, conversation_id),
            )
            return _turn(db, id)

    def grow(self, turn_id: int, content: str, reasoning: str = "") -> None:
        """What has come of a reply so far, all of it."""
        with self._database.write() as db:
            done = db.execute(
                "UPDATE turns SET content = ?, reasoning = ? WHERE id = ?",
                (storable(content), storable(reasoning), turn_id),
            )
            if not done.rowcount:
                raise _gone("message", turn_id)

    def finish(
        self,
        turn_id: int,
        content: str,
        reasoning: str = "",
        state: TurnState = "whole",
        metrics: Metrics | None = None,
        thought_s: float | None = None,
        thought_tokens: int = 0,
        note: str = "",
    ) -> Turn:
        """A reply as it stays."""
        now = time.time()
        content = storable(content)
        with self._database.write() as db:
            values = {
                "content": content,
                "reasoning": storable(reasoning),
                "state": state,
                "writer": None,
                "metrics": None if metrics is None else rows.encode(metrics),
                "thought_s": thought_s,
                "thought_tokens": thought_tokens,
                "note": storable(note),
                "indexed": 0,
            }
            done = db.execute(f"UPDATE turns SET {_assignments(values)} WHERE id = :id", {**values, "id": turn_id})
            if not done.rowcount:
                raise _gone("message", turn_id)
            turn = _turn(db, turn_id)
            _index_soon(db, turn_id, rows.searchable(content, turn.attachments))
            db.execute(
                "UPDATE conversations SET changed_s = ? WHERE id = (SELECT conversation FROM turns WHERE id = ?)",
                (now, turn_id),
            )
            return turn

    def change(
        self,
        conversation_id: int,
        *,
        title: str | UnsetType = UNSET,
        pinned: bool | UnsetType = UNSET,
        model: str | UnsetType = UNSET,
        head: int | UnsetType | None = UNSET,
        parameters: Parameters | UnsetType = UNSET,
        omissions: Sequence[Omission] | UnsetType = UNSET,
    ) -> Conversation:
        """Change what is given; it does not make the conversation a newer one."""
        values: dict[str, str | int | None] = {}
        if title is not UNSET:
            values["title"] = one_line(title)
        if pinned is not UNSET:
            values["pinned"] = int(pinned)
        if model is not UNSET:
            values["model"] = storable(model)
        if head is not UNSET:
            values["head"] = head
        if parameters is not UNSET:
            values["parameters"] = storable(rows.encode(parameters))
        if omissions is not UNSET:
            values["omissions"] = storable(rows.encode(omissions))
        with self._database.write() as db:
            if values:
                changing = f"UPDATE conversations SET {_assignments(values)} WHERE id = :id"
                db.execute(changing, {**values, "id": conversation_id})
            if title is not UNSET:
                index.put_title(db, conversation_id, one_line(title))
            return _conversation(db, conversation_id)

    def delete(self, conversation_id: int) -> None:
        """Take a conversation away; for a day ``restore`` brings it back."""
        self._set_deleted(conversation_id, time.time())

    def restore(self, conversation_id: int) -> Conversation:
        """Bring a deleted conversation back."""
        self._set_deleted(conversation_id, None)
        return self.conversation(conversation_id)

    def close(self) -> None:
        """Let go of the file; replies of this writer that are still growing are ended as stopped."""
        if self._owner.writes:
            with contextlib.suppress(StorageUnavailable), self._database.write() as db:
                _end(db, self._owner.token)
        self._database.close()
        self._owner.release()

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _set_deleted(self, conversation_id: int, when_s: float | None) -> None:
        with self._database.write() as db:
            done = db.execute(
                "UPDATE conversations SET deleted_s = ? WHERE id = ? AND (deleted_s IS NULL) = ?",
                (when_s, conversation_id, when_s is not None),
            )
            if not done.rowcount:
                raise _gone("conversation", conversation_id)

    def _end_abandoned(self) -> None:
        asking = "SELECT DISTINCT writer FROM turns WHERE state = 'growing'"
        with self._database.read() as db:
            if db.execute(asking).fetchone() is None:
                return
        with self._database.write() as db:
            for (writer,) in db.execute(asking).fetchall():
                if owners.gone(self._path, rows.text(writer)):
                    _end(db, writer)

    def _purge(self) -> None:
        until = time.monotonic() + _PURGE_S
        with self._database.read() as db:
            old = db.execute("SELECT id FROM conversations WHERE deleted_s < ?", (time.time() - KEPT_S,)).fetchall()
        for (id,) in old:
            with self._database.write() as db:
                index.forget(db, id)
                db.execute("DELETE FROM conversations WHERE id = ?", (id,))
            if time.monotonic() > until:
                return


def _conversation(db: "sqlite3.Connection", conversation_id: int) -> Conversation:
    row = db.execute(
        f"SELECT {rows.CONVERSATION} FROM conversations WHERE id = ? AND deleted_s IS NULL", (conversation_id,)
    ).fetchone()
    if row is None:
        raise _gone("conversation", conversation_id)
    return rows.conversation(row)


def _turn(db: "sqlite3.Connection", turn_id: int) -> Turn:
    return rows.turn(db.execute(f"SELECT {rows.TURN} FROM turns WHERE id = ?", (turn_id,)).fetchone())


def _end(db: "sqlite3.Connection", writer: str | None) -> None:
    db.execute("UPDATE turns SET state = 'stopped', writer = NULL WHERE state = 'growing' AND writer IS ?", (writer,))


def _index_soon(db: "sqlite3.Connection", turn_id: int, text: str) -> None:
    """Now if that is quick, else by the next search."""
    if len(text) <= index.AT_ONCE:
        index.put_turn(db, turn_id, text)


def _columns(values: Iterable[str]) -> str:
    return f"({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)})"


def _assignments(values: Iterable[str]) -> str:
    return ", ".join(f"{name} = :{name}" for name in values)


def _gone(what: str, id: int) -> ConversationNotFound:
    return ConversationNotFound(f"There is no {what} {id}.", "See what there is: localinfer chats list")
