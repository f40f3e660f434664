import os
from pathlib import Path

import platformdirs
import pytest

from localinfer import settings
from localinfer.errors import BadRequest, StorageUnavailable
from localinfer.settings import Settings


def write(text: str) -> Path:
    path = settings.config_file()
    path.write_text(text, "utf-8")
    return path


class TestFolders:
    def test_home_moves_everything(self, home: Path) -> None:
        assert settings.models_dir() == home / "models"
        assert settings.log_dir() == home / "logs"
        assert settings.state_dir() == home / "state"
        assert settings.config_file() == home / "config.toml"
        assert not list(home.iterdir()), "looking creates nothing"

    @pytest.mark.parametrize("value", ["", None])
    def test_without_a_home_they_are_where_the_system_wants_them(
        self, monkeypatch: pytest.MonkeyPatch, value: str | None
    ) -> None:
        if value is None:
            monkeypatch.delenv("LOCALINFER_HOME")
        else:
            monkeypatch.setenv("LOCALINFER_HOME", value)
        assert settings.models_dir() == platformdirs.user_data_path("localinfer", appauthor=False) / "models"
        assert settings.config_file() == platformdirs.user_config_path("localinfer", appauthor=False) / "config.toml"
        assert settings.log_dir() == platformdirs.user_log_path("localinfer", appauthor=False)
        assert settings.state_dir() == platformdirs.user_state_path("localinfer", appauthor=False)

    def test_home_may_be_relative_or_start_with_a_tilde(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("LOCALINFER_HOME", "here")
        assert settings.models_dir() == tmp_path / "here" / "models"
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        monkeypatch.setenv("LOCALINFER_HOME", "~/there")
        assert settings.models_dir() == tmp_path / "there" / "models"

    def test_a_folder_is_made_with_its_parents(self, home: Path) -> None:
        assert settings.make_folder(home / "a" / "b").is_dir()
        assert settings.make_folder(home / "a" / "b").is_dir()

    @pytest.mark.parametrize("below", [".", "models"])
    def test_a_file_in_the_way(self, tmp_path: Path, below: str) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageUnavailable, match="a file is in the way") as caught:
            settings.make_folder(tmp_path / "file" / below)
        assert "LOCALINFER_HOME" in caught.value.hint

    def test_a_folder_that_may_not_be_written(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", refuse)
        with pytest.raises(StorageUnavailable, match="Permission denied"):
            settings.make_folder(home / "models")


class TestSettings:
    def test_nothing_set(self) -> None:
        assert settings.load() == Settings()

    def test_the_file(self) -> None:
        write('model = "smollm2"\noffline = true\ncontext = 2048\nkv_type = "q8_0"\n')
        assert settings.load() == Settings(model="smollm2", offline=True, context=2048, kv_type="q8_0")

    def test_folders_are_a_list_in_the_file_and_as_in_path_in_the_environment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write('model_folders = ["~/one", "/two"]\n')
        assert settings.load().model_folders == ("~/one", "/two")
        monkeypatch.setenv("LOCALINFER_MODEL_FOLDERS", os.pathsep.join(["/three", "", "with space"]))
        assert settings.load().model_folders == ("/three", "with space")
        monkeypatch.delenv("LOCALINFER_MODEL_FOLDERS")
        write('model_folders = "/two"\n')
        with pytest.raises(BadRequest, match="model_folders"):
            settings.load()

    def test_the_environment_comes_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write('model = "smollm2"\noffline = true\nthreads = 2\n')
        monkeypatch.setenv("LOCALINFER_MODEL", "other")
        monkeypatch.setenv("LOCALINFER_OFFLINE", "0")
        monkeypatch.setenv("LOCALINFER_THREADS", "")
        monkeypatch.setenv("LOCALINFER_CONTEXT", "4096")
        assert settings.load() == Settings(model="other", offline=False, threads=2, context=4096)

    @pytest.mark.parametrize(
        ("text", "key", "said"),
        [
            ('context = "many"', "context", "Expected `int | null`, got `str`"),
            ("context = true", "context", "got `bool`"),
            ("context = 0", "context", ">= 1"),
            ("threads = -4", "threads", ">= 1"),
            ("offline = 1", "offline", "Expected `bool`"),
            ('kv_type = "q3"', "kv_type", "q3"),
            ("[model]\nid = 1", "model", "got `object`"),
            ('modell = "smollm2"', "modell", "unknown setting"),
        ],
    )
    def test_a_wrong_value_in_the_file(self, text: str, key: str, said: str) -> None:
        path = write(text)
        with pytest.raises(BadRequest) as caught:
            settings.load()
        assert caught.value.param == key
        assert str(path) in caught.value.message
        assert f"“{key}”" in caught.value.message
        assert said in caught.value.message
        assert caught.value.hint

    def test_an_unknown_setting_gets_a_suggestion(self) -> None:
        write("ofline = true")
        with pytest.raises(BadRequest) as caught:
            settings.load()
        assert caught.value.hint == "Did you mean “offline”?"
        write("colour = 1")
        with pytest.raises(BadRequest) as caught:
            settings.load()
        assert "model, offline" in caught.value.hint

    @pytest.mark.parametrize(
        ("name", "value"),
        [("OFFLINE", "perhaps"), ("CONTEXT", "2k"), ("CONTEXT", "0"), ("THREADS", "1.5"), ("KV_TYPE", "q3")],
    )
    def test_a_wrong_value_in_the_environment(self, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
        monkeypatch.setenv(f"LOCALINFER_{name}", value)
        with pytest.raises(BadRequest, match=f"LOCALINFER_{name}") as caught:
            settings.load()
        assert caught.value.param == name.lower()

    @pytest.mark.parametrize("content", [b"model = ", b"model = '\xff'", b"model = 1\nmodel = 2"])
    def test_a_file_that_is_not_toml(self, content: bytes) -> None:
        path = settings.config_file()
        path.write_bytes(content)
        with pytest.raises(BadRequest, match="is not valid TOML") as caught:
            settings.load()
        assert str(path) in caught.value.message

    def test_a_file_that_cannot_be_read(self) -> None:
        settings.config_file().mkdir()
        with pytest.raises(StorageUnavailable, match=r"config\.toml cannot be read"):
            settings.load()


class TestWhatIsNoFile:
    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")
    def test_a_pipe(self) -> None:
        os.mkfifo(settings.config_file())
        with pytest.raises(StorageUnavailable, match="cannot be read: it is not a file"):
            settings.load()

    def test_a_huge_file(self) -> None:
        write("#" * 1_000_000)
        assert settings.load() == Settings()
        write("#" * 1_000_001)
        with pytest.raises(StorageUnavailable, match="larger than 1 MB"):
            settings.load()


class TestTheApplications:
    def test_theme_and_keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write('theme = "nord"\n[keys]\nmodels = "f5"\nsearch = ["f4", "ctrl+f"]\n')
        loaded = settings.load()
        assert loaded.theme == "nord"
        assert loaded.keys == {"models": "f5", "search": ("f4", "ctrl+f")}
        monkeypatch.setenv("LOCALINFER_THEME", "gruvbox")
        monkeypatch.setenv("LOCALINFER_KEYS", "f9")
        assert settings.load() == Settings(theme="gruvbox", keys=loaded.keys)

    @pytest.mark.parametrize("text", ["keys = 1", "[keys]\nmodels = 2", "[keys]\nmodels = [2]", 'keys = "f2"'])
    def test_keys_that_are_no_keys(self, text: str) -> None:
        write(text)
        with pytest.raises(BadRequest, match="“keys”") as caught:
            settings.load()
        assert caught.value.param == "keys"

    def test_where_each_comes_from(self, monkeypatch: pytest.MonkeyPatch) -> None:
        write('theme = "nord"\nthreads = 2\n')
        monkeypatch.setenv("LOCALINFER_THREADS", "3")
        found = settings.origins()
        assert set(found) == set(Settings.__struct_fields__)
        assert (found["theme"], found["threads"], found["model"]) == ("file", "environment", "default")
        assert settings.variable("model_folders") == "LOCALINFER_MODEL_FOLDERS"
