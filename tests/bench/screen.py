"""What the application costs a person's patience: first paint, a key while a reply streams, long conversations.

    uv run python -m tests.bench.screen

It needs a POSIX system, and a model on this machine for the first figure (any; the starter will do).
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psutil

from localinfer.history.store import History
from localinfer.metrics import percentile
from tests.bench.common import Row, at_least, at_most, table
from tests.bench.documents import MARKDOWN
from tests.bench.terminal import Terminal

LOCALINFER = str(Path(sys.executable).with_name("localinfer"))
STARTS, KEYS = 7, 300
PACE_S = 1 / 200
TURNS, PAGES = 2_000, 120
MB = 1_000_000
READY = "Ask anything"
LETTERS = [chr(point) for point in range(0x100, 0x250) if chr(point).isalpha()]  # one cell each, in no model's text


def first_paint_s() -> float:
    """From process start until the prompt is drawn."""
    with Terminal([LOCALINFER]) as terminal:
        return terminal.wait(READY) - terminal.started


def key_latencies_s(count: int) -> list[float]:
    """From a key press until its letter is drawn, while a Markdown reply streams at 200 tokens/s."""
    script = f"pace_s={PACE_S}&text={quote(MARKDOWN * 8)}"
    found = []
    with tempfile.TemporaryDirectory() as home:
        command = [LOCALINFER, "tui", "--backend", "scripted", script]
        with Terminal(command, env={"LOCALINFER_HOME": home}) as terminal:
            terminal.wait("context 32,768")
            terminal.press("x\r")
            terminal.wait("tok/s", terminal.position)
            pauses = random.Random(1)
            for number in range(count):
                time.sleep(pauses.uniform(0.03, 0.09))  # as somebody types who is quick
                letter, since = LETTERS[number % len(LETTERS)], terminal.position
                pressed = time.perf_counter()
                terminal.press(letter)
                found.append(terminal.wait(letter, since) - pressed)
                if number % 40 == 39:
                    terminal.press("\x15")
    return found


async def long_conversation(home: Path) -> tuple[float, float, float]:
    """Seconds until a conversation of ``TURNS`` messages is drawn, frames a second of the processor's time while it is
    paged through for the first time, and the megabytes that the application holds then."""
    os.environ["LOCALINFER_HOME"] = str(home)
    from localinfer.types import LoadOptions
    from tui.app import LocalInfer
    from tui.start import Start

    with History() as history:
        conversation = history.start()
        parent = None
        for number in range(TURNS):
            role = "assistant" if number % 2 else "user"
            text = MARKDOWN[:3000] if number % 2 else f"Question {number}: how does this part work?"
            parent = history.add(conversation.id, role, text, parent=parent).id  # type: ignore[arg-type]
    app = LocalInfer(Start(options=LoadOptions(backend="scripted", model="", name=""), reference=""))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        started = time.perf_counter()
        await app.chat.talk.open(conversation.id)
        await pilot.pause()
        opened = time.perf_counter() - started
        started = time.process_time()
        for _ in range(PAGES):
            app.chat.action_scroll_up()
            await pilot.pause()
        frames = PAGES / (time.process_time() - started)
        held = psutil.Process().memory_info().rss / MB
    app.close()
    return opened, frames, held


def measure() -> list[Row]:
    """All of it."""
    paints = tuple(first_paint_s() for _ in range(STARTS))
    keys = sorted(key_latencies_s(KEYS))
    with tempfile.TemporaryDirectory() as home:
        opened, frames, held = asyncio.run(long_conversation(Path(home)))
    return [
        Row("first paint, s", at_most(0.6), paints),
        Row("key drawn while streaming, p50 ms", None, (percentile(keys, 0.5) * 1e3,)),
        Row("key drawn while streaming, p99 ms", at_most(50), (percentile(keys, 0.99) * 1e3,)),
        Row(f"{TURNS:,} messages opened, s", at_most(0.5), (opened,)),
        Row("paging through them, frames/s", at_least(30), (frames,)),
        Row("memory of the application, MB", at_most(200), (held,)),
    ]


if __name__ == "__main__":
    print(table(measure()))
