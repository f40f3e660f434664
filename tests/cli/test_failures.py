"""What is said of errors of the system that no command expected."""

import errno
from pathlib import Path

import pytest
import typer

from localinfer.cli.failures import guarded


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
def test_what_typer_cannot_write_is_said_of_standard_output(
    size: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w", encoding="utf-8", buffering=1, closefd=True) as full:  # noqa: PTH123 - as sys.stdout is
        monkeypatch.setattr("sys.stdout", full)
        assert guarded(lambda: typer.echo("x" * size)) == 1
        monkeypatch.undo()
        assert "Standard output cannot be written: No space left" in capsys.readouterr().err
        full.detach().raw.close()
