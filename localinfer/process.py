"""Children: spawning, frames over pipes, the log tail, the cause of death, dying with the parent.

A frame is a 4-byte little-endian length and that many bytes of msgpack. A child reads frames from its standard input
and writes them to its standard output; whatever its libraries print goes to its log file. It knows nothing of models.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, cast

import msgspec

from localinfer import decoding
from localinfer.errors import StorageUnavailable

T = TypeVar("T")

LOGS_KEPT = 20
_MAX_FRAME = 256 * 1024 * 1024
_LINE = 200  # characters of a log line that are worth showing
_MEMORY_WORDS = ("out of memory", "failed to allocate", "bad_alloc", "unable to allocate", "cannot allocate memory")


class Channel:
    """Both directions of one end of a pipe pair. ``send`` may be called from any thread, ``receive`` from one."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()

    def send(self, value: msgspec.Struct) -> None:
        """Write one frame. Raises ``OSError`` or ``ValueError`` when the other end is gone."""
        self.write(self.frame(value))

    def frame(self, value: msgspec.Struct) -> bytearray:
        """``value`` as a frame. Raises what msgspec raises for a value that cannot be written."""
        frame = bytearray(4)
        msgspec.msgpack.Encoder().encode_into(value, frame, 4)
        frame[:4] = (len(frame) - 4).to_bytes(4, "little")
        return frame

    def write(self, frame: bytearray) -> None:
        """Write what ``frame`` made."""
        with self._lock:
            self._writer.write(frame)
            self._writer.flush()

    def receive(self, decoder: msgspec.msgpack.Decoder[T]) -> T | None:
        """The next frame, or None when the other end is gone (also in the middle of a frame)."""
        header = self._reader.read(4)
        if len(header) < 4:
            return None
        length = int.from_bytes(header, "little")
        if length > _MAX_FRAME:
            return None
        frame = self._reader.read(length)
        return decoder.decode(frame) if len(frame) == length else None

    def close_writer(self) -> None:
        """Tell the other end that nothing more comes."""
        with contextlib.suppress(OSError, ValueError):
            self._writer.close()


def claim_stdio() -> Channel:
    """In a child: take standard input and output for frames and leave the libraries the log.

    Descriptor 1 then points where 2 points, so that a library's ``printf`` cannot break a frame.
    """
    reader = os.fdopen(os.dup(0), "rb")
    writer = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return Channel(reader, writer)


class Death(msgspec.Struct, frozen=True):
    """How a child ended. ``exit_code`` is negative for a signal, as ``subprocess`` has it."""

    exit_code: int
    cause: str
    out_of_memory: bool
    log_tail: tuple[str, ...]


class Child(Generic[T]):
    """A child process running ``python -m module`` that sends reports of type ``T``."""

    def __init__(self, module: str, report: Any, log: Path) -> None:
        self.log = log
        self._decoder = decoding.msgpack(report)
        self._oom_kills = _oom_kills()
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            _prune(log.parent, log.name.partition("-")[0])
            self._process = self._spawn(module, log)
        except OSError as error:
            raise StorageUnavailable(
                f"The log file {log} cannot be written: {error.strerror or error}.",
                "Free some space or set LOCALINFER_HOME to a folder that can be written.",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._channel = Channel(self._process.stdout, self._process.stdin)
        self.pid = self._process.pid
        self._frames: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="localinfer-frames", daemon=True)
        self._writer.start()

    @staticmethod
    def _spawn(module: str, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as stderr:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(),
                # Ctrl-C in the terminal is the application's to handle, not the child's.
                start_new_session=os.name == "posix",
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )

    def send(self, value: msgspec.Struct) -> None:
        """Have one frame written, in order, without waiting for a child that does not read.

        Silently dropped when the child is gone: the reader of reports learns of that.
        """
        self._frames.put(self._channel.frame(value))

    def _write(self) -> None:
        """In a thread of its own: a stopped child leaves the pipe full, and who writes then waits.

        Past the buffer of the stream, whose lock would be held meanwhile: the interpreter wants it when it ends.
        """
        descriptor = cast(IO[bytes], self._process.stdin).fileno()
        gone = False
        while (frame := self._frames.get()) is not None:
            rest = memoryview(frame)
            while rest and not gone:
                try:
                    rest = rest[os.write(descriptor, rest) :]
                except OSError:
                    gone = True
        self._channel.close_writer()

    def reports(self) -> Iterator[T]:
        """Reports until the child is gone. A frame it could not have meant ends it."""
        try:
            while (report := self._channel.receive(self._decoder)) is not None:
                yield report
        except (OSError, ValueError, msgspec.DecodeError):
            self.kill()

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._frames.put(None)

    def close(self, timeout_s: float = 0.5) -> None:
        """Let it see, after what was sent, that the application is gone, wait, and end it if it does not go."""
        self._reap(timeout_s)

    def _reap(self, timeout_s: float) -> int:
        self._frames.put(None)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        self._writer.join(timeout_s)  # its pipe is broken now, unless the child has left it to another process
        return code

    def death(self) -> Death:
        """Reap the child and say how it ended. Call when ``reports`` has ended."""
        code = self._reap(2.0)
        cast(IO[bytes], self._process.stdout).close()
        tail = log_tail(self.log)
        killed = code == -int(getattr(signal, "SIGKILL", 9))
        starved = (killed and _oom_kills() > self._oom_kills) or any(
            word in line.lower() for line in tail for word in _MEMORY_WORDS
        )
        return Death(exit_code=code, cause=_describe(code), out_of_memory=code != 0 and starved, log_tail=tail)


def log_tail(log: Path, lines: int = 8) -> tuple[str, ...]:
    """The last non-empty lines of a log, printable characters only."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    clean = ("".join(c if c.isprintable() else " " for c in line).strip() for line in text.splitlines())
    return tuple(line[:_LINE] for line in clean if line)[-lines:]


def _describe(code: int) -> str:
    if code < 0:
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"
    return f"it exited with code {code:#x}" if code > 255 else f"it exited with code {code}"


def _oom_kills() -> int:
    """How often the kernel has killed for memory so far, in this cgroup and on this machine (Linux)."""
    total = 0
    for file in ("/sys/fs/cgroup/memory.events", "/proc/vmstat"):
        with contextlib.suppress(OSError, ValueError):
            for line in Path(file).read_text().splitlines():
                if line.startswith("oom_kill "):
                    total += int(line.split()[1])
    return total


def _prune(folder: Path, kind: str) -> None:
    """Delete the oldest logs of one kind of child."""
    aged = []
    for log in folder.glob(f"{kind}-*.log"):
        with contextlib.suppress(OSError):  # another process prunes too
            aged.append((log.stat().st_mtime, log))
    for _, log in sorted(aged)[: max(0, len(aged) - LOGS_KEPT + 1)]:
        with contextlib.suppress(OSError):
            log.unlink()


def _environment() -> dict[str, str]:
    # A child started from another folder must find the same packages that its parent did.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"}
