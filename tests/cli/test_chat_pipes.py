"""``localinfer chat`` over pipes: each line is a turn, and nothing but answers goes to standard output."""

import subprocess

from tests.cli.commands import COMMAND, assert_one_clear_error, environment, run, sent


def piped(script: str, stdin: bytes, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    command = ("chat", "--backend", "scripted", script, "--temperature", "0")
    return run(*command, stdin=stdin, PYTHONIOENCODING=encoding)


def test_each_piped_line_is_a_turn() -> None:
    done = piped("text=one", b'hello\r\n\nagain\n"""\nof two\nlines\n"""\n/stats\nlast')
    third = sent("hello", "one", "again", "one", "of two\nlines")
    assert done.returncode == 0
    assert done.stdout == "one\n" * 4
    assert f"prompt {third} tokens" in done.stderr
    assert "\x1b" not in done.stderr
    assert "Loading" not in done.stderr
    assert "> " not in done.stdout + done.stderr


def test_piped_input_without_an_end_of_block_or_without_anything() -> None:
    assert piped("text=one", b'"""\nopen').stdout == "one\n"
    assert piped("text=one", b"").stdout == ""
    assert piped("text=one", b"/quit\nnot asked\n").stdout == ""


def test_a_piped_line_of_a_megabyte() -> None:
    done = piped("text=one", b"x" * 1_000_000 + b"\nagain")
    assert f"{sent('x' * 1_000_000):,} tokens" in done.stderr
    assert done.stdout == "one\n"


def test_a_piped_turn_that_fails_decides_the_exit_code_when_all_are_answered() -> None:
    done = piped("text=one&context=100", b"hello\n" + b"long " * 100 + b"\nagain\n")
    assert done.stdout == "one\none\n"
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1


def test_piped_bytes_that_are_not_text() -> None:
    done = piped("text=one", b"a\xffb\n/stats\n")
    assert "not text" in done.stderr
    assert f"prompt {sent('a�b')} tokens" in done.stderr


def test_an_output_that_cannot_spell_the_answer() -> None:
    done = piped("text=na%C3%AFve", b"hello\n", encoding="ascii")
    assert done.returncode == 0
    assert done.stdout == "na?ve\n"


def test_no_standard_input_at_all() -> None:
    command = " ".join([*COMMAND, "chat", "--backend", "scripted", "text=one", "<&-"])
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=environment(), check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_unknown_model() -> None:
    assert_one_clear_error(run("chat", "smollm2-135b"), 3, "smollm2-135m")


def test_sampling_that_makes_no_sense() -> None:
    assert_one_clear_error(run("chat", "--temperature", "-1"), 2, "temperature")
