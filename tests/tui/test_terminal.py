"""The application in a real terminal: signals, resizing, hostile text, a kill, and what it leaves behind."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from localinfer.history.store import History
from tests.cli import terminal as command
from tests.cli.commands import COMMAND, environment
from tests.tui.emulated import Emulated, application

CTRL_Q = "\x11"
if os.name != "posix":
    pytest.skip("pseudo-terminals are POSIX's", allow_module_level=True)

SLOW = f"pace_s=0.004&text={quote(' '.join(f'word{number}' for number in range(2000)))}"


def _worker(pid: int) -> psutil.Process:
    (worker,) = psutil.Process(pid).children()
    return worker


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_quitting_leaves_the_terminal_as_it_was() -> None:
    with application("text=Hello.") as terminal:
        worker = _worker(terminal.pid)
        terminal.send(CTRL_Q)
        assert terminal.exit_code() == 0
        assert terminal.clean()
        assert not worker.is_running()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_while_a_reply_is_written_ends_cleanly(number: signal.Signals) -> None:
    with application(SLOW) as terminal:
        worker = _worker(terminal.pid)
        terminal.send("Go")
        terminal.see("Go")
        terminal.send("\r")
        terminal.see("word30")
        os.kill(terminal.pid, number)
        assert terminal.exit_code() == 128 + number
        assert terminal.clean()
        psutil.wait_procs([worker], timeout=5)
        assert not worker.is_running()
    with History() as history:  # and what was written is kept
        (conversation,) = history.conversations()
        assert "word30" in history.turns(conversation.id)[-1].content


def test_signals_that_come_while_it_leaves_change_nothing() -> None:
    with application(SLOW) as terminal:
        worker = _worker(terminal.pid)
        terminal.send("Go")
        terminal.see("Go")
        terminal.send("\r")
        terminal.see("word30")
        worker.suspend()  # it then takes a moment to leave
        for number in (signal.SIGINT, signal.SIGCONT, signal.SIGINT, signal.SIGTERM):
            os.kill(terminal.pid, number)
            time.sleep(0.05)
        started = time.monotonic()
        assert terminal.exit_code() == 130
        assert time.monotonic() - started < 2
        assert terminal.clean()
        psutil.wait_procs([worker], timeout=5)
        assert not worker.is_running()


def test_a_stopped_worker_does_not_stop_the_application() -> None:
    with application("text=Hello.") as terminal:
        _worker(terminal.pid).suspend()
        terminal.send("\x1b[200~" + "many words " * 25_000 + "\x1b[201~")
        terminal.see("pasted text")
        terminal.send("\r")
        terminal.see("275.0 kB")
        terminal.send("still here")
        terminal.see("still here")
        started = time.monotonic()
        terminal.send(CTRL_Q)
        assert terminal.exit_code() == 0
        assert time.monotonic() - started < 2
        assert terminal.clean()


@pytest.mark.parametrize("numbers", [(), (signal.SIGSTOP,), (signal.SIGTSTP,)])
def test_going_on_leaves_keys_and_terminal_as_they_were(numbers: tuple[signal.Signals, ...]) -> None:
    with application("text=Hello.") as terminal:
        for _ in range(2):
            for number in numbers:
                os.kill(terminal.pid, number)
                _wait_for(lambda: psutil.Process(terminal.pid).status() == psutil.STATUS_STOPPED)
                if number is signal.SIGTSTP:
                    terminal.until(lambda _: terminal.clean())
            os.kill(terminal.pid, signal.SIGCONT)
            terminal.until(lambda _: not terminal.cooked())  # until then the terminal itself shows what is typed
        terminal.send("every key once")
        terminal.see("every key once")
        terminal.send(CTRL_Q)
        assert terminal.exit_code() == 0
        assert terminal.clean()


def test_a_terminal_that_goes_away_without_a_signal_ends_it() -> None:
    master, slave = pty.openpty()
    command_line = [*COMMAND, "tui", "--backend", "scripted", SLOW]
    app = subprocess.Popen(
        command_line, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=environment(TERM="xterm")
    )
    os.close(slave)
    written = b""
    while b"without a device" not in written:
        written += os.read(master, 65536)
    worker = _worker(app.pid)
    os.close(master)
    assert app.wait(20) in (0, 1, 129)
    psutil.wait_procs([worker], timeout=5)
    assert not worker.is_running()


def test_after_a_kill_everything_up_to_a_second_before_is_there() -> None:
    with application(SLOW) as terminal:
        terminal.send("Tell me")
        terminal.see("Tell me")
        terminal.send("\r")
        shown = terminal.see("word180")
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.exit_code() == -signal.SIGKILL
        words = [word for line in shown for word in line.split() if word.startswith("word")]
    with application("text=Hello.") as terminal:
        terminal.see("where you were")
        lines = terminal.see("stopped")
        there = [word for line in lines for word in line.split() if word.startswith("word")]
        last = max(int(word[4:]) for word in words[:-1])
        assert max(int(word[4:]) for word in there[:-1]) >= last - 1 / 0.004 / 6  # six letters and a space a word
        terminal.send(CTRL_Q)
        assert terminal.exit_code() == 0
    with application("text=Hello.") as terminal:  # told once
        assert not any("word" in line for line in terminal.shown)


def test_resizing_while_a_reply_is_written_loses_nothing() -> None:
    words = " ".join(f"word{number}" for number in range(400))
    with application(f"pace_s=0.002&text={quote(words)}", columns=200, rows=40) as terminal:
        terminal.send("Go")
        terminal.see("Go")
        terminal.send("\r")
        terminal.see("word20")
        for columns in (40, 120, 60, 200):
            seen = max(_numbers(terminal.shown), default=0)
            terminal.window(columns, 30)
            terminal.until(
                lambda lines, seen=seen: (
                    max(_numbers(lines), default=0) > seen + 15  # type: ignore[misc]
                    or any("tok/s · " in line for line in lines)
                )  # the reply is over already
            )
        terminal.see("word399")
        lines = terminal.see("tok/s · ")
        assert _numbers(lines) == [*range(_numbers(lines)[0], 400)]


def _numbers(lines: list[str]) -> list[int]:
    """The numbers of the words in the conversation, from top to bottom."""
    return [int(word[4:]) for line in lines for word in line.split() if word.startswith("word") and word[4:].isdigit()]


HOSTILE = (
    "one\x1b]52;c;QUJD\x07two\x1b[2Jthree\x9b31mfour\x1b]8;;http://x.y\x1b\\link\x1b]8;;\x1b\\ [b]bold[/b] [/red] "
    "five\u202esix\x07\x00\x7f done"
)


def test_text_of_a_model_commands_no_terminal() -> None:
    with application(f"text={quote(HOSTILE)}", columns=120) as terminal:
        start = len(terminal.screen)
        terminal.send("Go")
        terminal.see("Go")
        terminal.send("\r")
        terminal.see("[b]bold[/b] [/red]")
        terminal.see("done")
        written = terminal.screen[start:]
        assert "\x1b]" not in written
        assert "\x9b" not in written
        assert "\x1b[2J" not in written
        assert "\u202e" not in written
        assert "\x07" not in written


BROKEN = """
import sys
from localinfer.cli import main
from tui.screens.chat.screen import ChatScreen

def broken(self):
    raise RuntimeError("a fault of ours")

ChatScreen.action_new = broken
main()
"""


def test_a_fault_of_ours_shows_no_trace_and_leaves_the_terminal_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    monkeypatch.setattr(command, "COMMAND", [sys.executable, str(script)])
    with Emulated("tui", "--backend", "scripted", "text=x", PYTHONPATH=str(Path(__file__).parents[2])) as terminal:
        terminal.see("without a device")
        terminal.send("\x0e")  # Ctrl+N
        assert terminal.exit_code() == 1
        assert terminal.clean()
        assert "Traceback" not in terminal.screen
        assert "a fault of ours" in terminal.screen
    assert "a fault of ours" in (home / "logs" / "crash.log").read_text()


BROKEN_LEAVING = """
from localinfer.cli import main
from textual.drivers.linux_driver import LinuxDriver

def broken(self):
    raise RuntimeError("a fault while leaving")

LinuxDriver.stop_application_mode = broken
main()
"""


def test_a_fault_while_leaving_still_gives_the_terminal_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "broken.py"
    script.write_text(BROKEN_LEAVING)
    monkeypatch.setattr(command, "COMMAND", [sys.executable, str(script)])
    with Emulated("tui", "--backend", "scripted", "text=x", PYTHONPATH=str(Path(__file__).parents[2])) as terminal:
        terminal.see("without a device")
        terminal.send(CTRL_Q)
        assert terminal.exit_code() == 1
        assert terminal.clean()


def test_without_a_terminal_bare_localinfer_is_a_chat() -> None:
    from tests.cli.commands import run

    done = run("--plain", stdin=b"/quit\n", LOCALINFER_OFFLINE="1")
    assert "Traceback" not in done.stderr
    refused = run("tui")
    assert (refused.returncode, "needs a terminal" in refused.stderr) == (2, True)
