"""A model as one unit: its files, the room they take, the progress that is shown, and when nothing may be asked."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from localinfer.errors import LocalInferError, ModelNotFound, NotEnoughDisk, Offline, StorageUnavailable
from localinfer.models import filling, journal
from localinfer.models.hub import Hub, Repo
from localinfer.models.progress import FetchProgress, Pace
from localinfer.models.pull import pull
from tests.models.hub_server import BLOCK, Fault, HubServer
from tests.models.pulling import PIECE, REPO, Puller, hub_at, noise

SHARDS = {f"Q4_K_M/m-Q4_K_M-0000{number}-of-00003.gguf": noise(400_000 + number, number) for number in (1, 2, 3)}


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def free(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let the disk have ``count`` bytes free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 10**12 - count, count))


@pytest.fixture
def shards(hub: HubServer) -> Repo:
    hub.offer(REPO, {**SHARDS, "README.md": b"# model", "m-Q8_0.gguf": noise(2000)})
    return hub_at(hub).repo(REPO)


def pulled(hub: HubServer, repo: Repo, cache: Path, seen: Callable[[FetchProgress], None]) -> list[bytes]:
    files = next(one for one in repo.quantizations if one.name == "Q4_K_M").files
    return [path.read_bytes() for path in pull(hub_at(hub), repo, files, seen, cache=cache, piece=PIECE)]


def test_shards_come_in_order_with_one_progress(hub: HubServer, shards: Repo, tmp_path: Path) -> None:
    seen: list[FetchProgress] = []
    assert pulled(hub, shards, tmp_path, seen.append) == list(SHARDS.values())
    total = sum(len(data) for data in SHARDS.values())
    assert {one.total_bytes for one in seen} == {total}
    assert [one.done_bytes for one in seen] == sorted(one.done_bytes for one in seen)
    assert seen[-1].done_bytes == total


def test_shards_are_gone_on_with_shard_by_shard(hub: HubServer, shards: Repo, tmp_path: Path) -> None:
    hub.fail("cdn", Fault(times=3), Fault(drop_at=100_000, times=1), Fault(status=404))
    with pytest.raises(ModelNotFound):
        pulled(hub, shards, tmp_path, lambda _: None)
    hub.fail("cdn")
    done, hub.served_bytes = hub.served_bytes, 0
    seen: list[FetchProgress] = []
    assert pulled(hub, shards, tmp_path, seen.append) == list(SHARDS.values())
    assert done + hub.served_bytes == sum(len(data) for data in SHARDS.values())
    assert seen[0].done_bytes > 400_000


def test_fifty_megabytes_free_and_eighty_wanted_is_refused_before_the_first_byte(
    hub: HubServer, shards: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 50_000_000)
    asked = len(hub.requests)
    with pytest.raises(NotEnoughDisk) as caught:
        pulled(hub, shards, tmp_path / "cache", lambda _: None)
    assert "65 MB" in caught.value.message
    assert "50 MB" in caught.value.message
    assert caught.value.free_bytes == 50_000_000
    assert len(hub.requests) == asked


def test_what_has_arrived_already_needs_no_more_room(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    puller = Puller(hub, tmp_path, noise(4 * PIECE))
    hub.fail("cdn", Fault(times=2), Fault(status=404))
    with pytest.raises(ModelNotFound):
        puller(1)
    hub.fail("cdn")
    free(monkeypatch, 2 * PIECE + 64_000_000)
    assert puller() == puller.data


def test_a_disk_that_fills_midway_is_said_and_what_has_arrived_is_kept(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    puller = Puller(hub, tmp_path, noise(4 * PIECE))
    written = filling._write_all
    room = [20]

    def write(file: object, chunk: bytes) -> None:
        room[0] -= 1
        if room[0] < 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        written(file, chunk)  # type: ignore[arg-type]

    monkeypatch.setattr(filling, "_write_all", write)
    with pytest.raises(NotEnoughDisk, match="of free disk space") as caught:
        puller(1)
    assert "kept" in caught.value.hint
    monkeypatch.undo()
    done = journal.done_bytes(puller.part)
    assert done > 0
    puller.served()
    assert puller() == puller.data
    assert puller.served() == 4 * PIECE - done


def test_a_folder_that_cannot_be_written_is_named(hub: HubServer, shards: Repo, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageUnavailable, match="file"):
        pulled(hub, shards, tmp_path / "file", lambda _: None)


@pytest.mark.parametrize("name", [".locks", "models--owner--model-GGUF"])
def test_a_file_where_a_folder_of_the_cache_should_be_is_named(
    hub: HubServer, shards: Repo, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(StorageUnavailable):
        pulled(hub, shards, tmp_path, lambda _: None)


def test_offline_what_is_there_is_used_and_what_is_not_is_refused_at_once(
    hub: HubServer, shards: Repo, tmp_path: Path
) -> None:
    files = shards.quantizations[-1].files
    offline = Hub(hub.url, offline=True)
    with pytest.raises(Offline):
        pull(offline, shards, files, lambda _: None, cache=tmp_path)
    pull(hub_at(hub), shards, files, lambda _: None, cache=tmp_path)
    asked = len(hub.requests)
    assert pull(offline, shards, files, lambda _: None, cache=tmp_path)[0].read_bytes() == next(iter(SHARDS.values()))
    assert len(hub.requests) == asked


def test_a_gated_model_is_refused_before_anything_is_written(hub: HubServer, tmp_path: Path) -> None:
    puller = Puller(hub, tmp_path, noise(5000))
    hub.facts[REPO]["gated"] = "auto"
    with pytest.raises(LocalInferError, match="gated"):
        puller()
    assert not puller.blob.exists()


def test_an_error_of_the_one_who_watches_ends_the_fetch_and_keeps_the_part(hub: HubServer, tmp_path: Path) -> None:
    puller = Puller(hub, tmp_path, noise(8 * PIECE))
    hub.rate = 10e6

    def stop(progress: FetchProgress) -> None:
        if progress.done_bytes > 3 * PIECE:
            raise RuntimeError("closed")

    puller.at = stop
    with pytest.raises(RuntimeError, match="closed"):
        puller()
    puller.at, hub.rate = lambda _: None, None
    done = journal.done_bytes(puller.part)
    assert done > 3 * PIECE
    puller.served()
    assert puller() == puller.data
    assert puller.served() <= 8 * PIECE - done + 4 * BLOCK  # what each connection still had in hand


def test_the_pace_is_that_of_the_last_seconds() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    assert pace.at(500, 1000, "download").bytes_per_s is None
    now = 1.0
    assert pace.at(600, 1000, "download") == FetchProgress(
        done_bytes=600, total_bytes=1000, stage="download", bytes_per_s=100.0, eta_s=4.0
    )
    for second in range(2, 20):
        now = float(second)
        latest = pace.at(600, 1000, "download")
    assert latest.bytes_per_s == 0
    assert latest.eta_s is None


def test_the_pace_begins_anew_when_something_is_fetched_again() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    pace.at(900, 1000, "download")
    now = 2.0
    assert pace.at(100, 1000, "download").bytes_per_s is None
    now = 4.0
    assert pace.at(300, 1000, "download").bytes_per_s == 100.0


def test_a_pause_of_hours_is_no_speed(hub: HubServer, tmp_path: Path) -> None:
    """The clock of a machine that slept may have gone on: the speed is low for seconds, never wrong for long."""
    now = 0.0
    pace = Pace(lambda: now)
    pace.at(0, 1000, "download")
    now = 36_000.0
    pace.at(10, 1000, "download")
    for second in range(1, 7):
        now = 36_000.0 + second
        latest = pace.at(10 + 100 * second, 1000, "download")
    assert latest.bytes_per_s == pytest.approx(100.0)
