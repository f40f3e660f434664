"""A model hub over real HTTP, with its content network on another port, and a switchboard of faults for each of them.

It speaks the endpoints that huggingface_hub uses: the search, a repository at a revision, its tree, and ``resolve``,
which answers a large file with a redirect to the content network and a small one with the file itself.
"""

import functools
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = 1000  # bytes from which on a file is kept outside git
BLOCK = 1 << 16


class Request(NamedTuple):
    """What a client asked for. ``place`` is one of ``api``, ``hub`` and ``cdn``."""

    place: str
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Fault:
    """What goes wrong, for the next ``times`` requests that it concerns (None: for all).

    ``status`` with ``headers`` and ``body`` replaces the answer; else ``headers`` are added to it. Of an answer with
    data: ``drop_at`` closes the connection, and ``stall_at`` sends no more, after that many bytes; ``whole`` ignores
    the range; ``shift`` sends other bytes than asked for; ``extra`` announces and sends so many more; ``flip_at``
    changes that byte of the file; ``total`` is the length that is claimed. Only ranges from ``from_start`` on are hit.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    drop_at: int | None = None
    stall_at: int | None = None
    whole: bool = False
    shift: int = 0
    extra: int = 0
    flip_at: int | None = None
    total: int | None = None
    from_start: int = 0
    times: int | None = None


class Gate(threading.Event):
    """Opens for those who wait; ``cut`` tells them to go away."""

    cut = False


class HubServer:
    """What the hub holds, how it misbehaves, and what it was asked.

    ``rate`` is bytes per second, all connections together, and every answer waits for ``latency_s``. ``hold_at``: once
    that many bytes of data are out, ``held`` is set and nothing more is sent until ``release`` is.
    """

    commit = "c0ffee" + "0" * 34

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        self.faults: dict[str, list[Fault]] = {"api": [], "hub": [], "cdn": []}
        self.requests: list[Request] = []
        self.served_bytes = 0
        self.rate: float | None = None
        self.latency_s = 0.0
        self.hold_at: int | None = None
        self.held = threading.Event()
        self.release = Gate()
        self.url = ""
        self.cdn_url = ""
        self._lock = threading.Lock()
        self._sent_at = time.monotonic()

    def offer(self, repo: str, files: dict[str, bytes], **facts: Any) -> None:
        """Publish ``files`` as ``repo``; ``facts`` are further fields of what the hub says of it."""
        self.repos[repo] = files
        self.facts[repo] = facts

    def fail(self, place: str, *faults: Fault) -> None:
        """Let ``place`` misbehave; the first fault that concerns a request is the one it gets."""
        self.faults[place] = list(faults)

    def asked(self, place: str) -> list[Request]:
        """The requests that reached ``place``."""
        return [request for request in self.requests if request.place == place]

    def fault(self, place: str, start: int) -> Fault:
        """The fault of the next request."""
        with self._lock:
            for fault in self.faults[place]:
                if start >= fault.from_start and fault.times != 0:
                    fault.times = None if fault.times is None else fault.times - 1
                    return fault
        return Fault()

    def info(self, repo: str, blobs: bool) -> dict[str, Any]:
        """What the hub says of ``repo``."""
        facts = {"downloads": 1, "likes": 0, "gated": False, "tags": ["gguf"], "lastModified": "2026-01-02T03:04:05Z"}
        siblings = [sibling(path, data) if blobs else {"rfilename": path} for path, data in self.repos[repo].items()]
        return {"id": repo, "modelId": repo, "sha": self.commit, **facts, "siblings": siblings, **self.facts[repo]}

    def before_sending(self, count: int) -> None:
        """Keep the pace, and hold if told to."""
        with self._lock:
            if self.rate:
                self._sent_at = max(self._sent_at, time.monotonic() - 0.01) + count / self.rate
            wait = self._sent_at - time.monotonic()
            hold = self.hold_at is not None and self.served_bytes >= self.hold_at
        if self.rate and wait > 0:
            time.sleep(wait)
        if hold:
            self.held.set()
            release = self.release
            release.wait()
            if release.cut:
                raise ConnectionAbortedError

    def sent(self, count: int) -> None:
        """Account for ``count`` bytes of data."""
        with self._lock:
            self.served_bytes += count

    def go_on(self, hold_at: int | None = None, *, cut: bool = False) -> None:
        """Send what is held, or ``cut`` those connections; hold again at ``hold_at``."""
        self.held.clear()
        self.hold_at = hold_at
        release, self.release = self.release, Gate()
        release.cut = cut
        release.set()


def sibling(path: str, data: bytes) -> dict[str, Any]:
    """A file as the hub lists it."""
    entry: dict[str, Any] = {"rfilename": path, "size": len(data), "blobId": git_id(data)}
    if len(data) >= LARGE:
        entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 135}
    return entry


@functools.lru_cache(32)
def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@functools.lru_cache(32)
def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: HubServer
    place: str

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that is gone was killed, or has seen enough
            super().handle()

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path, hub = unquote(url.path), self.hub
        place = "api" if path.startswith("/api/") else self.place
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        headers = {name.lower(): value for name, value in self.headers.items()}
        hub.requests.append(Request(place, self.command, self.path, headers))
        if hub.latency_s:
            time.sleep(hub.latency_s)
        fault = hub.fault(place, start)
        if fault.status is not None:
            self.reply(fault.status, fault.body, fault.headers)
        elif place == "api":
            self.api(path, parse_qs(url.query))
        elif place == "cdn":
            data = next(
                d for files in hub.repos.values() for d in files.values() if sha256(d) == path.rpartition("/")[2]
            )
            self.data(data, fault, {"ETag": '"opaque"', **fault.headers})
        else:
            self.resolve(path, fault)

    def api(self, path: str, query: dict[str, list[str]]) -> None:
        hub = self.hub
        parts = path.removeprefix("/api/models").strip("/").split("/")
        if parts == [""]:
            wanted, form = query.get("search", [""])[0].lower(), query.get("filter", [""])[0]
            infos = [hub.info(repo, False) for repo in hub.repos if wanted in repo.lower()]
            found = [info for info in infos if not form or form in info["tags"]]
            found.sort(key=lambda info: -info["downloads"])
            self.json([_without_files(info) for info in found[: int(query.get("limit", ["10"])[0])]])
            return
        repo, rest = "/".join(parts[:2]), parts[2:]
        if repo not in hub.repos:
            self.refuse(404 if "authorization" in self.headers else 401, "RepoNotFound", "Repository not found")
        elif rest[:1] in (["revision"], ["tree"]) and rest[1] not in ("main", hub.commit):
            self.refuse(404, "RevisionNotFound", "Invalid rev id: " + rest[1])
        elif rest[:1] == ["tree"]:
            self.json([_entry(path, data) for path, data in hub.repos[repo].items()])
        else:
            self.json(hub.info(repo, "blobs" in query))

    def resolve(self, path: str, fault: Fault) -> None:
        hub = self.hub
        repo, _, rest = path.strip("/").partition("/resolve/")
        name = rest.partition("/")[2]
        if repo not in hub.repos or name not in hub.repos[repo]:
            self.refuse(404, "EntryNotFound", "Entry not found")
            return
        if hub.facts[repo].get("gated") and "authorization" not in self.headers:
            self.refuse(401, "GatedRepo", f"Access to model {repo} is restricted.")
            return
        data = hub.repos[repo][name]
        known = {"X-Repo-Commit": hub.commit}
        if len(data) < LARGE:
            self.data(data, fault, {**known, "ETag": f'"{git_id(data)}"', **fault.headers})
            return
        linked = {"X-Linked-ETag": f'"{sha256(data)}"', "X-Linked-Size": str(len(data))}
        self.reply(302, b"", {**known, **linked, "Location": f"{hub.cdn_url}/signed/{sha256(data)}", **fault.headers})

    def data(self, data: bytes, fault: Fault, headers: dict[str, str]) -> None:
        """``data``, or the range of it that was asked for."""
        size, start, stop, status = len(data), 0, len(data), 200
        asked = self.headers.get("Range")
        if asked and not fault.whole:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop, status = int(first) + fault.shift, int(last or size - 1) + 1 + fault.shift + fault.extra, 206
            stop = min(stop, size)
            if start >= size:
                self.reply(416, b"", {"Content-Range": f"bytes */{size}"})
                return
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{fault.total or size}"
        if fault.flip_at is not None:
            data = data[: fault.flip_at] + bytes([data[fault.flip_at] ^ 1]) + data[fault.flip_at + 1 :]
        self.send(status, {"Content-Type": "application/octet-stream", "Content-Length": str(stop - start), **headers})
        if self.command == "HEAD":
            return
        sent = 0
        for offset in range(start, stop, BLOCK):
            block = data[offset : min(offset + BLOCK, stop)]
            for limit in (fault.drop_at, fault.stall_at):
                block = block[: max(0, limit - sent)] if limit is not None else block
            self.hub.before_sending(len(block))
            self.wfile.write(block)
            self.hub.sent(len(block))
            sent += len(block)
            stalls = fault.stall_at is not None and sent >= fault.stall_at
            if stalls:
                self.hub.release.wait()
            if stalls or (fault.drop_at is not None and sent >= fault.drop_at):
                self.close_connection = True
                return

    def json(self, value: object) -> None:
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json; charset=utf-8"})

    def refuse(self, status: int, code: str, message: str) -> None:
        self.reply(status, b'{"error":"no"}', {"X-Error-Code": code, "X-Error-Message": message})

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send(status, {"Content-Length": str(len(body)), **headers})
        if self.command != "HEAD":
            self.wfile.write(body)

    def send(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the test output clean."""


def _without_files(info: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name != "siblings"}


def _entry(path: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": git_id(data)}
    if len(data) >= LARGE:
        entry["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 135}
    return entry


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a thread of a connection that is kept alive ends when the client closes it


@contextmanager
def serving(hub: HubServer, encryption: ssl.SSLContext | None = None) -> Iterator[HubServer]:
    """Serve ``hub`` and its content network on free ports of this machine."""
    servers = []
    for place in ("hub", "cdn"):
        handler = type("Handler", (_Handler,), {"hub": hub, "place": place})
        server = _Server(("127.0.0.1", 0), handler)
        if encryption:
            server.socket = encryption.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        servers.append((server, thread))
    scheme = "https" if encryption else "http"
    hub.url, hub.cdn_url = (f"{scheme}://127.0.0.1:{server.server_address[1]}" for server, _ in servers)
    try:
        yield hub
    finally:
        hub.go_on()
        for server, thread in servers:
            server.shutdown()
            server.server_close()
            thread.join()
