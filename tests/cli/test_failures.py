"""What is said of errors of the system that no command expected."""

import errno
import subprocess
from pathlib import Path

import pytest

from localinfer.cli.failures import guarded
from tests.cli.commands import COMMAND, environment


def fail(error: Exception) -> None:
    raise error


def test_an_error_of_a_file_names_the_file(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: (tmp_path / "gone").read_bytes()) == 1
    said = capsys.readouterr().err
    assert f"error: {tmp_path / 'gone'} cannot be used: No such file or directory." in said
    assert "Standard output" not in said
    assert "Traceback" not in said
    log = home / "logs" / "crash.log"
    assert str(log) in said
    assert "FileNotFoundError" in log.read_text()


def test_an_error_without_a_file_has_its_own_words(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: fail(OSError(errno.ECONNRESET, "Connection reset by peer"))) == 1
    said = capsys.readouterr().err
    assert "Connection reset by peer" in said
    assert "Standard output" not in said
    assert (home / "logs" / "crash.log").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("size", [1, 100_000])
def test_what_typer_cannot_write_is_said_of_standard_output(size: int) -> None:
    code = (
        "import os, typer\nfrom localinfer.cli.failures import guarded\n"
        f"os._exit(guarded(lambda: typer.echo('x' * {size})))"
    )
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [COMMAND[0], "-c", code], stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False
        )
    assert done.returncode == 1
    assert b"Standard output cannot be written: No space left" in done.stderr
