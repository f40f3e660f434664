"""Reading text files and listing folders, with all that may be in the way."""

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from localinfer.errors import LocalInferError, StorageUnavailable
from tui.widgets.prompt import threads
from tui.widgets.prompt.files import MOST_BYTES, decode, gather, name_of, named, open_token, read
from tui.widgets.prompt.paths import MOST_SHOWN, listing


def test_encodings() -> None:
    text = "naïve – 你好\nline"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert decode(text.encode(encoding)) == text
    for encoding in ("utf-16-le", "utf-16-be"):  # without a byte order mark
        assert decode("plain words\n".encode(encoding)) == "plain words\n"
    assert decode(b"") == ""
    for data in (b"\x7fELF\x02\x01\x00\x00\x00", "naïve".encode("latin-1"), b"a\x00b", b"\xff\xfea", bytes(100)):
        assert decode(data) is None


def refusal(path: Path) -> str:
    with pytest.raises(LocalInferError) as caught:
        read(path, path.parent)
    assert caught.value.hint
    return caught.value.message


def test_what_is_no_text_file_is_refused_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    (tmp_path / "huge.txt").write_bytes(b"x" * (MOST_BYTES + 1_500_000))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "data.bin") == "data.bin is not a text file."
    assert refusal(tmp_path / "huge.txt") == "huge.txt is too large: 3.5 MB, at most 2 MB can be attached."
    assert refusal(tmp_path / "folder") == "folder is a folder."
    assert refusal(tmp_path / "pipe") == "pipe is a pipe."
    assert refusal(Path("/dev/zero")) == "zero is a device."
    assert refusal(tmp_path / "none") == "There is no file none."
    evil = tmp_path / "a\x1b]52;c;x\x07\nb"
    evil.write_bytes(b"\0")
    assert refusal(evil) == "a␛]52;c;x␇␊b is not a text file."


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="everything is readable here")
def test_what_may_not_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0)
    assert refusal(tmp_path / "secret") == "secret cannot be read: permission denied."


def test_a_file_is_named_from_the_folder_or_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert name_of(tmp_path / "work/src/a.py", tmp_path / "work") == "src/a.py"
    assert name_of(tmp_path / "home/notes.md", tmp_path / "work") == "~/notes.md"
    assert name_of(Path("/etc/hosts"), tmp_path / "work") == "/etc/hosts"


def test_line_ends_become_one_kind(tmp_path: Path) -> None:
    (tmp_path / "dos.txt").write_bytes(b"a\r\nb\rc\n")
    assert read(tmp_path / "dos.txt", tmp_path).text == "a\nb\nc\n"


def test_which_words_may_name_a_file() -> None:
    assert list(named('@a (@b.py) me@example.org "@c" @"d e.txt" @@ x@ @')) == ["a", "b.py)", "c", "d e.txt", "@"]
    assert open_token("see @src/ma") == "src/ma"
    assert open_token('see @"My Do') == '"My Do'
    assert open_token("see @") == ""
    for text in ("me@exa", "see @a b", "see", '@"a b" c'):
        assert open_token(text) is None


def test_files_are_gathered_without_the_marks_of_the_sentence(tmp_path: Path) -> None:
    for name in ("a.py", "b c.txt", "d"):
        (tmp_path / name).write_text(name)
    text = 'Is @a.py, or (@"b c.txt") or @a.py right? @someone said @d.'
    found, refused = gather(text, tmp_path)
    assert [attachment.name for attachment in found] == ["a.py", "b c.txt", "d"]
    assert refused is None
    os.mkfifo(tmp_path / "pipe")
    found, refused = gather("@a.py @pipe @d", tmp_path)
    assert [attachment.name for attachment in found] == ["a.py", "d"]
    assert refused is not None
    assert refused.message == "pipe is a pipe."


def test_folders_come_first_and_hidden_files_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "zoo").mkdir()
    (tmp_path / "Alpha.txt").write_text("12345")
    (tmp_path / "beta-alpha.txt").touch()
    (tmp_path / ".hidden").touch()
    found = listing("", tmp_path).choices
    assert [(choice.label, choice.detail) for choice in found] == [
        ("zoo/", "folder"),
        ("Alpha.txt", "5 B"),
        ("beta-alpha.txt", "0 B"),
    ]
    assert [choice.label for choice in listing("al", tmp_path).choices] == ["Alpha.txt", "beta-alpha.txt"]
    assert [choice.label for choice in listing(".h", tmp_path).choices] == [".hidden"]
    assert [choice.value for choice in listing(f"{tmp_path}/z", Path("/")).choices] == [f"{tmp_path}/zoo/"]
    assert listing("none/", tmp_path).choices == ()
    assert listing("a\0b/", tmp_path).choices == ()


def test_a_path_with_spaces_is_quoted_and_a_hostile_name_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "My Docs").mkdir()
    (tmp_path / "x\x1b[31m\n").touch()
    docs, evil = listing("", tmp_path).choices
    assert docs.value == '"My Docs/'
    assert evil.label == evil.value == "x␛[31m␊"
    assert evil.path == str(tmp_path / "x\x1b[31m\n")


def test_a_huge_folder_shows_a_part_and_says_how_much_is_left(tmp_path: Path) -> None:
    for number in range(MOST_SHOWN + 50):
        (tmp_path / f"f{number:04}").touch()
    found = listing("f", tmp_path)
    assert len(found.choices) == MOST_SHOWN
    assert found.left_off == 50
    assert found.choices[0].label == "f0000"


async def test_a_drive_that_never_answers_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "TIMEOUT_S", 0.05)
    answer = threading.Event()
    with pytest.raises(StorageUnavailable, match="no answer"):
        await threads.aside(answer.wait)
    holder = next(thread for thread in threading.enumerate() if thread.name == "localinfer-aside")
    assert holder.daemon  # it does not keep the process from ending
    answer.set()
    await asyncio.to_thread(holder.join)
    assert await threads.aside(lambda: 3) == 3
