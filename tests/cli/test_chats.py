"""``localinfer chats``: conversations from the command line, for people and for programs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localinfer.history.store import History
from localinfer.types import Metrics
from tests.cli.commands import assert_one_clear_error, run
from tests.cli.terminal import Terminal


@pytest.fixture
def chats(home: Path) -> Iterator[History]:
    """Three conversations, the first pinned, the last with two branches."""
    with History(home / "history.db") as history:
        for title, text in (("Pinned one", "apples"), ("世界人民", "pears"), ("", "Explain \x1b[31mquantum\x07 foam")):
            id = history.start(title=title, model="demo").id
            asked = history.add(id, "user", text, parent=None)
            for answer in ("First answer about foam.", "Second answer."):
                reply = history.add(id, "assistant", "", parent=asked.id, state="growing", model="demo")
                history.finish(reply.id, answer, "Hm.", "whole", Metrics(ttft_s=0.2, tps=30.0), 1.25, 12)
        history.change(1, pinned=True)
        yield history


def test_the_list(chats: History) -> None:
    for arguments in (("chats",), ("chats", "list")):
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        head, *rows = done.stdout.splitlines()
        assert head.split() == ["ID", "CHANGED", "TITLE"]
        assert [row.split()[0] for row in rows] == ["1", "3", "2"]
        assert rows[0].endswith("Pinned one (pinned)")
        assert rows[1].endswith("Explain [31mquantum foam")
        assert rows[2].endswith("世界人民")
    short = run("chats", "list", "--limit", "1")
    assert len(short.stdout.splitlines()) == 2
    assert "--limit" in short.stderr


def test_the_list_for_programs(chats: History) -> None:
    listed = json.loads(run("chats", "list", "--json", "--limit", "2").stdout)
    assert [(one["id"], one["title"], one["pinned"]) for one in listed] == [
        (1, "Pinned one", True),
        (3, "Explain [31mquantum foam", False),
    ]
    assert set(listed[0]) == {"id", "title", "created_s", "changed_s", "pinned", "model"}


def test_nothing_yet() -> None:
    done = run("chats", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no conversations yet" in done.stderr
    assert json.loads(run("chats", "list", "--json").stdout) == []


def test_a_long_title_fits_its_line(chats: History) -> None:
    chats.change(2, title="世界" * 90)
    for columns in ("60", "100"):
        done = run("chats", "list", COLUMNS=columns)
        row = done.stdout.splitlines()[3]
        assert row.endswith("…")
        assert len(row) + row.count("世") + row.count("界") <= int(columns)


def test_search(chats: History) -> None:
    done = run("chats", "search", "foam", "answ")
    assert done.returncode == 0
    assert "First answer about foam." in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[::2]] == ["3", "2", "1"]
    (hit,) = json.loads(run("chats", "search", "世界", "--json").stdout)
    assert (hit["id"], hit["turn"], hit["excerpt"]) == (2, None, "世界人民")
    assert json.loads(run("chats", "search", "absent", "--json").stdout) == []
    assert len(json.loads(run("chats", "search", "answer", "--json", "--limit", "2").stdout)) == 2
    assert json.loads(run("chats", "search", '"first answer"', "--json").stdout)
    assert_one_clear_error(run("chats", "search", "absent words"), 3, "absent words", "fewer words")
    assert_one_clear_error(run("chats", "search", "++"), 2, "nothing to search for")


def test_what_matches_stands_out_in_a_terminal(chats: History) -> None:
    with Terminal("chats", "search", "pear", NO_COLOR="") as terminal:
        terminal.expect("\x1b\\[1mpear\x1b\\[0ms")
        assert terminal.exit_code() == 0


def test_show(chats: History) -> None:
    done = run("chats", "show", "3")
    assert done.returncode == 0
    assert done.stdout.startswith("Explain [31mquantum foam\n\nYou · ")
    assert "demo · " in done.stdout
    assert "one of 2 versions" in done.stdout
    assert "[Thought for 1.2 s · 12 tokens]" in done.stdout
    assert "Second answer." in done.stdout
    assert "First answer" not in done.stdout
    assert "\x1b" not in done.stdout
    read = json.loads(run("chats", "show", "3", "--json").stdout)
    assert [turn["id"] for turn in read["turns"]] == [7, 8, 9]


@pytest.mark.parametrize("command", [("show",), ("export",), ("rm", "--yes"), ("rm", "--undo")])
def test_a_number_that_names_nothing(command: tuple[str, ...], chats: History) -> None:
    assert_one_clear_error(run("chats", *command, "9"), 3, "no conversation 9", "chats list")
    assert run("chats", *command, "0").returncode == 2
    assert run("chats", *command, "x").returncode == 2


def test_export(chats: History, tmp_path: Path) -> None:
    printed = run("chats", "export", "3")
    assert printed.stdout.startswith("# Explain [31mquantum foam\n")
    assert "## demo" in printed.stdout
    file = tmp_path / "out.json"
    done = run("chats", "export", "3", "--format", "json", "--output", str(file))
    assert (done.returncode, done.stdout) == (0, "")
    assert str(file) in done.stderr
    assert json.loads(file.read_text("utf-8"))["format"] == "localinfer conversation"
    assert_one_clear_error(run("chats", "export", "3", "--output", str(file)), 2, "there already", "--force")
    assert file.read_text("utf-8").startswith("{")
    assert run("chats", "export", "3", "--output", str(file), "--force").returncode == 0
    assert file.read_text("utf-8") == printed.stdout
    assert run("chats", "export", "2", "-o", str(tmp_path)).returncode == 0
    assert (tmp_path / "世界人民.md").read_text("utf-8").startswith("# 世界人民\n")
    assert_one_clear_error(run("chats", "export", "3", "-o", str(tmp_path / "no" / "x")), 1, "cannot be written")
    assert run("chats", "export", "3", "--format", "pdf").returncode == 2


def test_rm_asks_and_can_be_undone(chats: History) -> None:
    assert_one_clear_error(run("chats", "rm", "1"), 2, "--yes")
    with Terminal("chats", "rm", "1", "3") as terminal:
        terminal.expect("Pinned one")
        terminal.expect(r"Delete these 2\? \[y/N\] ")
        terminal.send("n\n")
        terminal.expect("Nothing was deleted")
        assert terminal.exit_code() == 0
    assert len(chats.conversations()) == 3
    with Terminal("chats", "rm", "1") as terminal:
        terminal.expect(r"Delete it\? \[y/N\] ")
        terminal.send("y\n")
        terminal.expect("rm --undo 1")
        assert terminal.exit_code() == 0
    assert_one_clear_error(run("chats", "rm", "2", "1", "--yes"), 3, "no conversation 1")
    assert [one.id for one in chats.conversations()] == [3, 2]
    assert run("chats", "rm", "3", "2", "2", "--yes").returncode == 0
    assert chats.conversations() == ()
    done = run("chats", "rm", "--undo", "1", "2")
    assert done.returncode == 0
    assert "Pinned one" in done.stdout
    assert [one.id for one in chats.conversations()] == [1, 2]


def test_a_damaged_file_is_said_and_kept(home: Path) -> None:
    (home / "history.db").write_bytes(b"nonsense" * 1_000)
    done = run("chats", "list")
    assert done.returncode == 0
    (kept,) = home.glob("history-damaged-*.db")
    assert kept.name in done.stderr
    assert kept.read_bytes() == b"nonsense" * 1_000


def test_a_file_that_cannot_be_used(home: Path) -> None:
    (home / "history.db").mkdir()
    assert_one_clear_error(run("chats", "list"), 1, "not a file", "Move it away")


def test_where_says_where_they_are(home: Path) -> None:
    assert f"chats      {home / 'history.db'}" in run("where").stdout.splitlines()


@pytest.mark.parametrize(
    ("command", "text"),
    [("show", "nope"), ("export", "0"), *(("rm", text) for text in ("nope", "1.5", "9" * 30, "\x1b[31m"))],
)
def test_what_is_not_a_number_of_a_conversation_is_said(command: str, text: str) -> None:
    done = run("chats", command, text)
    assert_one_clear_error(done, 2, "is not the number of a conversation", "chats list")
    assert "\x1b" not in done.stderr
