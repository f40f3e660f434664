"""A process that dies at any moment loses nothing that a call had returned, and leaves no reply growing for ever."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localinfer.history.store import History

ROOT = Path(__file__).parents[2]

# Says what is on disk; each line is written after the call that it tells of has returned.
WRITER = """
import sys
from pathlib import Path
from localinfer.history.store import History
history = History(Path(sys.argv[1]))
conversation = history.start(title="written by a child").id
asked = history.add(conversation, "user", "question", parent=None)
print("asked", conversation, asked.id, flush=True)
while True:
    reply = history.add(conversation, "assistant", "", parent=asked.id, state="growing")
    print("began", reply.id, 0, flush=True)
    for size in range(1, 60):
        history.grow(reply.id, "word " * 400 * size)
        print("grew", reply.id, 2000 * size, flush=True)
    history.finish(reply.id, "done " * 400)
    print("ended", reply.id, 2000, flush=True)
"""


@contextmanager
def writer(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that writes replies into ``path``."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: "subprocess.Popen[str]", word: str) -> list[str]:
    """What the child says up to the first line that begins with ``word``."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(word):
            return lines
    raise AssertionError(f"the child ended with {process.wait()} after {lines}")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is needed")
@pytest.mark.parametrize("seed", range(6))
def test_what_a_killed_process_has_written_is_there(seed: int, path: Path) -> None:
    delay_s = random.Random(seed).uniform(0, 0.12)
    with writer(path) as process:
        said = read_until(process, "grew")
        time.sleep(delay_s)  # the moment of death is the subject, not something to wait for
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        said += process.stdout.readlines()
    if not said[-1].endswith("\n"):
        said.pop()
    (_, conversation, _), *replies = (line.split() for line in said)
    with History(path) as history:
        assert history.notices == ()
        turns = {turn.id: turn for turn in history.turns(int(conversation))}
        for what, id, size in replies:
            turn = turns[int(id)]
            assert len(turn.content) >= int(size) or (turn.state == "whole" and len(turn.content) == 2000)
            if what == "ended":
                assert turn.state == "whole"
        assert all(turn.state in ("whole", "stopped") for turn in turns.values())
        assert [turn.state for turn in turns.values()].count("stopped") <= 1
        assert len(history.search("question")) == 1
        last = list(turns.values())[-1]
        if last.state == "stopped" and last.content:
            assert [hit.turn for hit in history.search("word")] == [last.id]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_reply_that_another_process_is_writing_goes_on(path: Path) -> None:
    with writer(path) as process:
        said = read_until(process, "grew")
        conversation = int(said[0].split()[1])
        with History(path) as history:
            history.start()
            reply = history.turns(conversation)[1]
            assert reply.state in ("growing", "whole")
        read_until(process, "ended")
        read_until(process, "grew")
        with History(path) as history:
            assert history.turns(conversation)[1].state == "whole"
            assert history.turns(conversation)[-1].state in ("growing", "whole")
        process.kill()
        process.wait()
        with History(path) as history:
            assert {turn.state for turn in history.turns(conversation)} <= {"whole", "stopped"}


def test_a_reply_of_this_process_goes_on_when_the_file_is_opened_again(path: Path) -> None:
    with History(path) as one:
        id = one.start().id
        reply = one.add(id, "assistant", "", parent=None, state="growing")
        with History(path) as other:
            assert other.turns(id)[0].state == "growing"
        one.finish(reply.id, "whole")
        assert one.turns(id)[0].state == "whole"


def test_a_token_from_outside_names_no_file(path: Path) -> None:
    (path.parent / "precious").touch()
    with History(path) as history:
        id = history.start().id
        reply = history.add(id, "assistant", "", parent=None, state="growing")
        with history._database.write() as db:
            db.execute("UPDATE turns SET writer = 'x/../../precious' WHERE id = ?", (reply.id,))
        with History(path) as other:
            assert other.turns(id)[0].state == "stopped"
    assert (path.parent / "precious").exists()


def test_many_processes_begin_the_same_file_at_once(path: Path) -> None:
    program = "import sys; from pathlib import Path; from localinfer.history.store import History\n"
    program += "for _ in range(5):\n with History(Path(sys.argv[1])) as history: history.start(title='x')"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for child in children:
        _, errors = child.communicate()
        assert child.returncode == 0, errors
    with History(path) as history:
        assert len(history.conversations()) == 20
