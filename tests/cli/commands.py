"""Running the real command as a person does: in a process of its own, with pipes or in a pseudo-terminal."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = (sys.executable, "-m", "localinfer.cli")
ROOT = Path(__file__).parents[2]


def environment(**extra: str) -> dict[str, str]:
    """This environment, with the checkout's packages and without colour."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100", **extra}


def run(
    *arguments: str, stdin: bytes = b"", cwd: Path | None = None, timeout_s: float = 120, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run a command with ``stdin`` piped in; its outputs as text."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        timeout=timeout_s,
        env=environment(**extra),
        cwd=cwd,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


def scripted(script: str, prompt: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    """``run`` on the scripted backend."""
    return run("run", "--backend", "scripted", script, prompt, *arguments, stdin=stdin)


def assert_one_clear_error(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """The command failed with ``code``, one error line and a hint, no trace, and nothing on standard output."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == code, (done.returncode, done.stderr)
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert done.stdout == ""


def sent(*turns: str, system: str = "") -> int:
    """Tokens of a prompt of ``turns``, by the user and the assistant in turn."""
    roles = [("system", system)] * bool(system)
    roles += [(("user", "assistant")[index % 2], text) for index, text in enumerate(turns)]
    return sum(len(f"{role}\n{text}\n".encode()) + 2 for role, text in roles) + len("assistant\n") + 1
