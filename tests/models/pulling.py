"""Pulling from the local hub, in this process and in a child: ``python -m tests.models.pulling CACHE PIECE``."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from localinfer.models.hub import Hub, Repo
from localinfer.models.progress import FetchProgress
from localinfer.models.pull import pull
from localinfer.models.quantizations import RepoFile
from localinfer.models.web import Patience
from tests.models.hub_server import HubServer

QUICK = Patience(read_s=0.5, connect_s=2.0, tries=4, first_wait_s=0.01, longest_wait_s=0.02, longest_asked_s=2.0)
PIECE = 1 << 18
REPO = "owner/model-GGUF"
FILE = "model-Q4_K_M.gguf"


def noise(count: int, seed: int = 1) -> bytes:
    """``count`` bytes of which no two parts are alike."""
    return random.Random(seed).randbytes(count)


def hub_at(server: HubServer, say: Callable[[str], None] = lambda _: None) -> Hub:
    """The way to ``server``, with little patience."""
    return Hub(server.url, patience=QUICK, say=say)


class Puller:
    """Fetches the whole model of one file from a local hub, and remembers what was reported."""

    def __init__(self, server: HubServer, cache: Path, data: bytes, piece: int = PIECE) -> None:
        self.server = server
        self.cache = cache
        self.data = data
        self.piece = piece
        self.seen: list[FetchProgress] = []
        self.at: Callable[[FetchProgress], None] = lambda _: None
        server.offer(REPO, {FILE: data})
        self.repo: Repo = hub_at(server).repo(REPO)
        self.file: RepoFile = self.repo.files[0]

    def __call__(self, connections: int = 4) -> bytes:
        """The bytes that lie in the cache after a pull."""
        (path,) = pull(
            hub_at(self.server),
            self.repo,
            [self.file],
            self.report,
            cache=self.cache,
            connections=connections,
            piece=self.piece,
        )
        return path.read_bytes()

    def report(self, progress: FetchProgress) -> None:
        self.seen.append(progress)
        self.at(progress)

    @property
    def notices(self) -> list[str]:
        return [progress.notice for progress in self.seen if progress.notice]

    @property
    def part(self) -> Path:
        """The unfinished file."""
        return self.blob.with_name(f"{self.blob.name}.part")

    @property
    def blob(self) -> Path:
        return self.cache / "models--owner--model-GGUF" / "blobs" / self.file.oid

    def served(self) -> int:
        """The bytes of data that the hub has sent since this was last asked."""
        count, self.server.served_bytes = self.server.served_bytes, 0
        return count


@contextmanager
def child(puller: Puller) -> Iterator[subprocess.Popen[str]]:
    """A process that pulls what ``puller`` pulls; each line it prints is one report, the last the path."""
    command = [sys.executable, "-m", "tests.models.pulling", str(puller.cache), str(puller.piece)]
    environment = {**os.environ, "HF_ENDPOINT": puller.server.url}
    with subprocess.Popen(
        command, env=environment, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    """Pull, and print how it goes."""
    cache, piece = Path(sys.argv[1]), int(sys.argv[2])
    hub = Hub(patience=Patience(read_s=60.0))
    repo = hub.repo(REPO)

    def report(progress: FetchProgress) -> None:
        print(progress.stage, progress.done_bytes, flush=True)

    print(*pull(hub, repo, repo.files, report, cache=cache, piece=piece))


if __name__ == "__main__":
    main()
