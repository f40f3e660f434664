"""Web servers in one: the index of prebuilt CUDA wheels, and a package index, with the faults that real ones have."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LLAMA = "llama-cpp-python"


class Site:
    """What is served, by path, and how it misbehaves.

    ``status`` answers a path with an error. ``drop_at``: files break off after so many bytes. ``hold``: the next file
    stops before its first byte, sets ``held`` and goes on when ``release`` is set.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.status: dict[str, int] = {}
        self.requests: list[str] = []
        self.drop_at: int | None = None
        self.hold = False
        self.held = threading.Event()
        self.release = threading.Event()
        self.url = ""

    @property
    def wheels(self) -> str:
        """The index of prebuilt wheels."""
        return f"{self.url}/whl"

    def prebuilt(self, cuda: str, file: str, data: bytes) -> None:
        """Offer a wheel for a CUDA version, as in "124". Its file lies elsewhere, as upstream's do."""
        self._link(f"/whl/cu{cuda}/{LLAMA}/", f"/releases/cu{cuda}/{file}", data)

    def package(self, name: str, file: str, data: bytes) -> None:
        """Offer a file of a package in the package index."""
        self._link(f"/simple/{name}/", f"/files/{file}", data)

    def _link(self, page: str, path: str, data: bytes) -> None:
        link = f'<a href="{self.url}{path}">{path}</a><br>\n'
        self.pages[page] = self.pages.get(page, b"<!DOCTYPE html>\n") + link.encode()
        self.pages[path] = data


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            site.requests.append(path)
            data = site.pages.get(path, b"")
            self.send_response(site.status.get(path, 200 if path in site.pages else 404))
            self.send_header("Content-Type", "text/html" if path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if not path.endswith("/"):
                if site.hold:
                    site.hold = False
                    site.held.set()
                    site.release.wait()
                if site.drop_at is not None:
                    data = data[: site.drop_at]
                    self.close_connection = True
            try:
                self.wfile.write(data)
            except ConnectionError:  # the client was ended meanwhile
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep the test output clean."""

    return Handler


@contextmanager
def serving() -> Iterator[Site]:
    """A site on a free port of this machine."""
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(site)) as server:
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield site
        finally:
            site.release.set()
            server.shutdown()
            thread.join()
