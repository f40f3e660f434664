"""What drawing costs the model: tokens per second with the application showing a long Markdown reply ÷ without it.

    uv run python -m tests.bench.drawing MODEL

The model, the worker, the pipe and the pace are real. What a small model writes of itself is no Markdown to speak of,
so each piece of text that arrives is exchanged for the next piece of a document with tables and code; tokens and
instants stay. Once with one thread, so that a core is free for drawing, and once with the threads of default.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import msgspec
import psutil

import localinfer.engine
from localinfer.engines import Engines, Opened
from localinfer.generation import Generation
from localinfer.types import Event, GenerationRequest, LoadOptions, Message, Metrics, Sampling, Text
from tests.bench.common import Row, Target, at_most, parser, table
from tests.bench.documents import MARKDOWN
from tests.bench.terminal import Terminal
from tui.app import LocalInfer
from tui.start import Start
from tui.talk import Talk

TOKENS = 5_000
CHARACTERS = 4  # a token, in the document that is shown
SETTLE_S = 1.0


class Retold(Generation):
    """A generation whose text is a document's."""

    async def __aiter__(self) -> AsyncIterator[Event]:
        place = 0
        async for event in super().__aiter__():
            if isinstance(event, Text):
                text = "".join(MARKDOWN[(place + index) % len(MARKDOWN)] for index in range(CHARACTERS * event.tokens))
                place += len(text)
                event = msgspec.structs.replace(event, text=text)
            yield event


def _request(messages: tuple[Message, ...]) -> GenerationRequest:
    return GenerationRequest(
        messages=messages, sampling=Sampling(temperature=0.8, seed=1), max_tokens=TOKENS, ignore_eos=True
    )


def _options(threads: int | None) -> LoadOptions:
    return LoadOptions(backend="llama.cpp", model="", name="", threads=threads, context=8192)


def _report(metrics: Metrics, cpu_s: float, wall_s: float, path: Path) -> None:
    found = {"tps": metrics.tps, "cpu": cpu_s / wall_s, "rss_bytes": psutil.Process().memory_info().rss}
    path.write_text(json.dumps(found), "utf-8")


def headless(model: str, threads: int | None, path: Path) -> None:
    """The same request, read by a loop that shows nothing."""

    async def read(engine: Opened) -> None:
        generation = engine.submit(_request((Message(role="user", content="Write."),)))
        async for _ in generation:
            pass
        _report(generation.metrics, 0.0, 1.0, path)

    engines = Engines()
    engine = engines.switch(engines.prepare(model, _options(threads)))
    asyncio.run(read(engine))
    engines.close()


def shown(model: str, threads: int | None, path: Path) -> None:
    """In the application, in the terminal that this process runs in."""

    class Measured(LocalInfer):
        def on_ready(self) -> None:
            self.run_worker(self._measure())

        async def _measure(self) -> None:
            while self.chat.desk.state.phase != "ready":
                await asyncio.sleep(0.05)
            await asyncio.sleep(SETTLE_S)
            cpu, wall = time.process_time(), time.perf_counter()
            await self.chat.talk.say("Write.")
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            reply = self.chat.talk.last("assistant")
            assert reply is not None
            assert reply.metrics is not None
            _report(reply.metrics, cpu, wall, path)
            self.exit()

    def request(self: Talk, asked: object) -> GenerationRequest:
        return _request((Message(role="user", content="Write."),))

    setattr(localinfer.engine, "Generation", Retold)  # noqa: B010
    setattr(Talk, "request", request)  # noqa: B010
    app = Measured(Start(reference=model, options=_options(threads)))
    app.run()
    app.close()


def _run(kind: str, model: Path, threads: int | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "tests.bench.drawing", str(model), kind, str(threads or 0), str(path)]
        with Terminal(command, env={"LOCALINFER_HOME": folder}) as terminal:
            if terminal.process.wait(600):
                raise SystemExit(
                    f"{kind} ended with exit code {terminal.process.returncode}: {terminal.output()[-2000:]!r}"
                )
        figures: dict[str, float] = json.loads(path.read_text("utf-8"))
        return figures


def measure(model: Path, pairs: int) -> list[Row]:
    """Pairs, in changing order."""
    rows = []
    for threads, target in ((1, Target("ratio", "≥", 0.97)), (None, None)):
        runs: dict[str, list[dict[str, float]]] = {"headless": [], "shown": []}
        for pair in range(pairs):
            for kind in sorted(runs, reverse=bool(pair % 2)):
                runs[kind].append(_run(kind, model, threads))
        label = "1 thread" if threads == 1 else "default threads"
        speeds = {kind: tuple(run["tps"] for run in found) for kind, found in runs.items()}
        rows.append(Row(f"tok/s, shown ÷ headless, {label}", target, speeds["shown"], speeds["headless"]))
        cpu = tuple(100 * run["cpu"] for run in runs["shown"])
        rows.append(Row(f"CPU of the application, % of a core, {label}", at_most(25) if threads == 1 else None, cpu))
        held = median(run["rss_bytes"] for run in runs["shown"]) / 1e6
        rows.append(Row(f"memory of the application, MB, {label}", at_most(200), (held,)))
    return rows


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("child", nargs="*", help="used by the script itself")
    given = arguments.parse_args()
    if given.child:
        kind, threads, path = given.child
        {"headless": headless, "shown": shown}[kind](str(given.model), int(threads) or None, Path(path))
        os._exit(0)
    print(table(measure(given.model, given.pairs)))


if __name__ == "__main__":
    main()
