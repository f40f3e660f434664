"""``localinfer chat`` as a person uses it: in a real pseudo-terminal, byte by byte.

The scripted backend's tokens are bytes and its template is ChatML, so the prompt tokens that ``/stats`` shows tell
exactly what was sent.
"""

import json
import os
import re
import sys
from pathlib import Path

import psutil
import pytest

from tests.cli.commands import ROOT, sent

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are POSIX", allow_module_level=True)

from tests.cli.terminal import CTRL_C, CTRL_D, UP, Terminal

SLOW = "pace_s=0.01&text=" + "word%20" * 2000
PASTE = "first line\n\n  second line\tüñ\n/quit\nlast line"


def chat(script: str, *arguments: str, **terminal: str) -> Terminal:
    return Terminal("chat", "--backend", "scripted", script, "--temperature", "0", *arguments, **terminal)


def prompt_tokens(terminal: Terminal) -> int:
    """Tokens of the last prompt, as ``/stats`` shows them."""
    match = re.search(r"prompt ([\d,]+) tokens", terminal.ask("/stats"))
    assert match
    return int(match[1].replace(",", ""))


def worker(terminal: Terminal) -> psutil.Process:
    (process,) = psutil.Process(terminal.pid).children()
    return process


# A conversation


def test_each_turn_sends_the_conversation_so_far() -> None:
    with chat("text=one%20two") as terminal:
        assert "context 32,768" in terminal.prompt()
        first = terminal.ask("hello")
        assert "one two\r\n" in first
        assert "TTFT" in first
        assert prompt_tokens(terminal) == sent("hello")
        assert "cached" in terminal.ask("again")
        assert prompt_tokens(terminal) == sent("hello", "one two", "again")
        terminal.ask("")
        terminal.ask("   ")
        assert prompt_tokens(terminal) == sent("hello", "one two", "again")
        terminal.send("/quit\n")
        assert terminal.exit_code() == 0


def test_commands() -> None:
    with chat("text=one", "--system", "Be brief.") as terminal:
        terminal.prompt()
        assert "No reply yet" in terminal.ask("/stats")
        assert "nothing to answer" in terminal.ask("/retry")
        terminal.ask("a")
        assert prompt_tokens(terminal) == sent("a", system="Be brief.")
        assert "is set" in terminal.ask("/system Answer in French.")
        terminal.ask("b")
        assert prompt_tokens(terminal) == sent("a", "one", "b", system="Answer in French.")
        assert "one\r\n" in terminal.ask("/retry")
        assert prompt_tokens(terminal) == sent("a", "one", "b", system="Answer in French.")
        assert "is removed" in terminal.ask("/system")
        assert "forgotten" in terminal.ask("/clear")
        terminal.ask("c")
        assert prompt_tokens(terminal) == sent("c")
        assert "/retry" in terminal.ask("/help")
        assert "no command /quiet" in terminal.ask("/quiet please")
        terminal.ask("/usr/bin/env is a message")
        assert prompt_tokens(terminal) == sent("c", "one", "/usr/bin/env is a message")
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0


def test_thoughts_are_kept_apart_from_the_answer() -> None:
    with chat("text=four&think=two%20and%20two", NO_COLOR="") as terminal:
        terminal.prompt()
        shown = terminal.ask("hello")
        assert "\x1b[2mt\x1b[0m" in shown
        assert "two and two" in re.sub(r"\x1b\[\d?m", "", shown)
        assert "\r\nfour\r\n" in shown
        terminal.ask("again")
        assert prompt_tokens(terminal) == sent("hello", "four", "again")


# Stopping


def test_ctrl_c_stops_the_reply_and_not_the_program() -> None:
    with chat(SLOW) as terminal:
        terminal.prompt()
        terminal.send("hello\n")
        terminal.expect("word word")
        terminal.send(CTRL_C)
        shown = terminal.screen.partition("hello")[2] + terminal.prompt()
        assert "[stopped]" in shown
        assert "kept" in shown
        terminal.send("again\n")
        terminal.expect("word word")
        terminal.send(CTRL_C)
        terminal.prompt()
        first_reply = "".join(
            re.findall(r"(?:word ?)+w?o?r?", terminal.screen.partition("hello")[2].partition("^C")[0])
        )
        assert abs(prompt_tokens(terminal) - sent("hello", first_reply, "again")) <= 6  # what came with the signal
        terminal.send("half a line")
        terminal.expect("half a line")
        terminal.interrupt("leaves")
        terminal.prompt()
        terminal.interrupt("leaves")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0


@pytest.mark.parametrize("script", ["hang_after=0", "prefill_s=60"])
def test_ctrl_c_needs_no_answer_from_the_worker(script: str) -> None:
    with chat(script) as terminal:
        terminal.prompt()
        terminal.send("hello\n")
        terminal.expect("Reading the prompt")
        terminal.send(CTRL_C)
        assert "no reply" in terminal.prompt()
        terminal.send("/retry\n")
        terminal.expect("Reading the prompt")
        terminal.send(CTRL_C + CTRL_C)
        assert "no reply" in terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0


def test_ctrl_c_while_the_model_is_loaded_leaves() -> None:
    with chat("load_s=60") as terminal:
        terminal.expect("Loading the model")
        terminal.interrupt("Stopped")
        assert terminal.exit_code() == 130
        assert "Traceback" not in terminal.screen


# Pastes


@pytest.fixture(params=["readline", "dumb", "no readline"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A terminal with bracketed pastes, one without, and a Python without readline."""
    (tmp_path / "readline.py").write_text("raise ImportError")
    return {
        "readline": {},
        "dumb": {"term": "dumb"},
        "no readline": {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    }[request.param]


def test_a_paste_of_many_lines_is_one_message(reader: dict[str, str]) -> None:
    with chat("text=one", **reader) as terminal:
        terminal.prompt()
        terminal.ask(PASTE)
        assert prompt_tokens(terminal) == sent(PASTE)
        terminal.ask("/clear")
        if reader.get("term") != "dumb":  # such a terminal marks no pastes
            terminal.ask(f"\x1b[200~{PASTE}\x1b[201~")
            assert prompt_tokens(terminal) == sent(PASTE)
        terminal.send("/quit\n")
        assert terminal.exit_code() == 0


def test_blocks_between_triple_quotes() -> None:
    with chat("text=one") as terminal:
        terminal.prompt()
        terminal.send('"""\n')
        terminal.expect(r"\.\.\. ")
        terminal.send("a\n")
        terminal.expect(r"\.\.\. ")
        terminal.send("\n")
        terminal.expect(r"\.\.\. ")
        terminal.ask('b"""')
        assert prompt_tokens(terminal) == sent("a\n\nb")
        for typed, message in (
            ('"""/quit"""', "/quit"),
            ('"""\n/clear\n"""', "/clear"),
            ('"""Says."""\nimport os', '"""Says."""\nimport os'),
        ):
            terminal.ask("/clear")
            terminal.ask(typed)
            assert prompt_tokens(terminal) == sent(message)
        terminal.send('"""\n')
        terminal.expect(r"\.\.\. ")
        terminal.send("dropped\n")
        terminal.expect(r"\.\.\. ")
        terminal.interrupt("leaves")
        terminal.prompt()
        terminal.send(UP)
        terminal.expect("dropped")
        terminal.interrupt("leaves")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0


def test_a_paste_of_a_megabyte_arrives_whole() -> None:
    text = "A line of sixty-four characters, to be pasted many many times.\n" * 16_000
    with chat("text=one") as terminal:
        terminal.prompt()
        assert f"{sent(text):,} tokens" in terminal.ask(f"\x1b[200~{text}\x1b[201~")
        terminal.ask("still there?")
        assert prompt_tokens(terminal) == sent("still there?")


def test_bytes_that_are_not_text(reader: dict[str, str]) -> None:
    with chat("text=one", **reader) as terminal:
        terminal.prompt()
        terminal.send(b"a\xffb\n")
        assert "not text" in terminal.prompt()
        assert prompt_tokens(terminal) == sent("a\ufffdb")


# What goes wrong


def test_a_conversation_that_is_too_long_loses_nothing() -> None:
    with chat("text=one&context=100") as terminal:
        terminal.prompt()
        terminal.ask("hello")
        long = "long " * 12
        shown = terminal.ask(long)
        assert shown.count("error:") == 1
        assert f"{sent('hello', 'one', long):,} tokens" in shown
        assert "holds 100" in shown
        assert "/clear" in shown
        terminal.ask("/clear")
        assert "one\r\n" in terminal.ask("/retry")
        assert prompt_tokens(terminal) == sent(long)
        terminal.send("/quit\n")
        assert terminal.exit_code() == 0


def test_a_reply_that_fills_the_context_says_so() -> None:
    with chat("context=64&text=" + "word%20" * 40) as terminal:
        terminal.prompt()
        assert "context of 64 tokens is full" in terminal.ask("hello")


def test_a_killed_worker_is_one_clear_error_and_the_next_message_answers() -> None:
    with chat(SLOW, NO_COLOR="") as terminal:
        terminal.prompt()
        terminal.send("hello\n")
        terminal.expect("word word")
        process = worker(terminal)
        process.kill()
        shown = terminal.prompt()
        assert shown.count("error:") == 1
        assert "\r\n\x1b[1;31merror:\x1b[0m" in shown  # on a line of its own
        assert "SIGKILL" in shown
        assert "not kept: /retry" in shown
        terminal.send("/retry\n")
        terminal.expect("word word")
        terminal.send(CTRL_C)
        terminal.prompt()
        assert prompt_tokens(terminal) == sent("hello")
        assert worker(terminal).pid != process.pid
        terminal.send("/quit\n")
        assert terminal.exit_code() == 0


def test_a_model_that_cannot_be_loaded_ends_the_program() -> None:
    with chat("fail_load=DoesNotFit") as terminal:
        assert terminal.exit_code() == 4
        assert terminal.screen.count("error:") == 1
        assert "Traceback" not in terminal.screen


# The terminal


def test_what_was_typed_is_recalled_in_the_next_session(home: Path) -> None:
    with chat("text=one") as terminal:
        terminal.prompt()
        terminal.ask(f"\x1b[200~{PASTE}\x1b[201~")
        terminal.ask("a question")
        terminal.ask("a question")
    file = home / "state" / "chat-input"
    assert [json.loads(line) for line in file.read_text().splitlines()] == [PASTE, "a question"]
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(file.read_bytes() + b'not ours\n\xff\n"\\u0000"\n')
    with chat("text=one") as terminal:
        terminal.prompt()
        terminal.send(UP + UP)
        terminal.expect("last line")
        terminal.ask("")
        assert prompt_tokens(terminal) == sent(PASTE)
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0


def test_recall_is_cut_and_a_folder_that_cannot_be_written_is_no_error(home: Path) -> None:
    file = home / "state" / "chat-input"
    file.parent.mkdir()
    file.write_text("".join(f'"line {number}"\n' for number in range(2001)))
    with chat("text=one") as terminal:
        terminal.prompt()
    assert len(file.read_text().splitlines()) == 1000
    file.unlink()
    file.mkdir()
    with chat("text=one") as terminal:
        terminal.prompt()
        assert "error" not in terminal.ask("hello")


def test_a_dumb_terminal_gets_no_escape_codes() -> None:
    with chat("text=four&think=two&load_s=0.1&context=300", term="dumb", NO_COLOR="") as terminal:
        terminal.prompt()
        assert terminal.screen.startswith("Loading the model ...\r\n")
        shown = terminal.ask("hello")
        assert "[thinking]\r\n" in shown
        assert "\r\n[answer]\r\nfour\r\n" in shown
        assert "error:" in terminal.ask("long " * 100)
        terminal.ask("/help")
        terminal.interrupt("leaves")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0
        assert "\x1b" not in terminal.screen


def test_no_color_gets_no_colours() -> None:
    with chat("text=four&think=two&context=300") as terminal:
        terminal.prompt()
        terminal.ask("hello")
        terminal.ask("long " * 100)
        assert not re.search(r"\x1b\[[\d;]*m", terminal.screen)


def test_waiting_is_shown() -> None:
    with chat("text=one&load_s=0.2&prefill_s=0.0002") as terminal:
        assert "Loading the model" in terminal.prompt()
        shown = terminal.ask("word " * 300)
        assert re.search(r"\rReading the prompt +\d+%", shown)
        assert re.search(r"\r +\rone\r\n", shown)


def test_a_window_that_changes_its_size() -> None:
    with chat(SLOW) as terminal:
        terminal.prompt()
        terminal.resize(40)
        terminal.send("hel")
        terminal.expect("hel")
        terminal.resize(120)
        terminal.send("lo\n")
        terminal.expect("word word")
        terminal.resize(30)
        terminal.expect("word word")
        terminal.send(CTRL_C)
        terminal.prompt()
        assert prompt_tokens(terminal) == sent("hello")


def test_a_model_cannot_command_the_terminal() -> None:
    with chat("text=a%1B%5D0%3Bx%07b%C2%9B31m&think=c%1B%5B2Jd", term="dumb") as terminal:
        terminal.prompt()
        shown = terminal.ask("hello")
        assert "a]0;xb31m" in shown
        assert "c[2Jd" in shown
        assert "\x1b" not in terminal.screen


def test_bare_localinfer_opens_a_chat_with_the_model_of_the_settings(tmp_path: Path, starter_model: Path) -> None:
    model = tmp_path / "evil\x1b]0;title\x07.gguf"
    model.symlink_to(starter_model)
    with Terminal(term="dumb", LOCALINFER_MODEL=str(model), LOCALINFER_CONTEXT="96") as terminal:
        assert "evil]0;title" in terminal.prompt()
        assert "tok/s" in terminal.ask("Say yes.")
        terminal.send("/quit\n")
        assert terminal.exit_code() == 0
        assert "\x1b" not in terminal.screen


def test_prompts_stay_out_of_an_output_that_is_a_file(tmp_path: Path) -> None:
    with chat("text=one", stdout=str(tmp_path / "out")) as terminal:
        terminal.prompt()
        terminal.send("hello\n")
        terminal.prompt()
        terminal.send(CTRL_D)
        assert terminal.exit_code() == 0
    assert (tmp_path / "out").read_bytes() == b"one\n"
