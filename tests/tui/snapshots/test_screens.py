"""The screens over the chat, as they look."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from localinfer.history.store import History
from localinfer.types import Active, EngineStatus, Metrics
from tests.tui.snapshots import check, stage, talks
from tests.tui.snapshots.replies import METRICS, done, idle
from tui.screens.activity import ActivityScreen
from tui.screens.confirm import Ask, Confirm
from tui.widgets.board import EngineView

SECOND = 10**9
NOW = 1000 * SECOND
LOG = """\
llama_model_loader: loaded meta data with 34 key-value pairs and 427 tensors
load_tensors: offloaded 33/33 layers to GPU
llama_context: n_ctx_seq = 32768
"""


@pytest.fixture
def engine() -> Iterator[stage.Still]:
    made = stage.engine()
    with stage.fixed(idle(made)):
        yield made


async def test_parameters(engine: stage.Still) -> None:
    async with stage.opened(engine) as (_, pilot):
        await pilot.press("f5")
        await check("parameters", pilot, "System prompt", "Temperature", "Enter applies")


async def test_search() -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times)
            talks.short(history, times)
        async with stage.opened(engine) as (_, pilot):
            await pilot.press("f4")
            await check("search-recent", pilot, "recent conversations", "House rules")
            await pilot.press(*"decode")
            await check("search", pilot, "7 found", "Why is decode slower", "Enter opens")
            await pilot.press(*"xyz")
            await check("search-nothing", pilot, "Nothing has “decodexyz” in it")


async def test_settings(engine: stage.Still, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "localinfer.settings.config_file", lambda: PurePosixPath("/home/me/.config/localinfer/config.toml")
    )
    async with stage.opened(engine) as (_, pilot):
        await pilot.press("alt+s")
        await check("settings", pilot, "Theme", "localinfer-dark", "KV cache", "config.toml")


async def test_help(engine: stage.Still) -> None:
    async with stage.opened(engine) as (_, pilot):
        await pilot.press("f1")
        await check("help", pilot, "Keys everywhere", "Begin a new conversation", "Esc leaves")


async def test_palette() -> None:
    engine = stage.engine()
    with stage.fixed(done(engine)) as times:
        with History() as history:
            talks.several(history, times)
        async with stage.opened(engine) as (_, pilot):
            await pilot.press("ctrl+p")
            await check("palette", pilot, "Find, fetch and switch models", "F2")
            await pilot.press(*"kyoto")
            await check("palette-search", pilot, "A trip to Kyoto")


async def test_activity(engine: stage.Still, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text(LOG)
    view = EngineView(
        status=EngineStatus(
            state="ready", running=2, queued=1, slots=4, threads=8, rss_bytes=612 * 2**20, pid=4242, model=engine.info
        ),
        at_ns=NOW,
        active=(_active(1, "chat", "decode"), _active(2, "endpoint · editor", "prefill"), _active(3, "chat", "queued")),
        finished=tuple(_over(number, reason) for number, reason in enumerate(("stop", "length", "cancelled", None))),
        log=log,
    )
    async with stage.opened(engine) as (app, pilot):
        app.push_screen(ActivityScreen(lambda: view))
        await check(
            "activity", pilot, "Running", "endpoint · editor", "prefill", "offloaded 33/33 layers", "worker.log"
        )


def _active(id: int, label: str, state: str) -> Active:
    metrics = {"queued": Metrics(), "prefill": Metrics(prompt_tokens=2048, cached_tokens=512)}.get(state, METRICS)
    return Active(id=id, label=label, state=state, metrics=metrics, submitted_ns=NOW - (4 + id) * SECOND)  # type: ignore[arg-type]


def _over(number: int, reason: str | None) -> Active:
    ended = NOW - (number * 40 + 3) * SECOND
    metrics = Metrics(prompt_tokens=1286, completion_tokens=310, tps=58.4, ttft_s=0.2, finish_reason=reason)  # type: ignore[arg-type]
    return Active(id=9, label="chat", state="over", metrics=metrics, submitted_ns=ended - 6 * SECOND, ended_ns=ended)


async def test_confirm(engine: stage.Still) -> None:
    async with stage.opened(engine) as (app, pilot):
        question = "Qwen3 32B does not fit. Fetch it all the same?"
        app.push_screen(Confirm(question, "It needs 19.6 GiB and 7.0 GiB are free.", "Fetch it", "Leave it"))
        await check("confirm", pilot, question, "Fetch it", "Leave it", "Esc")
        app.pop_screen()
        app.push_screen(Ask("Name of the preset", "calm and dry"))
        await check("ask", pilot, "Name of the preset", "calm and dry", "Enter accepts")
