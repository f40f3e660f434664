"""llama.cpp's own tools as the other side: ``llama-bench`` and ``llama-server`` of the commit that localinfer runs on.

``LOCALINFER_NATIVE_TOOLS`` names the folder with the binaries; ``build_native_tools.sh`` makes it.
"""

import http.client
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from localinfer.metrics import now_ns
from tests.bench.clients import Job, Trace, generate, wait_for
from tests.bench.prompts import WARM_UP

HOST = "127.0.0.1"


def tool(name: str) -> str:
    """Path of a native tool. Exits with a hint when it is not there."""
    folder = os.environ.get("LOCALINFER_NATIVE_TOOLS")
    path = Path(folder or ".") / name
    if not folder or not path.exists():
        raise SystemExit(
            f"{name} was not found: build it with tests/bench/build_native_tools.sh and set LOCALINFER_NATIVE_TOOLS."
        )
    return str(path)


def llama_bench(model: Path, *, prompt: int = 0, output: int = 0, depth: int = 0) -> float:
    """Tokens per second of one ``llama-bench`` run at its own defaults."""
    test = ["-p", str(prompt), "-n", str(output), "-d", str(depth)]
    command = [tool("llama-bench"), "-m", str(model), "-r", "1", "-o", "json", *test]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    (result,) = json.loads(done.stdout)
    return float(result["avg_ts"])


class LlamaServer:
    """A ``llama-server`` process listening on ``port``; see ``clients.Side``."""

    def __init__(self, port: int, pid: int) -> None:
        self.pid = pid
        self._port = port

    def generate(self, job: Job, trace: Trace) -> None:
        """Run one job to its end. The connection is there before the clock starts."""
        path, body = _request(job)
        with closing(http.client.HTTPConnection(HOST, self._port)) as connection:
            connection.connect()
            trace.submitted_ns = now_ns()
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            for event in _events(connection.getresponse()):
                text = _text(event)
                if text and not trace.arrived(text):
                    break
                if timings := event.get("timings"):
                    trace.tokens = timings["predicted_n"]
                    trace.fresh_tokens = timings["prompt_n"]
                    trace.prefill_tps = timings["prompt_per_second"]
                    trace.decode_tps = timings["predicted_per_second"]
                    trace.drafted = timings.get("draft_n", 0)
                    trace.accepted = timings.get("draft_n_accepted", 0)
            trace.finished_ns = now_ns()

    def healthy(self) -> bool:
        """Whether it takes requests."""
        with closing(http.client.HTTPConnection(HOST, self._port)) as connection:
            try:
                connection.request("GET", "/health")
                return connection.getresponse().status == 200
            except OSError:
                return False


@contextmanager
def llama_server(model: Path, *, slots: int, context: int, arguments: Sequence[str] = ()) -> Iterator[LlamaServer]:
    """A fresh ``llama-server`` with ``slots`` slots of ``context`` tokens, warmed up; at its own defaults but for
    ``arguments``."""
    port = _free_port()
    size = ["-np", str(slots), "-c", str(slots * context)]
    listen = ["--host", HOST, "--port", str(port), "--no-webui"]
    command = [tool("llama-server"), "-m", str(model), *size, *listen, *arguments]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        side = LlamaServer(port, process.pid)
        try:
            wait_for(lambda: side.healthy() or process.poll() is not None)
            if process.poll() is not None:
                log.seek(0)
                raise SystemExit(f"llama-server ended: {log.read().decode('utf-8', 'replace')[-2000:]}")
            generate(side, WARM_UP)
            yield side
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _request(job: Job) -> tuple[str, str]:
    common = {"max_tokens": job.max_tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    messages = [{"role": part.role, "content": part.content} for part in job.prompt if not isinstance(part, int)]
    if messages:
        return "/v1/chat/completions", json.dumps({"messages": messages, **common})
    return "/completion", json.dumps({"prompt": job.prompt, **common})


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The server-sent events of a response."""
    if response.status != 200:
        raise SystemExit(f"llama-server answered {response.status}: {response.read().decode('utf-8', 'replace')}")
    while line := response.readline():
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            yield json.loads(line[6:])


def _text(event: dict[str, Any]) -> str:
    """The text of one event, of either endpoint."""
    if "content" in event:
        return str(event["content"])
    delta = event["choices"][0]["delta"] if event.get("choices") else {}
    return str(delta.get("content") or delta.get("reasoning_content") or "")
