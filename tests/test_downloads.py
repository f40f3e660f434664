"""Downloads in the background: one after another, stopped, taken up again, and what is told of them."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localinfer.downloads import Download, Downloads, free_disk_bytes
from localinfer.errors import DownloadFailed
from localinfer.models.progress import FetchProgress
from localinfer.models.store import ModelRef
from tests.models.conftest import hub
from tests.models.hub_server import HubServer
from tests.tiny_models import write_tiny_model

__all__ = ["hub"]

WAIT_S = 20.0


class Source:
    """Fetches nothing: each model comes when it is told to, a byte at a time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.arrive: dict[str, threading.Event] = {}
        self.fail: dict[str, Exception] = {}
        self.at_once = threading.Event()  # how many are being fetched, never more than one
        self.report = FetchProgress(done_bytes=1, total_bytes=4, stage="download")

    def __call__(self, reference: str, *, offline: bool, progress: Callable[[FetchProgress], None]) -> ModelRef:
        assert not self.at_once.is_set()
        self.at_once.set()
        self.asked.append(reference)
        try:
            while not self.arrive.setdefault(reference, threading.Event()).wait(0.005):
                progress(self.report)
            if reference in self.fail:
                raise self.fail[reference]
            return ModelRef(name=f"{reference} here", paths=(Path(reference),))
        finally:
            self.at_once.clear()

    def let(self, reference: str) -> None:
        """Let it arrive, or fail."""
        self.arrive.setdefault(reference, threading.Event()).set()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def downloads(source: Source) -> Iterator[Downloads]:
    made = Downloads(fetch=source)
    yield made
    made.close()


def until(downloads: Downloads, reference: str, wanted: Callable[[Download], bool]) -> Download:
    """The download once it is as ``wanted``."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        download = downloads.get(reference)
        if download is not None and wanted(download):
            return download
        threading.Event().wait(0.005)
    raise AssertionError(f"it stayed {downloads.get(reference)}")


def state(name: str) -> Callable[[Download], bool]:
    return lambda download: download.state == name


def test_one_after_another_in_the_order_they_were_asked_for(downloads: Downloads, source: Source) -> None:
    for name in ("a", "b", "c"):
        downloads.start(name, f"Model {name}", 4)
    until(downloads, "a", state("running"))
    assert [one.state for one in downloads.snapshot()] == ["running", "queued", "queued"]
    for name in ("a", "b", "c"):
        source.let(name)
        done = until(downloads, name, state("done"))
        assert done.name == f"{name} here"
        assert done.title == f"Model {name}"
    assert source.asked == ["a", "b", "c"]
    assert not downloads.active


def test_asking_twice_is_one_download(downloads: Downloads, source: Source) -> None:
    downloads.start("a")
    until(downloads, "a", state("running"))
    assert downloads.start("a").state == "running"
    source.let("a")
    until(downloads, "a", state("done"))
    assert source.asked == ["a"]


def test_one_that_is_stopped_goes_on_when_it_is_asked_for_again(downloads: Downloads, source: Source) -> None:
    downloads.start("a")
    downloads.start("b")
    moving = until(downloads, "a", lambda one: one.progress is not None)
    assert moving.fraction == 0.25
    downloads.stop("a")
    stopped = until(downloads, "a", state("stopped"))
    assert stopped.fraction == 0.25  # what has arrived is still told
    until(downloads, "b", state("running"))
    assert downloads.start("a").state == "queued"
    source.let("a")
    source.let("b")
    until(downloads, "a", state("done"))
    assert source.asked == ["a", "b", "a"]


def test_one_that_waits_can_be_taken_out(downloads: Downloads, source: Source) -> None:
    downloads.start("a")
    downloads.start("b")
    downloads.stop("b")
    assert until(downloads, "b", state("stopped")).progress is None
    downloads.forget("a")  # it runs: it stays
    downloads.forget("b")
    assert [one.reference for one in downloads.snapshot()] == ["a"]
    source.let("a")
    until(downloads, "a", state("done"))
    assert source.asked == ["a"]


def test_a_failure_says_why_and_the_next_one_comes(downloads: Downloads, source: Source) -> None:
    source.fail["a"] = DownloadFailed("The hub does not answer.", "Try again later.")
    source.fail["b"] = RuntimeError("surprise")
    for name in ("a", "b", "c"):
        source.let(name)
        downloads.start(name)
    failed = until(downloads, "a", state("failed"))
    assert (failed.message, failed.hint) == ("The hub does not answer.", "Try again later.")
    assert "surprise" in until(downloads, "b", state("failed")).message
    until(downloads, "c", state("done"))
    del source.fail["a"]
    downloads.start("a")
    assert until(downloads, "a", state("done")).message == ""


def test_a_source_that_tells_no_speed_gets_one(downloads: Downloads, source: Source) -> None:
    downloads.start("a")
    first = until(downloads, "a", lambda one: one.progress is not None)
    assert first.progress is not None
    assert first.progress.bytes_per_s is None
    source.report = FetchProgress(done_bytes=3, total_bytes=4, stage="download")
    moving = until(downloads, "a", lambda one: bool(one.progress and one.progress.bytes_per_s))
    assert moving.progress is not None
    assert moving.progress.eta_s is not None


def test_a_notice_stays_and_hides_no_progress(downloads: Downloads, source: Source) -> None:
    downloads.start("a")
    until(downloads, "a", lambda one: one.fraction == 0.25)
    source.report = FetchProgress(done_bytes=0, total_bytes=0, stage="wait", notice="The hub is slow.")
    noticed = until(downloads, "a", lambda one: bool(one.notice))
    assert noticed.fraction == 0.25
    source.report = FetchProgress(done_bytes=2, total_bytes=4, stage="download")
    assert until(downloads, "a", lambda one: one.fraction == 0.5).notice == "The hub is slow."


def test_listeners_hear_of_each_state(downloads: Downloads, source: Source) -> None:
    heard: list[str] = []
    done = threading.Event()

    def listen(download: Download) -> None:
        heard.append(download.state)
        if download.state == "done":
            done.set()

    end = downloads.listen(listen)
    source.let("a")
    downloads.start("a")
    assert done.wait(WAIT_S)
    assert set(heard) == {"queued", "running", "done"}
    end()
    source.let("b")
    downloads.start("b")
    until(downloads, "b", state("done"))
    assert heard.count("done") == 1


def test_closing_stops_what_runs_and_what_waits(source: Source) -> None:
    downloads = Downloads(fetch=source)
    downloads.start("a")
    downloads.start("b")
    until(downloads, "a", state("running"))
    downloads.close()
    assert until(downloads, "a", state("stopped"))
    assert source.asked == ["a"]
    downloads.start("c")
    assert source.asked == ["a"]


def test_a_real_download_is_stopped_and_taken_up_where_it_was(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    data = write_tiny_model(tmp_path, "llama").read_bytes()
    hub.offer("owner/tiny-GGUF", {"tiny-Q8_0.gguf": data})
    hub.hold_at = len(data) // 2
    name = "owner/tiny-GGUF:Q8_0"
    downloads = Downloads()
    try:
        downloads.start(name)
        assert hub.held.wait(WAIT_S)
        until(downloads, name, lambda one: one.progress is not None)
        downloads.stop(name)
        stopped = until(downloads, name, state("stopped"))
        assert stopped.progress is not None
        assert stopped.progress.total_bytes == len(data)
        hub.go_on()
        downloads.start(name)
        assert until(downloads, name, state("done")).name == name
    finally:
        downloads.close()
    (file,) = (tmp_path / "cache").rglob("tiny-Q8_0.gguf")
    assert file.read_bytes() == data


def test_offline_nothing_is_asked(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    downloads = Downloads(offline=True)
    try:
        downloads.start("owner/tiny-GGUF:Q8_0")
        failed = until(downloads, "owner/tiny-GGUF:Q8_0", state("failed"))
    finally:
        downloads.close()
    assert "offline" in failed.message
    assert failed.hint
    assert hub.requests == []


def test_the_free_disk_is_that_of_a_folder_that_may_not_be_there_yet(tmp_path: Path) -> None:
    free = free_disk_bytes(tmp_path / "not" / "yet")
    assert free is not None
    assert free > 0
    assert free_disk_bytes() is not None
