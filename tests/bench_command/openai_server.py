"""A small server that speaks OpenAI's chat completions over a real socket, well or badly."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class OpenAiServer:
    """``tokens`` words are said, ``per_chunk`` in a chunk, ``pace_s`` apart. ``usage`` is what it counts, None: none.

    ``raw`` is sent in place of all that, ``status`` in place of 200. ``hang``: nothing is sent until the server is
    left. ``asked`` are the bodies that came, ``headers`` theirs.
    """

    def __init__(
        self,
        *,
        tokens: int = 8,
        per_chunk: int = 1,
        pace_s: float = 0.002,
        usage: int | None = 8,
        models: Sequence[str] = ("served",),
        raw: bytes | None = None,
        status: int = 200,
        hang: bool = False,
    ) -> None:
        self.tokens, self.per_chunk, self.pace_s, self.usage = tokens, per_chunk, pace_s, usage
        self.models, self.raw, self.status, self.hang = tuple(models), raw, status, hang
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = threading.Event()
        self.begun = threading.Event()
        self.url = ""

    def chunks(self) -> Iterator[bytes]:
        """The events of one answer."""
        yield _event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for start in range(0, self.tokens, self.per_chunk):
            words = "word " * min(self.per_chunk, self.tokens - start)
            yield _event({"choices": [{"delta": {"content": words}}]})
        yield _event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        if self.usage is not None:
            yield _event({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": self.usage}})
        yield b"data: [DONE]\n\n"


@contextmanager
def serving(server: OpenAiServer) -> Iterator[OpenAiServer]:
    """``server``, listening on a free port of this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.headers.append(dict(self.headers))
            self._begin()
            self.wfile.write(json.dumps({"data": [{"id": name} for name in server.models]}).encode())

        def do_POST(self) -> None:
            server.headers.append(dict(self.headers))
            server.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            server.begun.set()
            if server.hang:
                server.left.wait()
                return
            self._begin()
            for chunk in [server.raw] if server.raw is not None else server.chunks():
                self.wfile.write(chunk)
                self.wfile.flush()
                server.left.wait(server.pace_s)

        def _begin(self) -> None:
            self.send_response(server.status)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:  # whoever asked has left
                return

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.left.set()
        listening.shutdown()
        thread.join()
        listening.server_close()


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
