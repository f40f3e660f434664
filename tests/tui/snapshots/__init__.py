"""What screens look like, as text files beside this one: ``<name>-<columns>x<rows>.txt``, a line per row.

Every scene is shown in a terminal that is resized from one size to the next.

``LOCALINFER_UPDATE_SNAPSHOTS=1 pytest tests/tui/snapshots`` writes them anew; the diff of the commit then says what has
changed on the screen. They hold characters, no colours, and only what is the same on every machine.
"""

import asyncio
import difflib
import os
import time
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from textual.pilot import Pilot

FOLDER = Path(__file__).parent
SIZES = ((80, 24), (120, 36), (200, 50))
UPDATING = os.environ.get("LOCALINFER_UPDATE_SNAPSHOTS") == "1"
WAIT_S = 10.0
DRAWN_S = 0.3
REDRAWN = 10
STEADY_S = 1.5  # what has not changed for so long is drawn: figures come once a second


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


async def check(
    name: str, pilot: Pilot[Any], *words: str, sizes: Sequence[tuple[int, int]] = (*SIZES[1:], SIZES[0])
) -> None:
    """In each of ``sizes`` the screen shows ``words`` and, once it is drawn, exactly what the file of ``name`` says.

    Afterwards the terminal has the last of them: the first of ``SIZES``, if nothing else is asked for.
    """
    for size in sizes:
        await pilot.resize_terminal(*size)
        await _check(f"{name}-{size[0]}x{size[1]}", pilot, words)


async def _check(name: str, pilot: Pilot[Any], words: Sequence[str]) -> None:
    shown = await until(pilot, lambda: pilot.app.screen.size == pilot.app.size and is_drawn(pilot, *words))
    assert shown, f"{name} does not say {words}:\n" + "\n".join(rows(pilot))
    path = FOLDER / f"{name}.txt"
    if UPDATING:
        path.write_text("\n".join(await _steady(pilot)) + "\n", "utf-8", newline="\n")
    expected = path.read_text("utf-8").splitlines() if path.exists() else []
    for _ in range(REDRAWN):  # what is under a dialog is drawn with the dialog only
        if await until(pilot, lambda: rows(pilot) == expected, DRAWN_S):
            break
        pilot.app.screen.refresh()
    now = rows(pilot)
    if now != expected:
        diff = difflib.unified_diff(expected, now, path.name, "the screen", lineterm="", n=1)
        raise AssertionError("\n".join(["", *diff]))
    assert len(now) == pilot.app.size.height
    for row in now:
        assert cell_len(row) <= pilot.app.size.width
        assert not any(unicodedata.category(character) == "Cc" for character in row)


async def _steady(pilot: Pilot[Any]) -> list[str]:
    before, since_s = rows(pilot), time.monotonic()
    while time.monotonic() - since_s < STEADY_S:
        pilot.app.screen.refresh()
        await pilot.pause()
        await asyncio.sleep(0.05)
        if (now := rows(pilot)) != before:
            before, since_s = now, time.monotonic()
    return before
