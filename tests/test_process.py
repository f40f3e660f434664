"""Children and frames, with a real child process on the other end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localinfer.errors import StorageUnavailable
from localinfer.process import LOGS_KEPT, Child, Death, log_tail
from tests.children import Frame

Start = Callable[..., Child[Frame]]

posix = pytest.mark.skipif(os.name == "nt", reason="signals and process groups are POSIX")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a child that does what ``action`` says (see ``tests.children``) and writes ``log``."""
    children: list[Child[Frame]] = []

    def run(action: str, log: str = "") -> Child[Frame]:
        monkeypatch.setenv("CHILD", action)
        monkeypatch.setenv("CHILD_LOG", log)
        children.append(Child("tests.children", Frame, tmp_path / "logs" / f"child-new-{len(children)}.log"))
        return children[-1]

    yield run
    for child in children:
        child.kill()
        child.death()


def ended(child: Child[Frame]) -> Death:
    """How the child ended, once it has."""
    for _ in child.reports():
        pass
    return child.death()


# Frames


def test_frames_of_every_size_go_both_ways(start: Start) -> None:
    child = start("echo")
    reports = child.reports()
    for size in (0, 1, 3, 4, 255, 256, 65_535, 65_536, 1_000_000, 8_000_000):
        data = os.urandom(size)
        child.send(Frame(data=data, number=size))
        assert next(reports) == Frame(data=data, number=size)
    child.close()
    assert list(reports) == []
    assert child.death().exit_code == 0


def test_frames_from_many_threads_do_not_mix(start: Start) -> None:
    child = start("echo")

    def send(number: int) -> None:
        for _ in range(50):
            child.send(Frame(data=bytes([number]) * 10_000, number=number))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    reports = child.reports()
    frames = [next(reports) for _ in range(6 * 50)]
    for thread in threads:
        thread.join()
    assert all(frame.data == bytes([frame.number]) * 10_000 for frame in frames)
    assert sorted(frame.number for frame in frames) == sorted(list(range(6)) * 50)


@posix
def test_what_libraries_print_goes_to_the_log_and_breaks_no_frame(start: Start) -> None:
    child = start("chatter")
    reports = child.reports()
    assert next(reports).data == b"clean"
    child.send(Frame(data=b"and still"))
    assert next(reports).data == b"and still"
    child.close()
    log = child.log.read_text("utf-8", "replace")
    assert all(f"from {source}" in log for source in ("os.write", "print", "the C library"))


@pytest.mark.parametrize(
    "sent",
    [
        "",  # nothing at all
        "0400",  # half a header
        "64000000 0102",  # a frame of 100 bytes that ends after 2
        "00000000",  # a frame of no bytes
        "04000000 c1c1c1c1",  # no msgpack
        "01000000 01",  # msgpack of something else
        "ffffffff",  # a frame of 4 GiB
    ],
)
def test_frames_nobody_could_have_meant_end_the_reports(start: Start, sent: str) -> None:
    child = start(f"bytes {sent}")
    assert list(child.reports()) == []
    child.death()
    assert not child.alive()


def test_processes_share_one_clock(start: Start) -> None:
    before = time.perf_counter_ns()
    child = start("clock")
    there = next(child.reports()).number
    assert before < there < time.perf_counter_ns()


def test_sending_to_a_child_that_has_gone_is_harmless(start: Start) -> None:
    child = start("exit 0")
    ended(child)
    child.send(Frame(data=b"x" * 1_000_000))
    child.close()
    child.kill()


@posix
def test_a_stopped_child_keeps_nobody_waiting(start: Start) -> None:
    child = start("echo")
    reports = child.reports()
    child.send(Frame(number=1))
    next(reports)
    os.kill(child.pid, signal.SIGSTOP)
    begun = time.monotonic()
    for number in range(8):
        child.send(Frame(data=bytes(1_000_000), number=number))
    assert time.monotonic() - begun < 0.4
    os.kill(child.pid, signal.SIGCONT)
    assert [next(reports).number for _ in range(8)] == [*range(8)], "all are written, in order, once it reads again"
    os.kill(child.pid, signal.SIGSTOP)
    child.send(Frame(data=bytes(1_000_000)))
    begun = time.monotonic()
    child.close()
    assert time.monotonic() - begun < 1.5
    assert not child.alive()
    assert "localinfer-frames" not in {thread.name for thread in threading.enumerate()}


def test_what_was_sent_before_it_is_closed_arrives(start: Start) -> None:
    child = start("echo")
    reader = threading.Thread(target=lambda: seen.extend(child.reports()))
    seen: list[Frame] = []
    reader.start()
    for number in range(50):
        child.send(Frame(data=bytes(10_000), number=number))
    child.close(timeout_s=10)
    reader.join()
    assert [frame.number for frame in seen] == [*range(50)]


# How a child ends


@pytest.mark.parametrize(("code", "cause"), [(0, "code 0"), (3, "code 3"), (255, "code 255")])
def test_an_exit_code_is_the_cause(start: Start, code: int, cause: str) -> None:
    death = ended(start(f"exit {code}"))
    assert death.exit_code == code
    assert death.cause.endswith(cause)
    assert not death.out_of_memory


@posix
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM])
def test_a_signal_is_the_cause(start: Start, number: signal.Signals) -> None:
    death = ended(start(f"signal {int(number)}"))
    assert death.exit_code == -number
    assert number.name in death.cause
    assert not death.out_of_memory


@pytest.mark.parametrize(
    "line", ["std::bad_alloc", "CUDA error: out of memory", "ggml_backend: failed to allocate buffer of size 9"]
)
def test_memory_that_ran_out_is_told_from_the_log(start: Start, line: str) -> None:
    assert ended(start("exit 1", log=f"loading\n{line}\nbye\n")).out_of_memory
    assert not ended(start("exit 0", log=f"{line}\n")).out_of_memory


def test_a_child_that_does_not_go_is_ended(start: Start) -> None:
    child = start("hang")
    next(child.reports())
    assert child.alive()
    child.close(timeout_s=0.05)
    assert not child.alive()


@posix
def test_ctrl_c_in_the_terminal_of_the_application_does_not_reach_the_child(tmp_path: Path) -> None:
    program = """
        import signal, sys
        from pathlib import Path
        from localinfer.process import Child
        from tests.children import Frame

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background may ignore it
        child = Child("tests.children", Frame, Path(sys.argv[1]))
        reports = child.reports()
        child.send(Frame(number=1))
        next(reports)
        try:
            print("ready", flush=True)
            sys.stdin.read()
        except KeyboardInterrupt:
            child.send(Frame(number=2))
            print(next(reports).number, flush=True)
        child.close()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "child.log")]
    environment = {**os.environ, "CHILD": "echo", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as application:
        assert application.stdout is not None
        assert application.stdout.readline() == "ready\n"
        os.killpg(application.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
        assert application.stdout.readline() == "2\n"
    assert application.returncode == 0


# Logs


def test_the_tail_of_a_log_is_short_and_printable(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"first\n" * 5000 + b"\n  \n" + b"\x1b]0;title\x07 \xff\xfe bell\x07\r\nlast\xe2\x80\xae\n\n")
    tail = log_tail(log, lines=3)
    assert len(tail) == 3
    assert tail[0] == "first"
    assert all(line.isprintable() for line in tail)
    assert tail[2] == "last"
    assert log_tail(tmp_path / "missing.log") == ()


def test_the_tail_of_a_death_is_the_end_of_what_the_child_wrote(start: Start) -> None:
    death = ended(start("exit 7", log="".join(f"line {number}\n" for number in range(100))))
    assert death.log_tail[-1] == "line 99"
    assert len(death.log_tail) < 20


def test_only_the_newest_logs_are_kept(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(LOGS_KEPT + 5):
        log = folder / f"child-old-{number}.log"
        log.touch()
        os.utime(log, (number, number))
    for other in ("notes.txt", "crash.log", "worker-1.log"):
        (folder / other).touch()
    ended(start("exit 0"))
    kept = {path.name for path in folder.glob("child-*.log")}
    assert len(kept) == LOGS_KEPT
    assert "child-new-0.log" in kept
    assert "child-old-5.log" not in kept
    assert f"child-old-{LOGS_KEPT + 4}.log" in kept
    assert {path.name for path in folder.iterdir()} - kept == {"notes.txt", "crash.log", "worker-1.log"}


def test_a_log_that_cannot_be_written_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.log").mkdir()
    for log in (tmp_path / "file" / "a.log", tmp_path / "folder.log"):
        with pytest.raises(StorageUnavailable, match=str(log)) as caught:
            Child("tests.children", Frame, log)
        assert "LOCALINFER_HOME" in caught.value.hint


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_read_only_log_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageUnavailable):
            Child("tests.children", Frame, tmp_path / "a.log")
    finally:
        tmp_path.chmod(0o700)
