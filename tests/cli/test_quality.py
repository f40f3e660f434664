"""``compare`` and ``quantize`` as a person runs them."""

import json
from pathlib import Path

import pytest

from localinfer.models import gguf
from tests.cli.commands import assert_one_clear_error, run
from tests.cli.terminal import Terminal
from tests.tiny_models import SAMPLE, write_tiny_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_model(tmp_path, "llama").rename(tmp_path / "tiny-F32.gguf")
    (tmp_path / "text.txt").write_text(SAMPLE * 2)
    return tmp_path


def test_quantize_then_compare(folder: Path) -> None:
    done = run("quantize", "tiny-F32.gguf", "q4_0", cwd=folder)
    assert done.returncode == 0, done.stderr
    path, figures = done.stdout.splitlines()
    assert path == "tiny-Q4_0.gguf"
    assert figures.startswith("Q4_0, ")
    assert "bits per weight" in figures
    assert "localinfer compare tiny-F32.gguf tiny-Q4_0.gguf" in done.stderr
    assert gguf.check(folder / path).tensor_count

    done = run(
        "compare",
        "tiny-F32.gguf",
        path,
        "--text",
        "text.txt",
        "--context",
        "32",
        "--chunks",
        "3",
        cwd=folder,
        COLUMNS="80",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:2] == ["QUALITY", "PERPLEXITY"]
    assert lines[1].split()[0] == "tiny-F32"
    assert lines[1].split()[-6:] == ["–"] * 6
    assert lines[2].split()[0] == "tiny-Q4_0"
    assert lines[2].endswith("%")
    assert [line.split()[1] for line in lines[5:7]] == ["F32", "Q4_0"]
    assert "3 × 32 tokens" in done.stdout


def test_compare_for_programs(folder: Path) -> None:
    options = ("--text", "text.txt", "--context", "32", "--chunks", "2", "--json")
    done = run("compare", "tiny-F32.gguf", "tiny-F32.gguf", *options, cwd=folder)
    found = json.loads(done.stdout)
    first, second = found["models"]
    assert (found["context"], found["chunks"], found["scored_tokens"], found["text"]) == (32, 2, 30, "text.txt")
    assert first["divergence"] is None
    assert second["divergence"] == {"mean": 0, "p50": 0, "p90": 0, "p99": 0, "largest": 0, "same_top": 1}
    assert second["perplexity"] == first["perplexity"]
    assert first["name"] != second["name"]
    assert first["size_bytes"] == (folder / "tiny-F32.gguf").stat().st_size
    assert {"memory_bytes", "prefill_tps", "decode_tps", "placement", "threads"} <= first.keys()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("compare", "tiny-F32.gguf"), 2, ("Name two models",)),
        (("compare", "tiny-F32.gguf", "none.gguf"), 3, ("none.gguf",)),
        (("compare", "tiny-F32.gguf", "tiny-F32.gguf", "--text", "none.txt"), 2, ("none.txt", "cannot be read")),
        (("compare", "tiny-F32.gguf", "tiny-F32.gguf", "--text", "tiny-F32.gguf"), 2, ("not text",)),
        (("compare", "tiny-F32.gguf", "tiny-F32.gguf", "--text", "text.txt", "--context", "4000"), 2, ("too short",)),
        (("quantize", "tiny-F32.gguf", "Q9"), 2, ("Q9", "Q4_K_M")),
        (("quantize", "tiny-F32.gguf", "F32"), 2, ("made of",)),
        (("quantize", "tiny-F32.gguf", "F16", "text.txt"), 2, ("is there already", "--force")),
        (("quantize", "text.txt", "F16"), 1, ("not in the GGUF format",)),
    ],
)
def test_what_cannot_be_done(arguments: tuple[str, ...], code: int, words: tuple[str, ...], folder: Path) -> None:
    assert_one_clear_error(run(*arguments, cwd=folder), code, *words)
    assert {path.name for path in folder.iterdir()} == {"tiny-F32.gguf", "text.txt"}


def test_the_middle_of_a_long_name_gives_way(folder: Path) -> None:
    """Where quantizations of one model differ, at the end, it is read."""
    long = "a-model-with-a-very-long-name-that-fills-a-line-alone"
    for end in ("F32", "Q8_0"):
        (folder / f"{long}-{end}.gguf").hardlink_to(folder / "tiny-F32.gguf")
    options = ("--text", "text.txt", "--context", "32", "--chunks", "2")
    done = run("compare", f"{long}-F32.gguf", f"{long}-Q8_0.gguf", *options, cwd=folder, COLUMNS="80")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    names = [line.split()[0] for line in lines[1:3]]
    assert all(name.startswith("a-m") and "…" in name for name in names)
    assert [name.rpartition("-")[2] for name in names] == ["F32", "Q8_0"]


def test_ctrl_c_stops_it(starter_model: Path, home: Path) -> None:
    with Terminal("compare", str(starter_model), str(starter_model)) as terminal:
        terminal.expect("Reading with")
        terminal.interrupt("Stopped.")
        assert terminal.exit_code() == 130
        assert "Traceback" not in terminal.screen
    assert not list((home / "state").glob("compare-*"))
