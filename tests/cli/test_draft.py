"""``--draft`` as a person writes it: models, words, mistakes, and what ``fit`` says of a pair."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import assert_one_clear_error, run, scripted
from tests.tiny_models import write_tiny_model

SCRIPT = "text=one%20two%20three%20four%20five%20six&draft=3&acceptance=1&pace_s=0.005"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name in ("llama", "lfm2", "gemma3"):
        write_tiny_model(tmp_path, name)
    return tmp_path


def figures(*arguments: str) -> dict[str, object]:
    done = scripted(SCRIPT, "Hello", "--temperature", "0", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_switch_turns_drafting_off_and_changes_no_word() -> None:
    on, off = figures(), figures("--draft", "off")
    assert on["drafts"]
    assert (off["drafts"], on["completion_tokens"]) == (0, off["completion_tokens"])
    assert off["speculation_off"]


def test_the_settings_may_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALINFER_DRAFT", "off")
    assert figures()["drafts"] == 0
    assert figures("--draft", "auto")["drafts"] != 0


def test_a_model_drafts_for_another(models: Path) -> None:
    done = run(
        "run",
        *(str(models / "lfm2.gguf"), "Hello", "--draft", str(models / "llama.gguf")),
        *("--max-tokens", "4", "--temperature", "0", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["drafter"] == "prompt lookup + llama"


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        ("{}/gemma3.gguf", ("another vocabulary", "same family")),
        ("{}/llama.gguf", ("same file",)),
        ("{}/lfm2.gguf", ("recurrent",)),
        ("nonsense", ("nonsense", "auto, lookup, off")),
        ("{}/missing.gguf", ("There is no file", "missing.gguf")),
    ],
    ids=["vocabulary", "itself", "recurrent", "nonsense", "missing"],
)
@pytest.mark.parametrize("command", ["run", "chat"])
def test_a_mistake_is_one_line_before_anything_is_loaded(
    command: str, draft: str, words: tuple[str, ...], models: Path, home: Path
) -> None:
    prompt = ["Hello"] if command == "run" else []
    done = run(command, str(models / "llama.gguf"), *prompt, "--draft", draft.format(models))
    assert_one_clear_error(done, 2, *words)
    assert not list((home / "logs").glob("worker-*"))


def test_fit_shows_the_draft_as_a_part_of_the_memory(models: Path) -> None:
    arguments = ("fit", str(models / "lfm2.gguf"), "--draft", str(models / "llama.gguf"))
    shown = run(*arguments, COLUMNS="80")
    assert shown.returncode == 0, shown.stderr
    assert "Draft: llama, " in shown.stdout
    assert "draft model" in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())

    found = json.loads(run(*arguments, "--json").stdout)
    assert (found["draft"]["name"], found["draft"]["fits"], found["draft"]["fetched"]) == ("llama", True, True)
    (term,) = [term for term in found["plan"]["terms"] if term["kind"] == "draft"]
    assert term["size_bytes"] > (models / "llama.gguf").stat().st_size / 2
    assert_one_clear_error(run(*arguments[:3], str(models / "gemma3.gguf")), 2, "another vocabulary")


def test_the_pair_of_the_catalogue_is_suggested() -> None:
    for command in ("fit", "show"):
        done = run(command, "qwen3-8b:Q4_K_M", "--context", "2048", COLUMNS="80")
        said = " ".join(done.stdout.split())
        assert "ould draft" in said
        assert "qwen3-0.6b, ~639 MB, " in said
        assert all(len(line) <= 80 for line in done.stdout.splitlines())
    refused = run("fit", "qwen3-8b:Q4_K_M", "--draft", "smollm2-135m")
    assert_one_clear_error(refused, 2, "49,152 tokens instead of 151,936")
