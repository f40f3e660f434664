"""``localinfer bench`` as a person runs it: what it writes, every bad argument, and Ctrl-C."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

from tests.bench_command.openai_server import OpenAiServer, serving
from tests.cli.commands import COMMAND, assert_one_clear_error, environment, run
from tests.cli.terminal import CTRL_C, Terminal

FAST = "pace_s=0.0005"


def bench(*arguments: str, columns: int = 100) -> subprocess.CompletedProcess[str]:
    return run("bench", *arguments, COLUMNS=str(columns))


def scripted(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return bench("--backend", "scripted", script, "--quick", *arguments)


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench("--schema").stdout)
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def valid(done: subprocess.CompletedProcess[str], schema: dict[str, Any]) -> dict[str, Any]:
    """The report of a command that succeeded."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema).validate(found)
    return found


def test_tables_for_people() -> None:
    arguments = ("--draft", "off", "--workload", "extraction")
    done = bench("--backend", "scripted", FAST, "--quick", *arguments, columns=80)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    for word in ("PREFILL", "GFLOP/s", "P50/P90/P99", "J/token", "CLIENTS", "decode after 128", "▇"):
        assert word in done.stdout
    assert "DRAFTS" not in done.stdout


def test_then_and_now(tmp_path: Path, schema: dict[str, Any]) -> None:
    arguments = ("--quick", "--concurrency", "4", "--against")
    with serving(OpenAiServer(pace_s=0.003)) as served:
        old = bench(*arguments, served.url, "--json")
        file = tmp_path / "old.json"
        file.write_text(old.stdout)
        served.pace_s = 0.015
        slower = valid(bench(*arguments, served.url, "--json", "--compare", str(file)), schema)
        served.pace_s = 0.0003
        faster = bench(*arguments, served.url, "--compare", str(file))
    each = next(one for one in slower["comparison"] if one["figure"] == "each, 4 clients")
    assert each["verdict"] == "slower"
    assert each["p"] < 0.05
    assert next(one for one in slower["comparison"] if "together" in one["figure"])["verdict"] == "too few samples"
    assert "Then and now" in faster.stdout
    (line,) = (line for line in faster.stdout.splitlines() if line.startswith("each, 4 clients"))
    assert line.split()[-1] == "faster"


def test_a_file_of_prompts(tmp_path: Path, schema: dict[str, Any]) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"prompt": "One"}\n{"messages": [{"role": "user", "content": "Two"}]}\n')
    report = valid(scripted(FAST, "--json", "--file", str(file)), schema)
    assert report["workload"] == "mine.jsonl"
    assert {cell["workload"] for cell in report["results"][0]["speculation"]} == {"mine.jsonl"}


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", 2, ("no prompt",)),
        (b"\0\1\2", 2, ("binary",)),
        (b'{"prompt": 1}', 2, ("line 1 of mine",)),
        (b"short\n" + b"word " * 2000, 2, ("line 2 of mine", "--context", "2,000")),
    ],
)
def test_a_file_that_is_wrong(content: bytes, code: int, words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_bytes(content)
    assert_one_clear_error(scripted("context=2000", "--file", str(file)), code, *words)


def test_a_wrong_name_is_told_before_another_model_is_measured(starter_model: Path) -> None:
    assert_one_clear_error(bench("--quick", str(starter_model), "smollm2-135b"), 3, "smollm2-135m")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--concurrency", "0"), "1,4,8"),
        (("--concurrency", "one"), "1,4,8"),
        (("--concurrency", "1,9999"), "256"),
        (("--full",), "opposites"),
        (("--workload", "poems"), "extraction"),
        (("--workload", "chat", "--file", "x"), "one of them"),
        (("--compare", "/missing.json"), "missing.json"),
        (("--against", "ftp://x"), "no address"),
    ],
)
def test_arguments_that_make_no_sense(arguments: tuple[str, ...], word: str) -> None:
    assert_one_clear_error(scripted(FAST, *arguments), 2, word)


def test_a_server_is_asked_the_same(schema: dict[str, Any]) -> None:
    with serving(OpenAiServer(pace_s=0.001)) as served:
        report = valid(
            scripted(FAST, "--json", "--against", served.url, "--concurrency", "2", "--offline", "--draft", "off"),
            schema,
        )
    ours, theirs = report["results"]
    assert (ours["subject"]["kind"], theirs["subject"]["kind"]) == ("model", "server")
    assert theirs["subject"]["url"] == f"{served.url}/v1"
    assert theirs["shapes"] == theirs["speculation"] == []
    (level,) = theirs["levels"]
    assert level["requests"] == ours["levels"][0]["requests"] == len(served.asked) - 1  # and one to warm up
    assert level["completion_tokens"] == 8 * level["requests"]
    assert level["tps"]["p50"] > 0
    prompts = [body["messages"][0]["content"] for body in served.asked]
    assert len(set(prompts)) == len(prompts)  # no cache helps


def test_a_server_alone_and_one_that_does_not_count(schema: dict[str, Any]) -> None:
    with serving(OpenAiServer(usage=None)) as served:
        report = valid(bench("--quick", "--json", "--against", served.url, "--concurrency", "1"), schema)
    (theirs,) = report["results"]
    assert theirs["levels"][0]["tps"] is None
    assert theirs["levels"][0]["ttft_s"]["p50"] > 0


def test_servers_that_cannot_be_asked() -> None:
    with serving(OpenAiServer(raw=b'data: {"error": "no \x1b[31m"}\n\n')) as served:
        assert_one_clear_error(bench("--quick", "--against", served.url), 1, "no such server")
    assert_one_clear_error(bench("--quick", "--against", served.url), 1, "No server answers")
    assert_one_clear_error(bench("--quick", "--against", "http://192.0.2.1", "--offline"), 5, "another machine")


@pytest.mark.skipif(os.name == "nt", reason="SIGINT to one process is POSIX")
def test_ctrl_c_leaves_nothing_and_shows_what_was_measured(schema: dict[str, Any]) -> None:
    with serving(OpenAiServer(hang=True)) as served:
        command = [
            "bench",
            "--backend",
            "scripted",
            FAST,
            "--quick",
            "--json",
            "--against",
            served.url,
            "--draft",
            "off",
        ]
        with subprocess.Popen(
            [*COMMAND, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(PYTHONUNBUFFERED="1"),
        ) as process:
            served.begun.wait(60)
            children = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            written, errors = process.communicate(timeout=20)
        assert process.returncode == 130
        assert errors.decode().strip() == "Stopped."
        report = json.loads(written)
        jsonschema.validate(report, schema)
        assert report["complete"] is False
        assert report["results"][0]["levels"]
        psutil.wait_procs(children, timeout=5)
        assert not any(child.is_running() for child in children)


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_progress_at_a_terminal_and_ctrl_c_there() -> None:
    with Terminal("bench", "--backend", "scripted", "pace_s=0.02", "--quick", NO_COLOR="") as terminal:
        terminal.expect("prefill and decode after 128 tokens, round 1 of 3")
        terminal.expect("after 512 tokens, round 1 of 3")
        terminal.expect("round 2 of 3")
        terminal.send(CTRL_C)
        terminal.expect("Stopped: this is what was measured by then")
        assert terminal.exit_code() == 130
