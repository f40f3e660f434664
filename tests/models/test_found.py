"""Models that other programs, or the person, have put on this machine."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from localinfer.models import found
from localinfer.models.catalog import catalog
from localinfer.models.found import FoundModel
from localinfer.settings import Settings
from tests.models.other_programs import GGUF, hub_file, mlx_folder, ollama, write

links = pytest.mark.skipif(sys.platform == "win32", reason="links may need a right of their own")


class Machine:
    """The folders of all programs, empty, and what is found in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.own = root / "own" / "models"
        self.hub = root / "hf" / "hub"
        self.lmstudio = root / ".lmstudio" / "models"
        self.ollama = root / "ollama"
        self.llama = root / "llama"
        self.folder = root / "folder"
        self.settings = Settings()

    def survey(self) -> found.Survey:
        return found.survey(self.settings)

    def models(self) -> list[FoundModel]:
        return list(found.find(self.settings))

    def names(self) -> list[str]:
        return [model.name for model in self.models()]

    def one(self) -> FoundModel:
        (model,) = self.models()
        return model


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    here = Machine(tmp_path)
    for name, value in {
        "LOCALINFER_HOME": here.own.parent,
        "HF_HOME": here.hub.parent,
        "OLLAMA_MODELS": here.ollama,
        "LLAMA_CACHE": here.llama,
        "HOME": here.root,
        "USERPROFILE": here.root,
    }.items():
        monkeypatch.setenv(name, str(value))
    return here


class TestPlaces:
    def test_nothing_anywhere(self, machine: Machine) -> None:
        assert machine.survey() == found.Survey(models=(), notices=())

    def test_our_own(self, machine: Machine) -> None:
        starter = catalog().starter
        (quantization,) = starter.quantizations
        path = write(machine.own / starter.id / quantization.file, b"GGUF")
        os.truncate(path, quantization.size_bytes)
        write(machine.own / ".partial-smollm2-135m-x" / quantization.file)
        write(machine.own / "mine.gguf")
        ours, other = sorted(machine.models(), key=lambda model: model.name, reverse=True)
        assert (ours.name, ours.spec, ours.variant, ours.ours) == (starter.id, starter, quantization, True)
        assert ours.size_bytes == quantization.size_bytes
        assert other.paths == (machine.own / "mine.gguf",)
        assert other.spec is None

    def test_a_damaged_file_of_ours_is_not_here(self, machine: Machine) -> None:
        write(machine.own / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf")
        assert machine.names() == []

    @links
    def test_the_hub_cache(self, machine: Machine) -> None:
        link = hub_file(machine.hub, "owner/demo-GGUF", "demo-Q4_K_M.gguf")
        model = machine.one()
        assert (model.name, model.origin, model.repo) == ("owner/demo-GGUF:Q4_K_M", "huggingface", "owner/demo-GGUF")
        assert model.paths == (link,)
        assert model.size_bytes == len(GGUF)
        assert model.quantization == "Q4_K_M"
        assert not model.ours
        assert model.modified_s == pytest.approx(time.time(), abs=3_600)

    @links
    def test_the_hub_cache_where_the_person_has_moved_it(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "elsewhere"))
        hub_file(tmp_path / "elsewhere", "owner/demo-GGUF", "demo-Q8_0.gguf")
        assert machine.names() == ["owner/demo-GGUF:Q8_0"]

    @links
    def test_of_several_snapshots_the_main_one_counts(self, machine: Machine) -> None:
        hub_file(machine.hub, "owner/demo", "demo-Q4_0.gguf", b"GGUF new", "c1")
        hub_file(machine.hub, "owner/demo", "demo-Q4_0.gguf", b"GGUF older", "c0")
        hub_file(machine.hub, "owner/demo", "demo-Q8_0.gguf", b"GGUF only in the older", "c0")
        assert {model.name: model.size_bytes for model in machine.models()} == {
            "owner/demo:Q4_0": 8,
            "owner/demo:Q8_0": 22,
        }

    @links
    def test_shards_are_one(self, machine: Machine) -> None:
        parts = [
            hub_file(machine.hub, "o/big", f"Q6_K/big-Q6_K-{number:05}-of-00003.gguf", GGUF + bytes([number]))
            for number in (1, 2, 3)
        ]
        model = machine.one()
        assert model.name == "o/big:Q6_K"
        assert model.paths == tuple(parts)
        assert model.size_bytes == 3 * (len(GGUF) + 1)

    @links
    def test_a_missing_shard_is_said(self, machine: Machine) -> None:
        hub_file(machine.hub, "o/big", "big-Q6_K-00001-of-00003.gguf", b"GGUF1")
        hub_file(machine.hub, "o/big", "big-Q6_K-00003-of-00003.gguf", b"GGUF3")
        survey = machine.survey()
        assert survey.models == ()
        (notice,) = survey.notices
        assert "1 parts" in notice
        assert "big-Q6_K-00001-of-00003.gguf" in notice

    @links
    def test_a_catalogued_model_is_recognised(self, machine: Machine) -> None:
        hub_file(machine.hub, "Qwen/Qwen3-14B-GGUF", "Qwen3-14B-Q6_K.gguf", GGUF + b"6")
        hub_file(machine.hub, "ggml-org/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf", GGUF + b"8")
        known = {model.name: model for model in machine.models()}
        large, small = known["Qwen/Qwen3-14B-GGUF:Q6_K"], known["ggml-org/Qwen3-0.6B-GGUF:Q8_0"]
        spec = catalog().find("qwen3-14b")
        assert (large.spec, large.variant) == (spec, spec.quantization("Q6_K"))
        assert small.spec == catalog().find("qwen3-0.6b")

    @links
    def test_mlx(self, machine: Machine) -> None:
        repo = "mlx-community/Qwen3-4B-Instruct-2507-4bit"
        for name, data in {
            "config.json": json.dumps({"model_type": "qwen3", "quantization": {"bits": 4}}).encode(),
            "model-00001-of-00002.safetensors": b"one",
            "model-00002-of-00002.safetensors": b"two!",
            "README.md": b"not counted",
        }.items():
            link = hub_file(machine.hub, repo, name, data)
        model = machine.one()
        assert (model.name, model.format, model.quantization) == (repo, "mlx", "4bit")
        assert model.paths == (link.parent,)
        assert model.spec == catalog().find("qwen3-4b-2507")
        assert model.variant in catalog().find("qwen3-4b-2507").mlx

    def test_folders_that_are_not_for_mlx(self, machine: Machine) -> None:
        write(machine.lmstudio / "a" / "embedder" / "model.safetensors")
        write(machine.lmstudio / "a" / "embedder" / "config.json", b'{"model_type": "bert"}')
        mlx_folder(machine.lmstudio / "a" / "whisper-mlx", model_type="whisper")
        write(machine.lmstudio / "a" / "broken-mlx" / "model.safetensors")
        write(machine.lmstudio / "a" / "broken-mlx" / "config.json", b'{"model_type": [')
        mlx_folder(machine.lmstudio / "a" / "good", bits=8)
        mlx_folder(machine.lmstudio / "a" / "plain-mlx", bits=None)
        assert {model.name: model.quantization for model in machine.models()} == {"a/good": "8bit", "a/plain-mlx": ""}

    @pytest.mark.parametrize("place", [".lmstudio/models", ".cache/lm-studio/models"])
    def test_lm_studio(self, machine: Machine, place: str) -> None:
        path = write(machine.root / place / "publisher" / "Demo-GGUF" / "Demo-Q4_K_M.gguf")
        write(path.with_name("mmproj-Demo-F16.gguf"))
        model = machine.one()
        assert (model.name, model.origin, model.paths) == ("publisher/Demo-GGUF:Q4_K_M", "lmstudio", (path,))

    def test_llama_cpp(self, machine: Machine) -> None:
        path = write(machine.llama / "Qwen_Qwen3-8B-GGUF_Qwen3-8B-Q4_K_M.gguf")
        os.truncate(path, 5_020_000_000)
        write(path.with_name(path.name + ".json"), b"{}")
        write(path.with_name("x.gguf.downloadInProgress"))
        model = machine.one()
        assert model.name == "Qwen_Qwen3-8B-GGUF_Qwen3-8B-Q4_K_M"
        assert model.spec == catalog().find("qwen3-8b")

    def test_ollama(self, machine: Machine) -> None:
        blob = ollama(machine.ollama, "llama3.2", "3b", GGUF + b"1", file_type="Q4_K_M")
        ollama(machine.ollama, "qwen3", "latest", GGUF + b"2")
        ollama(machine.ollama, "mine", "q8_0", GGUF + b"3", owner="me")
        ollama(machine.ollama, "Demo-GGUF", "Q4_0", GGUF + b"4", owner="owner", host="hf.co")
        models = {model.name: model for model in machine.models()}
        assert list(models) == ["hf.co/owner/Demo-GGUF:Q4_0", "llama3.2:3b", "me/mine:q8_0", "qwen3:latest"]
        assert models["llama3.2:3b"].paths == (blob,)
        assert models["llama3.2:3b"].quantization == "Q4_K_M"
        assert models["me/mine:q8_0"].quantization == "Q8_0"
        assert models["llama3.2:3b"].origin == "ollama"

    def test_a_folder_of_the_person(self, machine: Machine) -> None:
        path = write(machine.folder / "deep" / "down" / "Some Model.gguf")
        machine.settings = Settings(model_folders=("~/folder",))
        model = machine.one()
        assert (model.name, model.origin, model.paths, model.quantization) == ("Some Model", "folder", (path,), "")

    def test_two_of_one_kind_in_a_folder_keep_their_quantization(self, machine: Machine) -> None:
        for name in ("a-Q4_K_M", "b-Q4_K_M"):
            write(machine.folder / f"{name}.gguf", name.encode())
        machine.settings = Settings(model_folders=(str(machine.folder),))
        assert {model.name: model.quantization for model in machine.models()} == {
            "a-Q4_K_M": "Q4_K_M",
            "b-Q4_K_M": "Q4_K_M",
        }


class TestTrouble:
    """A listing never fails, never loses the rest, and says what a person would miss."""

    def test_a_missing_folder_is_said_and_the_rest_is_kept(self, machine: Machine) -> None:
        ollama(machine.ollama, "kept", "latest")
        machine.settings = Settings(model_folders=(str(machine.root / "unplugged\x1b[31m"),))
        survey = machine.survey()
        assert [model.name for model in survey.models] == ["kept:latest"]
        (notice,) = survey.notices
        assert "unplugged" in notice
        assert notice.isprintable()

    @links
    def test_links_that_lead_nowhere_or_in_circles(self, machine: Machine) -> None:
        machine.settings = Settings(model_folders=(str(machine.folder),))
        write(machine.folder / "good.gguf")
        (machine.folder / "gone.gguf").symlink_to(machine.root / "nothing")
        (machine.folder / "self.gguf").symlink_to("self.gguf")
        (machine.folder / "up").symlink_to(machine.folder)
        (machine.folder / "a").mkdir()
        for number in range(8):
            (machine.folder / "a" / f"again{number}").symlink_to(machine.folder / "a")
        link = hub_file(machine.hub, "o/r", "r-Q4_0.gguf", b"GGUF gone")
        link.resolve().unlink()
        survey = machine.survey()
        assert [model.name for model in survey.models] == ["good"]
        assert survey.notices == ()

    @links
    def test_a_file_that_is_reached_twice_counts_once(self, machine: Machine) -> None:
        link = hub_file(machine.hub, "o/r", "r-Q4_0.gguf")
        machine.folder.mkdir()
        (machine.folder / "my name for it.gguf").symlink_to(link)
        machine.settings = Settings(model_folders=(str(machine.root), str(machine.hub)))
        assert machine.names() == ["o/r:Q4_0"]

    def test_files_that_are_no_models(self, machine: Machine) -> None:
        machine.settings = Settings(model_folders=(str(machine.folder),))
        for name in ("x.gguf.part", "y.gguf.incomplete", "mmproj-z.gguf", "z-mmproj-F16.gguf", "notes.txt", ".z.gguf"):
            write(machine.folder / name, name.encode())
        write(machine.folder / "empty.gguf", b"")
        (machine.folder / "folder.gguf").mkdir()
        if hasattr(os, "mkfifo"):
            os.mkfifo(machine.folder / "pipe.gguf")
        assert machine.survey() == found.Survey(models=(), notices=())

    @pytest.mark.skipif(sys.platform == "win32", reason="such names cannot exist")
    def test_names_a_terminal_would_obey(self, machine: Machine) -> None:
        machine.settings = Settings(model_folders=(str(machine.folder),))
        write(machine.folder / "red\x1b[31m.gguf", b"GGUF1")
        write(Path(os.fsdecode(os.fsencode(machine.folder) + b"/\xff.gguf")), b"GGUF2")
        write(machine.lmstudio / "o\nwner" / "r\x07epo" / "m-Q4_0.gguf", b"GGUF3")
        names = machine.names()
        assert len(names) == 3
        assert all(name.isprintable() for name in names)
        for name in names:
            model = found.match(machine.models(), name)
            assert model
            assert model.paths[0].exists()

    def test_a_folder_that_may_not_be_looked_into(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        machine.settings = Settings(model_folders=(str(machine.folder),))
        write(machine.folder / "good.gguf")
        write(machine.folder / "locked" / "other.gguf")
        real = os.scandir

        def scandir(path: Path) -> object:
            if Path(path).name == "locked":
                raise PermissionError(13, "Permission denied")
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)
        survey = machine.survey()
        assert [model.name for model in survey.models] == ["good"]
        (notice,) = survey.notices
        assert "locked cannot be looked into: Permission denied" in notice

    @pytest.mark.parametrize(
        "digest",
        ["sha256:" + "e" * 64, "sha256:../../../outside", "sha256:" + "E" * 64, "md5:" + "0" * 32, "", "../x" * 20],
    )
    def test_ollama_manifests_that_point_nowhere(self, machine: Machine, digest: str) -> None:
        write(machine.root / "outside")
        ollama(machine.ollama, "bad", "latest", GGUF + b"1", digest=digest or "sha256:")
        ollama(machine.ollama, "good", "latest", GGUF + b"2")
        assert machine.names() == ["good:latest"]

    def test_ollama_manifests_that_lead_out_of_the_store(self, machine: Machine) -> None:
        outside = write(machine.root / "outside", GGUF + b"1")
        (machine.ollama / "blobs" / "sha256-x").mkdir(parents=True)
        assert (machine.ollama / "blobs" / "sha256-x/../../../outside").samefile(outside)
        ollama(machine.ollama, "bad", "latest", GGUF + b"1", digest="sha256:x/../../../outside")
        assert machine.names() == []

    @pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"layers": 3}', b'{"layers": [{}]}', b"\xff"])
    def test_ollama_manifests_that_are_none(self, machine: Machine, text: bytes) -> None:
        ollama(machine.ollama, "good", "latest")
        write(machine.ollama / "manifests" / "registry.ollama.ai" / "library" / "bad" / "latest", text)
        assert machine.names() == ["good:latest"]

    def test_ollama_manifests_in_the_wrong_place_or_without_end(self, machine: Machine) -> None:
        ollama(machine.ollama, "one", "latest")
        manifests = machine.ollama / "manifests"
        good = manifests / "registry.ollama.ai" / "library" / "one" / "latest"
        for parts in ("stray", "host/stray", "host/owner/stray", "host/owner/name/deep/stray"):
            write(manifests / parts, good.read_bytes())
        write(good, good.read_bytes() + b" " * (1 << 21))
        assert machine.survey() == found.Survey(models=(), notices=())

    def test_ollama_blobs_that_are_not_whole(self, machine: Machine) -> None:
        blob = ollama(machine.ollama, "half", "latest")
        blob.write_bytes(b"GGUF")
        ollama(machine.ollama, "cloud", "latest", GGUF + b"2", kind="application/vnd.ollama.image.license")
        assert machine.survey() == found.Survey(models=(), notices=())

    def test_a_folder_without_end(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("localinfer.models.shelves._MOST_ENTRIES", 20)
        machine.settings = Settings(model_folders=(str(machine.folder),))
        for number in range(40):
            write(machine.folder / f"{number:02}.gguf", b"%d" % number)
        survey = machine.survey()
        assert 0 < len(survey.models) < 20
        (notice,) = survey.notices
        assert "too many files" in notice


def test_listing_opens_no_model(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of files are listed at once: their names and sizes say enough."""
    for number in range(200):
        write(
            machine.lmstudio / f"owner{number % 20}" / f"model-{number}-GGUF" / f"m-{number}-Q4_K_M.gguf",
            b"%d" % number,
        )
    opened: list[str] = []
    real = Path.open

    def watched(path: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(path.name)
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", watched)
    assert len(machine.models()) == 200
    assert not [name for name in opened if name.endswith(".gguf")]
