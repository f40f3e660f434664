"""Processes that die while they fetch, and processes that want the same file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localinfer.models import journal
from localinfer.models.progress import FetchProgress
from tests.models.hub_server import HubServer
from tests.models.pulling import Puller, child, noise

KILLS = 10
PIECE = 1 << 20
SIZE = 40 * PIECE


def settled(process: subprocess.Popen[str], hub: HubServer, before: int) -> None:
    """Wait until ``process`` has taken all that ``hub`` has sent it."""
    assert process.stdout is not None
    for line in process.stdout:
        if int(line.split()[1]) == before + hub.served_bytes:
            return
    raise AssertionError("it ended by itself")


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_ten_times_the_file_is_right_and_each_kill_costs_less_than_one_piece(
    hub: HubServer, tmp_path: Path
) -> None:
    puller = Puller(hub, tmp_path, noise(SIZE), PIECE)
    for kill in range(KILLS):
        hub.served_bytes, before = 0, journal.done_bytes(puller.part)
        hub.go_on(hold_at=SIZE // 11 + 54_321 * kill, cut=True)
        with child(puller) as process:
            assert hub.held.wait(30)
            if kill % 2:  # else what is still on its way is lost too
                settled(process, hub, before)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert not puller.blob.exists()
        if kill % 2:
            assert 0 <= hub.served_bytes - (journal.done_bytes(puller.part) - before) < PIECE
    hub.go_on(cut=True)
    left = SIZE - journal.done_bytes(puller.part)
    hub.served_bytes = 0
    assert puller() == puller.data
    assert hub.served_bytes == left < SIZE // 2
    assert [path.name for path in puller.blob.parent.iterdir()] == [puller.blob.name]


@pytest.mark.parametrize("links", ["1", "0"], ids=["without links", "with links"])
def test_of_two_processes_one_fetches_and_the_other_shows_its_progress(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: str
) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_SYMLINKS", links)
    puller = Puller(hub, tmp_path, noise(SIZE), PIECE)
    hub.go_on(hold_at=SIZE // 2)
    with child(puller) as first:
        assert hub.held.wait(30)

        def go_on(progress: FetchProgress) -> None:
            if progress.stage == "wait" and progress.done_bytes > SIZE // 4:
                hub.go_on()

        puller.at = go_on
        assert puller() == puller.data
        assert first.wait(30) == 0
    assert {progress.stage for progress in puller.seen} == {"wait"}
    assert hub.served_bytes == SIZE


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_the_one_that_waits_takes_over_when_the_other_dies(hub: HubServer, tmp_path: Path) -> None:
    puller = Puller(hub, tmp_path, noise(SIZE), PIECE)
    hub.go_on(hold_at=SIZE // 2)
    with child(puller) as first:
        assert hub.held.wait(30)

        def kill(progress: FetchProgress) -> None:
            if progress.stage == "wait" and hub.served_bytes - progress.done_bytes < PIECE // 2:
                os.kill(first.pid, signal.SIGKILL)
                hub.go_on(cut=True)

        puller.at = kill
        assert puller() == puller.data
    stages = [progress.stage for progress in puller.seen]
    assert stages[0] == "wait"
    assert stages[-1] != "wait"
    assert hub.served_bytes <= SIZE + PIECE
