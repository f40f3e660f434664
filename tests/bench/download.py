"""How fast a model arrives, hash and all, beside what curl gets from the same server without one.

    uv run python -m tests.bench.download

The server is local, once limited to a fast line and once not at all. It runs in a process of its own.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localinfer.models.hub import Hub
from localinfer.models.pull import pull
from tests.bench.common import PAIRS, Row, Target, table
from tests.models.hub_server import HubServer, serving

_LINE = 125e6  # bytes per second of a gigabit line
_REPO, _FILE = "owner/model-GGUF", "model-Q4_K_M.gguf"
_MIB = 1 << 20


def ours(url: str, folder: Path) -> float:
    """Bytes per second of a pull."""
    hub = Hub(url)
    repo = hub.repo(_REPO)
    begin = time.perf_counter()
    pull(hub, repo, repo.files, lambda _: None, cache=folder)
    return repo.files[0].size_bytes / (time.perf_counter() - begin)


def curl(url: str, folder: Path) -> float:
    """Bytes per second of the same file by curl."""
    path = folder / _FILE
    begin = time.perf_counter()
    subprocess.run(["curl", "-sfL", "-o", path, f"{url}/{_REPO}/resolve/main/{_FILE}"], check=True)
    return path.stat().st_size / (time.perf_counter() - begin)


def measure(name: str, rate: float | None, size: int, pairs: int, target: Target | None) -> Row:
    """One figure, in pairs of changing order."""
    taken: dict[str, list[float]] = {"ours": [], "curl": []}
    with server(rate, size) as url:
        for number in range(pairs):
            sides = [("ours", ours), ("curl", curl)]
            for side, fetch in reversed(sides) if number % 2 else sides:
                with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
                    taken[side].append(fetch(url, Path(folder)) / 1e6)
    return Row(name, target, tuple(taken["ours"]), tuple(taken["curl"]))


@contextmanager
def server(rate: float | None, size: int) -> Iterator[str]:
    """The address of a hub in a process of its own, with one file of ``size`` bytes."""
    command = [sys.executable, "-m", "tests.bench.download", "--serve", str(rate or 0), "--mib", str(size // _MIB)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def serve(rate: float, size: int) -> None:
    """Be that process, until standard input closes."""
    hub = HubServer()
    hub.rate = rate or None
    hub.offer(_REPO, {_FILE: bytes(range(251)) * (size // 251) + bytes(size % 251)})
    hub.info(_REPO, True)  # so that the hashes are known before anybody waits for them
    with serving(hub):
        print(hub.url, flush=True)
        sys.stdin.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the file")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    size = given.mib * _MIB
    if given.serve is not None:
        serve(given.serve, size)
        return
    if shutil.which("curl") is None:
        raise SystemExit("curl is not here to compare with.")
    limited = measure("download at 125 MB/s, MB/s", _LINE, size, given.pairs, Target("ratio", "≥", 0.95))
    print(table([limited, measure("download unlimited, MB/s", None, size, given.pairs, None)]))


if __name__ == "__main__":
    main()
