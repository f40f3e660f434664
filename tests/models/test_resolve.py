"""What a model reference may be."""

import errno
import os
from pathlib import Path

import pytest

from localinfer.cli.files import where
from localinfer.errors import ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models import store
from localinfer.models.catalog import catalog


class TestResolve:
    @pytest.mark.parametrize("name", ["smollm2-135m", "smollm2", " SmolLM2 ", "SmolLM2 135M Instruct"])
    def test_the_catalogue(self, home: Path, name: str) -> None:
        ref = store.resolve(name)
        assert ref.spec == catalog().starter
        assert ref.path.parent == home / "models" / "smollm2-135m"

    @pytest.mark.parametrize("name", ["mine.gguf", "ein Modell ä 模型 😸.gguf", "no-suffix"])
    def test_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        (tmp_path / name).write_bytes(b"GGUF")
        monkeypatch.chdir(tmp_path)
        for reference in (name, f"./{name}", str(tmp_path / name)):
            ref = store.resolve(reference)
            assert ref.paths == (tmp_path / name,)
            assert ref.name == name.removesuffix(".gguf")
            assert ref.spec is None

    def test_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        (tmp_path / "mine.gguf").write_bytes(b"GGUF")
        assert store.resolve("~/mine.gguf").path == tmp_path / "mine.gguf"

    def test_a_split_model(self, tmp_path: Path) -> None:
        parts = [tmp_path / f"big-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
        for part in parts:
            part.write_bytes(b"GGUF")
        ref = store.resolve(str(parts[0]))
        assert ref.name == "big"
        assert ref.paths == tuple(parts)
        with pytest.raises(ModelFileInvalid, match="split into 3") as caught:
            store.resolve(str(parts[2]))
        assert str(parts[0]) in caught.value.hint
        parts[1].unlink()
        with pytest.raises(ModelFileInvalid, match="1 of the 3 parts") as caught:
            store.resolve(str(parts[0]))
        assert parts[1].name in caught.value.hint

    def test_a_name_that_only_looks_split(self, tmp_path: Path) -> None:
        for name in ("x-00001-of-00000.gguf", "x-00005-of-00003.gguf", "-00001-of-00002.gguf"):
            (tmp_path / name).write_bytes(b"GGUF")
            assert store.resolve(str(tmp_path / name)).paths == (tmp_path / name,)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileInvalid, match="is a folder") as caught:
            store.resolve(str(tmp_path))
        assert caught.value.hint == "There is no .gguf file in it."
        for name in ("a.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "notes.txt"):
            (tmp_path / name).touch()
        with pytest.raises(ModelFileInvalid) as caught:
            store.resolve(str(tmp_path))
        assert caught.value.hint == "Name one of the files in it: a.gguf, b-00001-of-00002.gguf."

    def test_a_missing_path(self, tmp_path: Path) -> None:
        (tmp_path / "qwen-q4.gguf").touch()
        with pytest.raises(ModelNotFound, match="There is no file") as caught:
            store.resolve(str(tmp_path / "qwen_q4.gguf"))
        assert caught.value.hint == f"Did you mean {tmp_path / 'qwen-q4.gguf'}?"
        for reference in ("nothing.gguf", "./smollm2", "some/model", "~nobody/model", "x/" * 3_000):
            with pytest.raises(ModelNotFound, match="There is no file"):
                store.resolve(reference)

    @pytest.mark.parametrize("reference", ["", " ", "smolm2", "\x1b[31mred", "a\0b", "x" * 5_000, "\udcff"])
    def test_an_unknown_name(self, reference: str) -> None:
        with pytest.raises(ModelNotFound, match="There is no model") as caught:
            store.resolve(reference)
        assert caught.value.message.isprintable()
        assert caught.value.hint.startswith(("Did you mean smollm2", "Give a name of the catalogue (localinfer models"))

    def test_a_folder_that_may_not_be_looked_into(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        parts = [tmp_path / f"big-{number:05}-of-00002.gguf" for number in (1, 2)]
        for part in parts:
            part.write_bytes(b"GGUF")
        refused = {parts[1]}
        real = Path.stat

        def stat(path: Path, **options: bool) -> os.stat_result:
            if path in refused:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return real(path, **options)

        monkeypatch.setattr(Path, "stat", stat)
        with pytest.raises(StorageUnavailable, match="may not look at"):
            store.resolve(str(parts[0]))
        starter = store.resolve("smollm2")
        assert store.missing(starter) == [starter.path]
        refused.add(starter.path)
        with pytest.raises(StorageUnavailable, match="may not look at"):
            where("smollm2")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")
    def test_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.gguf")
        with pytest.raises(ModelFileInvalid, match="is not a file"):
            store.resolve(str(tmp_path / "pipe.gguf"))
