"""What screens look like, as text files beside this one: ``<name>-<columns>x<rows>.txt``, a line per row.

``LOCALINFER_UPDATE_SNAPSHOTS=1 pytest tests/tui/snapshots`` writes them anew; the diff of the commit then says what has
changed on the screen. They hold characters, no colours, and only what is the same on every machine.
"""

import asyncio
import difflib
import os
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from textual.pilot import Pilot

FOLDER = Path(__file__).parent
SIZES = ((80, 24), (120, 36), (200, 50))
UPDATING = os.environ.get("LOCALINFER_UPDATE_SNAPSHOTS") == "1"
WAIT_S = 10.0
STEADY_S = 0.3  # what has not changed for so long is drawn


def rows(pilot: Pilot[Any]) -> list[str]:
    """The text of every row of the screen; the second cell of a wide character has none of its own."""
    strips = pilot.app.screen._compositor.render_strips()
    assert all(strip.cell_length == pilot.app.size.width for strip in strips)
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def is_drawn(pilot: Pilot[Any], *words: str) -> bool:
    """Whether the screen shows all of ``words``, which lines may part."""
    shown = " ".join(" ".join(rows(pilot)).split())
    return all(word in shown for word in words)


async def until(pilot: Pilot[Any], condition: Callable[[], bool], wait_s: float = WAIT_S) -> bool:
    """Let the application go on until ``condition`` holds; False where it did not within ``wait_s``."""
    end_s = time.monotonic() + wait_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        await pilot.pause()
        await asyncio.sleep(0.01)
    return True


async def check(name: str, pilot: Pilot[Any], *words: str) -> None:
    """The screen shows ``words`` and, as soon as it is drawn, exactly what the file of ``name`` says."""
    columns, lines = pilot.app.size
    shown = await until(pilot, lambda: is_drawn(pilot, *words))
    assert shown, f"{name} does not say {words}:\n" + "\n".join(rows(pilot))
    path = FOLDER / f"{name}-{columns}x{lines}.txt"
    if UPDATING:
        path.write_text("\n".join(await _steady(pilot)) + "\n", "utf-8")
    expected = path.read_text("utf-8").splitlines() if path.exists() else []
    await until(pilot, lambda: rows(pilot) == expected, 3.0)
    now = rows(pilot)
    if now != expected:
        diff = difflib.unified_diff(expected, now, path.name, "the screen", lineterm="", n=1)
        raise AssertionError("\n".join(["", *diff]))
    assert len(now) == lines
    for row in now:
        assert cell_len(row) <= columns
        assert not any(unicodedata.category(character) == "Cc" for character in row)


async def _steady(pilot: Pilot[Any]) -> list[str]:
    before, since_s = rows(pilot), time.monotonic()
    while time.monotonic() - since_s < STEADY_S:
        await pilot.pause()
        await asyncio.sleep(0.02)
        if (now := rows(pilot)) != before:
            before, since_s = now, time.monotonic()
    return before
