"""The cache that other tools share: found where they look, laid out as they read it."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localinfer.models import hf_cache
from localinfer.models.hub import Repo
from localinfer.models.pull import pull
from tests.models.hub_server import HubServer
from tests.models.pulling import FILE, REPO, Puller, hub_at, noise

FILES = {FILE: noise(3000), "d/e/config.json": b"{}", "empty.json": b""}


@pytest.fixture
def repo(hub: HubServer) -> Repo:
    hub.offer(REPO, FILES)
    return hub_at(hub).repo(REPO)


def pulled(hub: HubServer, repo: Repo, cache: Path) -> tuple[Path, ...]:
    return pull(hub_at(hub), repo, repo.files, lambda _: None, cache=cache)


def test_the_folder_is_the_one_that_huggingface_hub_uses(tmp_path: Path) -> None:
    names = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")
    values = {"HF_HUB_CACHE": "~/a", "HUGGINGFACE_HUB_CACHE": "$PLACE/b", "HF_HOME": "$PLACE/c", "XDG_CACHE_HOME": "/d"}
    choices = [chosen for count in range(3) for chosen in itertools.combinations(names, count)]
    program = (
        "import importlib, os, sys; from localinfer.models import hf_cache; from huggingface_hub import constants\n"
        f"for chosen in {choices!r}:\n"
        f"    for name in {names!r}: os.environ.pop(name, None)\n"
        f"    os.environ.update({{name: {values!r}[name] for name in chosen}})\n"
        "    importlib.reload(constants)\n"
        "    assert str(hf_cache.cache_dir()) == constants.HF_HUB_CACHE, (chosen, hf_cache.cache_dir())\n"
        "print('same')"
    )
    environment = {**os.environ, "HOME": str(tmp_path), "PLACE": "/place"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "same", done.stderr


def test_other_tools_find_what_was_fetched_and_complain_of_nothing(hub: HubServer, repo: Repo, tmp_path: Path) -> None:
    from huggingface_hub import scan_cache_dir, snapshot_download, try_to_load_from_cache

    paths = pulled(hub, repo, tmp_path)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    for path, file in zip(paths, repo.files, strict=True):
        assert try_to_load_from_cache(REPO, file.path, tmp_path) == str(path)
        assert path.is_symlink()
        assert not path.readlink().is_absolute()
    scanned = scan_cache_dir(tmp_path)
    assert not scanned.warnings
    (theirs,) = scanned.repos
    (revision,) = theirs.revisions
    assert (theirs.repo_id, theirs.nb_files, revision.refs) == (REPO, 3, frozenset({"main"}))
    assert scanned.size_on_disk == sum(len(data) for data in FILES.values())
    assert snapshot_download(REPO, cache_dir=tmp_path, local_files_only=True) == str(paths[0].parent)


def test_what_another_tool_has_fetched_is_used_as_it_is(hub: HubServer, repo: Repo, tmp_path: Path) -> None:
    from huggingface_hub import snapshot_download

    snapshot_download(REPO, cache_dir=tmp_path, endpoint=hub.url, token=False)
    hub.served_bytes = 0
    assert [path.read_bytes() for path in pulled(hub, repo, tmp_path)] == list(FILES.values())
    assert hub.served_bytes == 0


def test_a_content_that_is_there_from_another_commit_is_only_linked(hub: HubServer, repo: Repo, tmp_path: Path) -> None:
    pulled(hub, repo, tmp_path)
    hub.served_bytes = 0
    hub.commit = "d" * 40
    hub.offer(REPO, {"renamed-Q4_K_M.gguf": FILES[FILE]})
    (path,) = pulled(hub, hub_at(hub).repo(REPO), tmp_path)
    assert path.read_bytes() == FILES[FILE]
    assert hub.served_bytes == 0
    assert (tmp_path / "models--owner--model-GGUF" / "refs" / "main").read_text() == "d" * 40


@pytest.mark.parametrize("cause", ["the person", "the file system"])
def test_where_links_are_impossible_the_file_itself_is_in_the_snapshot(
    hub: HubServer, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    from huggingface_hub import scan_cache_dir, try_to_load_from_cache

    if cause == "the person":
        monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", "1")
    else:

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "symlink", refuse)
    paths = pulled(hub, repo, tmp_path)
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert not any(path.is_symlink() for path in paths)
    assert not list((tmp_path / "models--owner--model-GGUF" / "blobs").iterdir())
    assert try_to_load_from_cache(REPO, FILE, tmp_path) == str(paths[0])
    assert not scan_cache_dir(tmp_path).warnings
    hub.served_bytes = 0
    assert pulled(hub, repo, tmp_path) == paths
    assert hub.served_bytes == 0


def test_without_links_a_content_that_somebody_uses_is_copied(
    hub: HubServer, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pulled(hub, repo, tmp_path)
    monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", "1")
    hub.commit = "d" * 40
    second = pulled(hub, hub_at(hub).repo(REPO), tmp_path)
    assert [path.read_bytes() for path in (*first, *second)] == list(FILES.values()) * 2


def test_a_link_that_points_nowhere_is_made_good(hub: HubServer, repo: Repo, tmp_path: Path) -> None:
    paths = pulled(hub, repo, tmp_path)
    paths[0].resolve().unlink()
    assert hf_cache.find(tmp_path, REPO, repo.commit, repo.files[0]) is None
    assert [path.read_bytes() for path in pulled(hub, repo, tmp_path)] == list(FILES.values())


def test_a_file_of_another_size_is_fetched_again(hub: HubServer, repo: Repo, tmp_path: Path) -> None:
    paths = pulled(hub, repo, tmp_path)
    paths[0].resolve().write_bytes(b"cut")
    assert [path.read_bytes() for path in pulled(hub, repo, tmp_path)] == list(FILES.values())


def test_a_part_is_not_seen_as_a_model_by_other_tools(hub: HubServer, tmp_path: Path) -> None:
    from huggingface_hub import scan_cache_dir, try_to_load_from_cache

    puller = Puller(hub, tmp_path, noise(600_000))

    def look(_: object) -> None:
        if puller.part.exists() and not puller.blob.exists():
            assert not scan_cache_dir(tmp_path).warnings
            assert try_to_load_from_cache(REPO, FILE, tmp_path) is None

    puller.at = look
    puller()
    assert puller.seen


def test_another_tool_that_fetches_the_same_file_is_waited_for(hub: HubServer, tmp_path: Path) -> None:
    from filelock import FileLock

    puller = Puller(hub, tmp_path, noise(5000))
    theirs = hf_cache.lock_path(tmp_path, REPO, puller.file.oid)
    theirs.parent.mkdir(parents=True)
    with FileLock(theirs) as lock:

        def let_go(progress: object) -> None:
            lock.release()

        puller.at = let_go
        assert puller() == puller.data
    assert puller.seen[0].stage == "wait"
