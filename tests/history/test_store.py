"""What was said is kept as it was said, in order, and by the names it is asked for."""

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from localinfer import settings
from localinfer.errors import ConversationNotFound, StorageUnavailable
from localinfer.history import index, store
from localinfer.history.store import History
from localinfer.history.values import Attachment, Omission, Parameters, Turn
from localinfer.types import Metrics, Sampling

EVERYTHING = "a\0b \ud83d lone\udc00 \U0001f600 \x1b[31m ‮ ' \" ; --\r\n\t世界"


def said(history: History, *texts: str) -> tuple[int, list[Turn]]:
    """A conversation of ``texts``, by the person and the model in turn."""
    id = history.start().id
    turns: list[Turn] = []
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        turns.append(history.add(id, role, text, parent=turns[-1].id if turns else None))  # type: ignore[arg-type]
    return id, turns


def test_a_conversation_survives_closing(path: Path) -> None:
    parameters = Parameters(system="Be brief.", sampling=Sampling(temperature=0.0, logit_bias={7: -1.0}), context=4096)
    metrics = Metrics(ttft_s=0.2, tps=31.5, completion_tokens=9, finish_reason="stop")
    with History(path) as history:
        id = history.start(model="demo", parameters=parameters).id
        notes = Attachment(name="notes.txt", text="one\ntwo")
        asked = history.add(id, "user", "Why?", parent=None, attachments=(notes,))
        reply = history.add(id, "assistant", "", parent=asked.id, state="growing", model="demo")
        history.grow(reply.id, content="Bec", reasoning="Hm")
        ended = history.finish(reply.id, "Because.", "Hmm.", "whole", metrics, 1.5, 40, "")
        history.change(id, omissions=(Omission(upto=asked.id, summary="Much."),))
        before = history.conversation(id), history.turns(id)
    assert ended == before[1][1]
    assert (ended.content, ended.reasoning, ended.state) == ("Because.", "Hmm.", "whole")
    assert (ended.metrics, ended.thought_s, ended.thought_tokens, ended.model) == (metrics, 1.5, 40, "demo")
    with History(path) as history:
        assert (history.conversation(id), history.turns(id)) == before
        assert history.latest() == before[0]
    assert before[0].parameters == parameters
    assert before[0].omissions == (Omission(upto=asked.id, summary="Much."),)
    assert before[0].head == reply.id
    assert before[1][0] == asked
    assert asked.attachments == (notes,)


def test_any_text_is_kept(history: History) -> None:
    _, (turn,) = said(history, EVERYTHING)
    assert turn.content == EVERYTHING.replace("\ud83d", "\ufffd").replace("\udc00", "\ufffd")
    odd = history.start(title=EVERYTHING, model=EVERYTHING, parameters=Parameters(system=EVERYTHING))
    assert odd.title.isprintable()
    assert "\ufffd" in odd.parameters.system
    reply = history.add(odd.id, "assistant", "", parent=None, state="growing")
    history.grow(reply.id, EVERYTHING, EVERYTHING)
    assert history.finish(reply.id, EVERYTHING, EVERYTHING, "failed", note=EVERYTHING).reasoning == turn.content
    named = Attachment(name="a\x1b]0;x\nb", text=EVERYTHING)
    (kept,) = history.add(odd.id, "user", "", parent=None, attachments=(named,)).attachments
    assert kept.name.isprintable()
    assert kept.text == turn.content


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("What is a monad?", "What is a monad?"),
        ("\n\n```python\nprint(1)\n```", "print(1)"),
        ("word " * 40, "word word word word word word word word word word word word…"),
        ("x" * 500, "x" * 59 + "…"),
        ("  \x1b[31mred\x07   alert  ", "[31mred alert"),
        ("???", "???"),
        ("", "a.txt"),
    ],
)
def test_the_first_message_gives_the_title(message: str, title: str, history: History) -> None:
    id = history.start().id
    history.add(id, "user", message, parent=None, attachments=(Attachment(name="a.txt", text=""),))
    history.add(id, "user", "another", parent=None)
    assert history.conversation(id).title == title


def test_a_title_of_the_persons_own_stays(history: History) -> None:
    id = history.start(title="Mine").id
    history.add(id, "user", "Hello", parent=None)
    assert history.conversation(id).title == "Mine"
    assert history.change(id, title="New\nname ").title == "New name"


def test_the_list_has_pinned_ones_first_then_the_newest(history: History) -> None:
    ids = [said(history, f"number {number}")[0] for number in range(5)]
    history.change(ids[1], pinned=True, title="renamed", model="m", parameters=Parameters(system="s"))
    history.change(ids[2], title="a change of name is nothing new")
    assert [one.id for one in history.conversations()] == [ids[1], ids[4], ids[3], ids[2], ids[0]]
    assert [one.id for one in history.conversations(2, 1)] == [ids[4], ids[3]]
    history.add(ids[0], "user", "something new", parent=None)
    assert [one.id for one in history.conversations(2)] == [ids[1], ids[0]]
    latest = history.latest()
    assert latest is not None
    assert latest.id == ids[0]
    history.change(ids[1], pinned=False)
    assert [one.id for one in history.conversations()][-1] == ids[1]


def test_nothing_yet(history: History) -> None:
    assert history.conversations() == ()
    assert history.latest() is None
    assert history.turns(1) == ()
    assert history.search("word") == ()
    assert history.notices == ()


def test_what_is_deleted_can_be_restored_for_a_day(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with History(path) as history:
        (kept, _), (doomed, turns) = said(history, "keep this"), said(history, "secret passphrase", "a reply")
        history.delete(doomed)
        assert [one.id for one in history.conversations()] == [kept]
        assert history.search("passphrase") == ()
        latest = history.latest()
        assert latest is not None
        assert latest.id == kept
        for call in (history.conversation, history.delete, lambda id: history.add(id, "user", "x", parent=None)):
            with pytest.raises(ConversationNotFound):
                call(doomed)
        assert history.restore(doomed).id == doomed
        assert history.turns(doomed) == tuple(turns)
        assert len(history.search("passphrase")) == 1
        with pytest.raises(ConversationNotFound):
            history.restore(doomed)
        history.delete(doomed)
    monkeypatch.setattr(store, "KEPT_S", 3600.0)
    with History(path) as history:
        assert history.restore(doomed).id == doomed
        history.delete(doomed)
        assert history.search("keep")
    monkeypatch.setattr(store, "KEPT_S", -1.0)
    with History(path) as history:
        with pytest.raises(ConversationNotFound):
            history.restore(doomed)
        assert history.turns(doomed) == ()
        assert said(history, "x")[0] > doomed  # the number is not used again
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM words").fetchone() == (2,)
        assert db.execute("SELECT count(*) FROM words WHERE words MATCH 'passphrase'").fetchone() == (0,)
    db.close()
    assert b"secret passphrase" not in path.read_bytes()


def test_numbers_that_name_nothing(history: History) -> None:
    for call in (
        lambda: history.conversation(7),
        lambda: history.change(7, title="x"),
        lambda: history.change(7),
        lambda: history.delete(7),
        lambda: history.restore(7),
        lambda: history.grow(7, content="x"),
        lambda: history.finish(7, "x"),
        lambda: history.add(7, "user", "x", parent=None),
    ):
        with pytest.raises(ConversationNotFound) as raised:
            call()
        assert raised.value.exit_code == 3
        assert "7" in raised.value.message
        assert raised.value.hint


def test_it_is_used_from_many_threads(history: History) -> None:
    id = history.start().id
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for turn in range(25):
                history.add(id, "user", f"thread{number} turn{turn}", parent=None)
                history.search(f"thread{number}")
                history.conversations(3)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(history.turns(id)) == 100


def test_a_reader_does_not_wait_for_a_writer(history: History) -> None:
    id, _ = said(history, "before")
    with history._database.write() as db:
        db.execute("UPDATE conversations SET title = 'not yet'")
        started = time.monotonic()
        assert history.conversation(id).title == "before"
        assert len(history._database._readers) <= 4
        assert time.monotonic() - started < 1


def test_two_histories_on_one_file_see_each_other(path: Path) -> None:
    with History(path) as one, History(path) as other:
        id, _ = said(one, "hello there")
        assert other.conversation(id).title == "hello there"
        other.add(id, "assistant", "General", parent=None)
        assert len(one.turns(id)) == 2
        assert one.search("general")


def test_a_long_text_is_searchable_though_it_was_not_indexed_at_once(history: History) -> None:
    long = "filler " * index.AT_ONCE + "needle"
    id, (turn,) = said(history, long)
    reply = history.add(id, "assistant", "", parent=turn.id, state="growing")
    history.grow(reply.id, "halfway haystack")
    assert history.search("haystack") == ()  # it grows
    assert [hit.conversation.id for hit in history.search("needle")] == [id]
    history.finish(reply.id, "all of the haystack")
    assert [hit.turn for hit in history.search("haystack")] == [reply.id]
    history.finish(reply.id, "something else")
    assert history.search("haystack") == ()


def test_after_closing(path: Path) -> None:
    history = History(path)
    id = history.start().id
    reply = history.add(id, "assistant", "", parent=None, state="growing")
    history.grow(reply.id, "half")
    history.close()
    history.close()
    with pytest.raises(StorageUnavailable):
        history.conversations()
    with pytest.raises(StorageUnavailable):
        history.start()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with History(path) as again:
        (turn,) = again.turns(id)
    assert (turn.content, turn.state) == ("half", "stopped")


def test_the_file_is_the_persons_alone(home: Path) -> None:
    with History() as history:
        history.start()
        assert settings.history_file() == home / "history.db"
        for entry in home.glob("history.db*"):
            assert entry.stat().st_mode & 0o077 == 0, entry


def test_json_that_cannot_be_read_is_as_if_it_had_not_been_set(path: Path) -> None:
    with History(path) as history:
        id, _ = said(history, "hello")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE conversations SET parameters = '{\"sampling\": 3}', omissions = 'x'")
        db.execute("UPDATE turns SET metrics = '[', attachments = X'FF00', content = CAST(X'61FF62' AS TEXT)")
    db.close()
    with History(path) as history:
        assert history.conversation(id).parameters == Parameters()
        (turn,) = history.turns(id)
    assert (turn.content, turn.metrics, turn.attachments) == ("a\ufffdb", None, ())


def test_importing_it_loads_no_database() -> None:
    program = "import sys, localinfer.history.store, localinfer.history.export; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'localinfer.history.store'" in done.stdout
    for name in ("sqlite3", "rich", "textual", "psutil"):
        assert f"'{name}'" not in done.stdout
