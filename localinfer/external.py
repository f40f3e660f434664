"""Running programs of others, such as pip: their output line by line while they run, nothing of them left afterwards.

It knows processes, and nothing of what the lines mean.
"""

import contextlib
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import psutil

TICK_S = 0.2
_LET_GO_S = 2.0


class Running:
    """A program that runs. ``status`` is its exit status once ``lines`` has ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="output", daemon=True)
        self._reader.start()
        self.status = 0

    def lines(self) -> Iterator[str | None]:
        """What it writes, standard errors included; None when it has been silent for ``TICK_S`` seconds."""
        while True:
            try:
                line = self._lines.get(timeout=TICK_S)
            except queue.Empty:
                yield None
                continue
            if line is None:
                self.status = self._process.wait()
                return
            yield line

    def end(self) -> None:
        """End it and all that it started, down to the last compiler."""
        with contextlib.suppress(psutil.Error):
            psutil.wait_procs(_end_tree(psutil.Process(self._process.pid)), timeout=5.0)
        self._process.wait()
        self._reader.join(_LET_GO_S)  # a process that got away may keep the other end

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._lines.put(line)
        self._lines.put(None)


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Running]:
    """``command``, ended at the end of the block if it still runs. Raises ``OSError`` where it cannot be run."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        # Ctrl-C in the terminal is ours to handle: compilers that each handle it leave half of a build behind.
        start_new_session=os.name == "posix",
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    child = Running(process)
    try:
        yield child
    finally:
        child.end()


def _end_tree(process: psutil.Process) -> list[psutil.Process]:
    ended = [process]
    with contextlib.suppress(psutil.Error):
        process.suspend()  # it starts no more children while those it has are ended
        for child in process.children():
            ended += _end_tree(child)
    with contextlib.suppress(psutil.Error):
        process.kill()
    return ended
