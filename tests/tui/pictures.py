"""The pictures of the README: the application's own screenshots, as SVG.

    uv run python -m tests.tui.pictures

The chat is a real reply of the starter model on this machine, which is fetched if it is not here; the models and the
first start are those of a recorded laptop. A picture loads nothing from anywhere: fonts are the reader's.
"""

import asyncio
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import platformdirs
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from localinfer.advice import Advice
from localinfer.models import store
from localinfer.models.catalog import catalog
from localinfer.types import LoadOptions, Sampling
from tests.tui.models_app import Parts
from tests.tui.snapshots import is_drawn, stage, until
from tests.tui.snapshots.replies import idle
from tests.tui.snapshots.test_models import models_of, welcome_of
from tui import theme
from tui.app import LocalInfer
from tui.start import Start

FOLDER = Path(__file__).parents[2] / ".github" / "screenshots"
SIZE = (120, 36)
MOST_BYTES = 200_000
FONTS = "'Fira Code', ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
FIRST = "What is light?"
QUESTION = "Write a Python function that returns the n-th Fibonacci number, and explain it step by step."
WRITTEN = 110  # tokens of the reply when the picture is taken
WAIT_S = 300.0


class Showing(App[None]):
    """One screen in localinfer's colours."""

    def __init__(self, screen: Screen[Any]) -> None:
        super().__init__()
        self.register_theme(theme.DARK)
        self.theme = theme.DARK.name
        self._first = screen

    def on_mount(self) -> None:
        self.push_screen(self._first)


async def chat() -> str:
    """The chat while a reply is written."""
    options = LoadOptions(backend="llama.cpp", model="", name="", context=8192)
    app = LocalInfer(Start(options=options, reference=catalog().starter.id, sampling=Sampling(temperature=0)))
    try:
        async with app.run_test(size=SIZE) as pilot:
            await _wait(pilot, lambda: app.chat.desk.state.phase == "ready")
            for question, tokens in ((FIRST, 10_000), (QUESTION, WRITTEN)):
                app.chat.prompt.insert(question)
                await pilot.press("enter")
                await _wait(pilot, lambda: app.chat.talk.generation is not None)
                generation = app.chat.talk.generation
                assert generation is not None
                await _wait(pilot, lambda: generation.over or generation.metrics.completion_tokens >= tokens)  # noqa: B023
                if generation.over:
                    await _wait(pilot, lambda: not app.chat.talk.busy)
            return picture(app, "localinfer")
    finally:
        app.close()


async def models() -> str:
    """The models on a laptop with a card, with the plan of one of them."""
    parts = Parts(stage.machine())
    try:
        app = Showing(models_of(parts, (stage.MODEL, "Q4_K_M"), ("smollm2-135m", "Q4_1")))
        async with app.run_test(size=(120, 40)) as pilot:
            await _wait(pilot, lambda: is_drawn(pilot, "On this machine"))
            await pilot.press("down", "down")
            await _wait(pilot, lambda: is_drawn(pilot, "Enter fetches"))
            return picture(app, "localinfer · models")
    finally:
        parts.close()


async def first_start() -> str:
    """The first start on the same laptop."""
    parts = Parts(stage.machine())
    try:
        app = Showing(welcome_of(parts))
        async with app.run_test(size=(100, 28)) as pilot:
            await _wait(pilot, lambda: is_drawn(pilot, "Start now with"))
            return picture(app, "localinfer")
    finally:
        parts.close()


def picture(app: App[Any], title: str) -> str:
    """What ``app`` shows as an SVG that loads nothing."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", app.export_screenshot(title=title))
    svg = re.sub(r"font-family:[^;]*;", f"font-family: {FONTS};", svg)
    assert "url(http" not in svg
    assert "@import" not in svg
    return svg


async def _wait(pilot: Pilot[Any], condition: Any) -> None:
    assert await until(pilot, condition, WAIT_S)


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    cache = os.environ.get("LOCALINFER_TEST_CACHE") or platformdirs.user_cache_path("localinfer-tests", appauthor=False)
    os.environ["LOCALINFER_HOME"] = str(cache)
    store.ensure(store.catalogued(catalog().starter), offline=False, progress=lambda _: None)
    models_here = os.path.realpath(Path(cache) / "models")
    with tempfile.TemporaryDirectory() as home:
        os.environ["LOCALINFER_HOME"] = home
        with stage.fixed(idle(stage.engine())):
            made = {"models": asyncio.run(models()), "first-start": asyncio.run(first_start())}
        Path(home, "models").symlink_to(models_here)
        assert Advice().machine  # the bandwidth of the memory is measured, and remembered
        made["chat"] = asyncio.run(chat())
    for name, svg in made.items():
        assert len(svg.encode()) < MOST_BYTES, name
        (FOLDER / f"{name}.svg").write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
