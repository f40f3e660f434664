"""References to models that are already on this machine."""

import os
from pathlib import Path

import pytest

from localinfer.errors import BadRequest, ModelFileInvalid, ModelNotFound, Offline
from localinfer.models import store
from localinfer.models.catalog import catalog
from tests.models.other_programs import GGUF, ollama, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with models in two folders of the person's, in LM Studio's and in Ollama's."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "ollama"))
    monkeypatch.setenv("LOCALINFER_MODEL_FOLDERS", os.pathsep.join([str(home / "one"), str(home / "two")]))
    studio = home / ".lmstudio" / "models"
    write(studio / "owner" / "Demo-GGUF" / "Demo-Q4_K_M.gguf", GGUF + b"4")
    write(studio / "owner" / "Demo-GGUF" / "Demo-Q8_0.gguf", GGUF + b"88")
    write(studio / "owner" / "Single-GGUF" / "Single-Q5_K_M.gguf", GGUF + b"555")
    write(home / "one" / "mine.gguf", GGUF + b"m")
    write(home / "one" / "same.gguf", GGUF + b"one")
    write(home / "two" / "same.gguf", GGUF + b"and two")
    ollama(home / "ollama", "llama3.2", "3b", GGUF + b"o")
    ollama(home / "ollama", "smollm2", "135m", GGUF + b"s")
    ollama(home / "ollama", "phi", "latest", GGUF + b"p")
    monkeypatch.chdir(tmp_path)
    return home


@pytest.mark.parametrize(
    ("reference", "file"),
    [
        ("owner/Demo-GGUF:Q4_K_M", "Demo-Q4_K_M.gguf"),
        ("OWNER/demo-gguf:q8_0", "Demo-Q8_0.gguf"),
        ("Demo-GGUF:Q4_K_M", "Demo-Q4_K_M.gguf"),
        ("Demo-Q4_K_M", "Demo-Q4_K_M.gguf"),
        ("Demo-Q4_K_M.gguf", "Demo-Q4_K_M.gguf"),
        ("owner/Demo-GGUF/Demo-Q8_0.gguf", "Demo-Q8_0.gguf"),
        ("owner/Single-GGUF", "Single-Q5_K_M.gguf"),
        ("Single-GGUF", "Single-Q5_K_M.gguf"),
        ("mine", "mine.gguf"),
        (" mine ", "mine.gguf"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_names_of_files(reference: str, file: str) -> None:
    ref = store.resolve(reference)
    assert [path.name for path in ref.paths] == [file]
    assert ref.quantization is None
    assert store.ensure(ref, offline=True, progress=lambda _: None) == ref.path


@pytest.mark.parametrize(
    ("reference", "name"),
    [("llama3.2:3b", "llama3.2:3b"), ("phi", "phi:latest"), ("phi:latest", "phi:latest"), ("smollm2:135m",) * 2],
)
def test_names_of_ollama(folder: Path, reference: str, name: str) -> None:
    ref = store.resolve(reference)
    assert ref.name == name
    assert ref.path.parent == folder / "ollama" / "blobs"


@pytest.mark.parametrize(
    ("reference", "candidates"),
    [
        ("owner/Demo-GGUF", ["owner/Demo-GGUF:Q4_K_M", "owner/Demo-GGUF:Q8_0"]),
        ("same", [str(Path("one") / "same.gguf"), str(Path("two") / "same.gguf")]),
    ],
)
@pytest.mark.usefixtures("folder")
def test_several_are_named(reference: str, candidates: list[str]) -> None:
    with pytest.raises(BadRequest, match="can mean 2 models") as caught:
        store.resolve(reference)
    assert all(candidate in caught.value.hint for candidate in candidates)
    assert caught.value.param == "model"


@pytest.mark.usefixtures("folder")
def test_part_of_a_name_is_no_name() -> None:
    for reference in ("Demo", "emo-GGUF", "owner", "owner/", "llama3.2", "GGUF"):
        with pytest.raises(ModelNotFound):
            store.resolve(reference)


def test_a_file_here_comes_before_a_model_elsewhere(folder: Path, tmp_path: Path) -> None:
    here = write(tmp_path / "mine", b"GGUF")
    assert store.resolve("mine").paths == (here,)
    (tmp_path / "owner" / "Single-GGUF").mkdir(parents=True)
    assert store.resolve("owner/Single-GGUF").path.name == "Single-Q5_K_M.gguf"
    with pytest.raises(ModelFileInvalid, match="is a folder"):
        store.resolve("owner")


def test_a_whole_name_comes_before_another_models_file(folder: Path) -> None:
    path = write(folder / "one" / "Single-Q5_K_M.gguf", GGUF + b"another")
    assert store.resolve("single-q5_k_m").paths == (path,)
    assert store.resolve("Single-GGUF").paths != (path,)


def test_copies_of_one_model_are_one(folder: Path) -> None:
    data = (folder / ".lmstudio/models/owner/Single-GGUF/Single-Q5_K_M.gguf").read_bytes()
    write(folder / ".cache/lm-studio/models/owner/Single-GGUF/Single-Q5_K_M.gguf", data)
    assert ".lmstudio" in store.resolve("owner/Single-GGUF").path.parts


class TestCatalogued:
    """Models of the catalogue that come from the hub."""

    def test_one_that_is_not_here(self) -> None:
        ref = store.resolve("qwen3-14b")
        spec = catalog().find("qwen3-14b")
        assert (ref.name, ref.paths, ref.quantization) == ("qwen3-14b", (), spec.quantizations[0])
        with pytest.raises(Offline, match="Qwen3 14B is not on this machine yet") as caught:
            store.ensure(ref, offline=True, progress=lambda _: None)
        assert "(9,002 MB): localinfer pull qwen3-14b" in caught.value.hint
        with pytest.raises(Offline) as approximate:
            store.ensure(store.resolve("qwen3-8b"), offline=True, progress=lambda _: None)
        assert "about 5,030 MB" in approximate.value.hint

    def test_another_quantization(self) -> None:
        spec = catalog().find("qwen3-14b")
        ref = store.resolve("Qwen3-14B:q6_k")
        assert (ref.name, ref.quantization) == ("qwen3-14b:Q6_K", spec.quantization("Q6_K"))
        with pytest.raises(ModelNotFound, match="Qwen3 14B has no quantization “Q7”") as caught:
            store.resolve("qwen3-14b:Q7")
        assert caught.value.hint == "It has: Q4_K_M, Q5_K_M, Q6_K, Q8_0."

    def test_what_is_here_is_used(self, folder: Path) -> None:
        path = folder / ".lmstudio" / "models" / "Qwen" / "Qwen3-14B-GGUF" / "Qwen3-14B-Q6_K.gguf"
        write(path)
        ref = store.resolve("qwen3-14b")
        assert ref.paths == (path,)
        assert ref.spec == catalog().find("qwen3-14b")
        assert store.ensure(ref, offline=True, progress=lambda _: None) == path
        assert store.resolve("qwen3-14b:Q6_K").paths == (path,)
        assert store.resolve("qwen3-14b:Q8_0").paths == ()
        write(path.with_name("Qwen3-14B-Q4_K_M.gguf"), GGUF + b"default")
        assert store.resolve("qwen3-14b").path.name == "Qwen3-14B-Q4_K_M.gguf"

    def test_the_starter_in_words(self, home: Path) -> None:
        assert store.resolve("smollm2-135m:q4_1").path.parent == home / "models" / "smollm2-135m"
