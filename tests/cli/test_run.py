"""``localinfer run`` as a person runs it: what goes to which stream, what piped text does, and every bad input."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from localinfer.cli.figures import JSON_KEYS
from tests.cli.commands import COMMAND, assert_one_clear_error, environment, run, scripted


def test_the_answer_goes_to_stdout_and_the_figures_to_stderr() -> None:
    done = scripted("text=one%20two", "Hello", "--temperature", "0")
    assert done.returncode == 0
    assert done.stdout == "one two\n"
    assert done.stderr.startswith("TTFT ")
    assert "8 tokens" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_no_stats() -> None:
    assert scripted("text=one", "Hello", "--no-stats").stderr == ""


def test_json_ends_with_one_object_of_true_figures() -> None:
    done = scripted("text=one%20two", "Hello", "--json", "--temperature", "0", "--max-tokens", "3")
    answer, line = done.stdout.splitlines()
    figures = json.loads(line)
    assert answer == "one"
    assert set(figures) == {"model", "backend", "device", *JSON_KEYS}
    assert figures["completion_tokens"] == 3
    assert figures["finish_reason"] == "length"
    assert figures["backend"] == "scripted"
    assert figures["prompt_tokens"] > 5
    assert figures["drafts"] == 0
    assert figures["acceptance_rate"] is None
    assert done.stderr == ""


def test_piped_text_is_appended_to_the_prompt() -> None:
    short = scripted("text=x", "Hello", "--json")
    long = scripted("text=x", "Hello", "--json", stdin="wörld\n".encode())
    tokens = [json.loads(done.stdout.splitlines()[-1])["prompt_tokens"] for done in (short, long)]
    assert tokens[1] == tokens[0] + len("\n\nwörld".encode())  # the scripted backend's tokens are bytes


def test_piped_text_alone_is_the_prompt_of_a_named_model() -> None:
    done = run("run", "--backend", "scripted", "text=yes", "--temperature", "0", stdin=b"What?")
    assert done.stdout == "yes\n"


def test_the_same_seed_gives_the_same_text() -> None:
    first, again, other = (
        scripted("", "Hello", "--seed", seed, "--temperature", "1", "--no-stats").stdout for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_the_system_prompt_is_sent() -> None:
    counts = [
        json.loads(scripted("text=x", "Hello", "--json", *system).stdout.splitlines()[-1])["prompt_tokens"]
        for system in ((), ("--system", "Be brief."))
    ]
    assert counts[1] > counts[0] + len("Be brief.")


def test_a_model_cannot_command_the_terminal() -> None:
    done = scripted("text=a%1B%5D52%3Bc%3BaGk%3D%07b%C2%9B31mc%0Dd", "Hello", "--temperature", "0")
    assert done.stdout == "a]52;c;aGk=b31mcd\n"


def test_reasoning_is_not_part_of_the_answer() -> None:
    assert scripted("text=four&think=two%20and%20two", "Hello", "--temperature", "0").stdout == "four\n"


# Bad input: one clear line, a hint, the right exit code, no trace.


@pytest.mark.parametrize("prompt", ["", "   ", "\n"])
def test_an_empty_prompt(prompt: str) -> None:
    assert_one_clear_error(scripted("", prompt), 2, "empty")


def test_input_that_is_not_utf8() -> None:
    assert_one_clear_error(scripted("", "Hello", stdin=b"abc\xff\xfe"), 2, "UTF-8", "0xff", "iconv")


def test_a_prompt_of_a_megabyte_names_both_counts() -> None:
    done = scripted("context=1000", "Hello", stdin=b"word " * 200_000)
    assert_one_clear_error(done, 2, "1,000", "1,000,0")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--temperature", "-1"),
        ("--temperature", "nan"),
        ("--temperature", "inf"),
        ("--max-tokens", "0"),
        ("--max-tokens", "-5"),
        ("--seed", "-1"),
        ("--seed", "4294967296"),
        ("--max-tokens", "99999999999999999999999"),
    ],
)
def test_sampling_values_that_make_no_sense(arguments: tuple[str, str]) -> None:
    assert_one_clear_error(scripted("", "Hello", *arguments), 2, arguments[0].strip("-").replace("-", "_"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--temperature", "warm"),
        ("--nonsense",),
        ("--context", "0"),
        ("--context", "99999999999999999999999"),
        ("--threads", "-1"),
        ("--threads", "99999999999"),
        ("without", "any", "quotes"),
        (),
    ],
)
def test_usage_errors_exit_with_2(arguments: tuple[str, ...]) -> None:
    done = run("run", *(("Hello", *arguments) if arguments else ()))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_unknown_model_suggests_the_nearest() -> None:
    assert_one_clear_error(run("run", "smollm2-135b", "Hello"), 3, "smollm2-135m")


def test_an_unknown_backend_and_kv_type(starter_model: Path) -> None:
    assert_one_clear_error(run("run", str(starter_model), "Hello", "--backend", "vllm"), 2, "llama.cpp")
    assert_one_clear_error(run("run", str(starter_model), "Hello", "--kv", "q2"), 2, "q8_0")
    assert_one_clear_error(run("run", str(starter_model), "Hello", "--device", "CUDA7"), 2, "cpu")


def test_requiring_a_gpu_where_there_is_none(starter_model: Path) -> None:
    assert_one_clear_error(run("run", str(starter_model), "Hello", "--require-gpu"), 1, "GPU", "doctor")


def test_offline_without_the_model() -> None:
    assert_one_clear_error(run("run", "Hello", "--offline"), 5, "online")


def _files(tmp_path: Path, starter: Path) -> dict[str, tuple[Path, int, str]]:
    header = starter.read_bytes()[:4096]
    contents = {
        "empty": (b"", 1, "empty"),
        "page": (b"<!DOCTYPE html><html><body>404</body></html>", 1, "web page"),
        "not-gguf": (os.urandom(4096), 1, "GGUF"),
        "cut": (starter.read_bytes()[:1_000_000], 1, "byte"),
        "version": (header[:4] + (99).to_bytes(4, "little") + header[8:], 1, "version"),
        "absurd": (header[:8] + b"\xff" * 16 + header[24:], 1, ""),
        "tiny": (header[:43], 1, ""),
    }
    found = {}
    for name, (data, code, word) in contents.items():
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(data)
        found[name] = (path, code, word)
    found["missing"] = (tmp_path / "missing.gguf", 3, "missing.gguf")
    found["folder"] = (tmp_path, 1, "folder")
    return found


@pytest.mark.parametrize("name", ["empty", "page", "not-gguf", "cut", "version", "absurd", "tiny", "missing", "folder"])
def test_files_that_are_no_model(name: str, tmp_path: Path, starter_model: Path) -> None:
    path, code, word = _files(tmp_path, starter_model)[name]
    assert_one_clear_error(run("run", str(path), "Hello"), code, word)


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = run("run", "--backend", "scripted", "", "Hello", LOCALINFER_HOME=str(blocked))
    assert_one_clear_error(done, 1, "LOCALINFER_HOME")


def test_settings_that_make_no_sense(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("treads = 4\n")
    done = run("run", "--backend", "scripted", "", "Hello", LOCALINFER_HOME=str(tmp_path))
    assert_one_clear_error(done, 2, "treads", "threads")


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to one process is POSIX")
@pytest.mark.parametrize("script", ["load_s=60", "prefill_s=10", "pace_s=0.01&text=" + "word%20" * 2000])
def test_ctrl_c_at_every_phase(script: str) -> None:
    with subprocess.Popen(
        [*COMMAND, "run", "--backend", "scripted", script, "Hello"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if "pace_s" in script:
            process.stdout.read(20)
        else:
            _wait_for_child(process.pid)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 130
    assert errors.decode().strip() == "Stopped."


def _wait_for_child(pid: int) -> None:
    import psutil

    me = psutil.Process(pid)
    while not any("localinfer.worker" in " ".join(child.cmdline()) for child in me.children()):
        assert me.is_running()


@pytest.mark.skipif(os.name == "nt", reason="pipes close differently")
def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "run", "--backend", "scripted", "pace_s=0.01&text=" + "word%20" * 2000, "Hello"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(10) == 0
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


def test_a_worker_that_dies_is_explained() -> None:
    done = scripted("die_after=3", "Hello")
    assert done.returncode == 1
    assert "died while generating" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_real_starter_answers(starter_model: Path) -> None:
    done = run(
        "run", str(starter_model), "Repeat:", "--json", "--temperature", "0", "--max-tokens", "8", stdin=b"one two"
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["backend"] == "llama.cpp"
    assert figures["device"].startswith("CPU ×") or "GPU" in figures["device"]
    assert 0 < figures["completion_tokens"] <= 8
    assert figures["ttft_s"] > figures["load_s"] > 0
    assert figures["prompt_tokens"] > 10
    assert figures["tps"] is None or figures["tps"] > 0


def test_version() -> None:
    assert run("--version").stdout.startswith("localinfer ")


@pytest.mark.skipif(os.name == "nt", reason="arguments are Unicode there")
@pytest.mark.parametrize("arguments", [("x\udcff",), ("Hello", "--system", "x\udcff")])
def test_arguments_that_are_not_utf8(arguments: tuple[str, ...]) -> None:
    assert_one_clear_error(scripted("", *arguments), 2, "Unicode", "iconv")


def test_more_threads_than_cores(starter_model: Path) -> None:
    assert_one_clear_error(run("run", str(starter_model), "Hello", "--threads", "4096"), 2, "cores")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [("run", "--backend", "scripted", "text=x", "Hello"), ("--help",), ("--version",)])
def test_an_output_that_takes_nothing(command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *command],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert b"Standard output cannot be written: No space left on device" in done.stderr
    assert b"unexpected" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("streams", "answer"),
    [("2>/dev/full", b"x\n"), ("2>&-", b"x\n"), ("<&-", b"x\n"), ("<&- 2>&-", b"x\n"), (">&-", b"")],
)
def test_streams_that_are_closed_cost_nothing_else(streams: str, answer: bytes) -> None:
    command = " ".join([*COMMAND, "run", "--backend", "scripted", "text=x", "Hello", "--temperature", "0"])
    done = subprocess.run(
        ["/bin/sh", "-c", f"{command} {streams}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, answer)
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to one process is POSIX")
def test_ctrl_c_while_the_program_starts() -> None:
    """At whatever moment it comes once our own code runs, there is no trace."""
    code = "import signal, os, sys; sys.argv[1:] = ['--help']\nfrom localinfer import cli\n" + (
        "class Late:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Late())\ncli.main()"
    )
    done = subprocess.run([COMMAND[0], "-c", code], capture_output=True, env=environment(), timeout=60, check=False)
    assert done.returncode == 130
    assert done.stderr == b"Stopped.\n"
