"""Writing settings: what is not changed stays, byte for byte, and a wrong value never reaches the file."""

import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from localinfer import settings
from localinfer.configure import change
from localinfer.errors import BadRequest, LocalInferError, StorageUnavailable

FILE = """\
# mine
offline = true   # no net here

model = 'smollm2'  # the small one
theme = "nord"
model_folders = [
    "/one",  # first
    "/two",
]

[keys]
models = "f2"  # as ever
"""


def test_only_what_is_changed_moves() -> None:
    path = settings.config_file()
    path.write_text(FILE, "utf-8")
    change({"theme": "localinfer-light"})
    assert path.read_text("utf-8") == FILE.replace("nord", "localinfer-light")
    change({"offline": False, "threads": 4})
    assert "offline = false   # no net here" in path.read_text("utf-8")
    loaded = settings.load()
    assert (loaded.threads, loaded.offline, loaded.keys) == (4, False, {"models": "f2"})
    assert path.read_text("utf-8").index("threads") < path.read_text("utf-8").index("[keys]")
    change({"threads": None, "context": None})
    assert settings.load().threads is None
    assert "# first" in path.read_text("utf-8")


def test_a_file_is_made_where_there_is_none(home: Path) -> None:
    change({"model_folders": ("/a b", "~/c"), "kv_type": "q8_0"})
    loaded = settings.load()
    assert (loaded.model_folders, loaded.kv_type) == (("/a b", "~/c"), "q8_0")
    assert [path.name for path in home.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("values", "said"), [({"context": 0}, ">= 1"), ({"kv_type": "q3"}, "q3"), ({"colour": "x"}, "unknown setting")]
)
def test_what_is_not_allowed_never_reaches_the_file(values: dict[str, object], said: str) -> None:
    path = settings.config_file()
    path.write_text(FILE, "utf-8")
    with pytest.raises(BadRequest, match=said):
        change(values)
    assert path.read_text("utf-8") == FILE


@pytest.mark.parametrize("content", [b"model = ", b"\xff\xfe", b"model = 1"])
def test_a_damaged_file_is_left_to_the_person(content: bytes) -> None:
    path = settings.config_file()
    path.write_bytes(content)
    with pytest.raises(LocalInferError) as caught:
        change({"theme": "nord"})
    assert caught.value.hint
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions and links")
def test_a_link_stays_one_and_permissions_stay_as_they_are(home: Path, tmp_path: Path) -> None:
    there = tmp_path / "dotfile.toml"
    there.write_text('theme = "nord"\n')
    there.chmod(0o644)
    settings.config_file().symlink_to(there)
    change({"theme": "gruvbox"})
    assert settings.config_file().is_symlink()
    assert there.read_text() == 'theme = "gruvbox"\n'
    assert there.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_may_not_be_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(StorageUnavailable, match="Permission denied") as caught:
        change({"theme": "nord"})
    assert caught.value.hint


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=st.text(st.characters(exclude_categories=["Cs"]), min_size=1), offline=st.booleans())
def test_any_text_comes_back_as_it_was(model: str, offline: bool) -> None:
    settings.config_file().write_text(FILE, "utf-8")
    change({"model": model, "offline": offline})
    assert (settings.load().model, settings.load().offline) == (model, offline)
    assert tomllib.loads(settings.config_file().read_text("utf-8"))["theme"] == "nord"
    assert len(list(settings.config_file().parent.iterdir())) == 1
