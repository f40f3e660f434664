"""What the engine is doing, on screen: figures, hostile names, the tail of a growing log, and no work while away."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.screen import Screen
from textual.widgets import Static

from localinfer.types import Active, EngineStatus, Metrics, ModelInfo
from tests.engines import ask, has_text, scripted, until
from tui.screens.activity import REFRESH_S, ActivityScreen
from tui.text.clean import clean
from tui.widgets.board import EngineView, passed, state, summary, table, view_of
from tui.widgets.tail import LINES, MOST_BYTES, LogReader, Tail

SECOND = 10**9
NOW = 1000 * SECOND
HOSTILE = "[/b]\x1b]52;c;eA==\x07\n\u202eevil"
MODEL = ModelInfo(
    name="Small 135M",
    backend="llama.cpp",
    description="llama 135M Q4_1",
    context=8192,
    slots=4,
    vocabulary=1,
    parameters=1,
    weights_bytes=1,
    kv_bytes=1,
    placement="CPU",
    quantization="Q4_1",
)
READY = EngineStatus(
    state="ready", running=2, queued=1, slots=4, threads=2, rss_bytes=312 * 2**20, pid=4242, model=MODEL
)


def generation(label: str = "chat", state: str = "decode", **fields: object) -> Active:
    return Active(id=1, label=label, state=state, submitted_ns=NOW - 4 * SECOND, **({"metrics": Metrics()} | fields))  # type: ignore[arg-type]


def over(finish: str | None, seconds_ago: int = 3) -> Active:
    return generation(state="over", metrics=Metrics(finish_reason=finish), ended_ns=NOW - seconds_ago * SECOND)  # type: ignore[arg-type]


RUNNING = generation(
    metrics=Metrics(prompt_tokens=1204, completion_tokens=463, tps=118.2, ttft_s=0.214, cached_tokens=1024)
)
BUSY = EngineView(
    status=READY,
    at_ns=NOW,
    active=(RUNNING, generation("endpoint · desk", "prefill"), generation(HOSTILE, "queued")),
    finished=tuple(map(over, ("stop", "length", "cancelled", None))),
)


class Shown(App[None]):
    """An application with the screen over an empty one; ``view`` may be changed."""

    def __init__(self, view: EngineView) -> None:
        super().__init__()
        self.view = view
        self.asked = self.ticks = 0

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self.tick)
        self.push_screen(ActivityScreen(self.source))

    def tick(self) -> None:
        self.ticks += 1

    def source(self) -> EngineView:
        self.asked += 1
        return self.view

    def look(self) -> None:
        assert isinstance(self.screen, ActivityScreen)
        self.screen.look()

    def text(self, id: str) -> str:
        return str(self.screen.query_one(f"#{id}", Static).content)

    def log_lines(self) -> list[str]:
        return [line for line in self.screen.query_one(Tail).lines if line]


# What is written


def test_each_generation_is_a_row_with_its_figures() -> None:
    rows = table(BUSY, 118).plain.splitlines()
    assert rows[0].split() == [
        "Running",
        "state",
        "prompt",
        "cached",
        "out",
        "tok/s",
        "TTFT",
        "ITL",
        "p99",
        "took",
        "age",
    ]
    assert rows[1].split() == ["chat", "decode", "1,204", "1,024", "463", "118", "0.21", "s", "–", "–", "4", "s"]
    assert rows[2].startswith("endpoint · desk")
    assert rows[4:6] == ["", "Finished"]
    assert [row.split()[1] for row in rows[6:]] == ["done", "length", "stopped", "failed"]
    assert rows[6].endswith("3 s ago")


def test_the_worker_and_its_slots_are_told() -> None:
    model, worker, slots = summary(BUSY, 78).plain.splitlines()
    assert model == "Model   Small 135M · Q4_1 · llama.cpp · CPU"
    assert worker == "Worker  ready · pid 4242 · 312 MiB · 2 threads"
    assert slots == "Slots   ■■□□ 2 of 4 in use · 1 waiting"
    idle = summary(EngineView(status=EngineStatus(state="idle"), at_ns=NOW), 78).plain.splitlines()
    assert idle == ["Model   –", "Worker  no model is loaded", "Slots   –"]


def test_who_waits_for_a_model_is_said_to_wait_for_it() -> None:
    waiting = generation(state="queued")
    assert state(waiting, EngineStatus(state="loading")) == "loading"
    assert state(waiting, READY) == "queued"
    assert state(over("stop"), EngineStatus(state="loading")) == "done"


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min"), (7300, "2 h")])
def test_time_that_passed_is_in_words(seconds: float, words: str) -> None:
    assert passed(seconds) == words


@given(st.integers(1, 220), st.lists(st.text(max_size=30), max_size=4))
def test_no_row_is_wider_than_the_screen_and_none_is_broken(width: int, labels: list[str]) -> None:
    view = EngineView(status=READY, at_ns=NOW, active=tuple(generation(label) for label in labels), finished=(RUNNING,))
    rows = table(view, width).split("\n")
    assert len(rows) == 1 + max(1, len(labels)) + 3
    for row in (*rows[:1], *rows[1 : 1 + len(labels)]):
        assert row.cell_length <= width
        assert clean(row.plain) == row.plain


@given(st.integers(60, 220), st.text(max_size=60))
def test_columns_stand_in_line_whatever_a_label_holds(width: int, label: str) -> None:
    view = EngineView(status=READY, at_ns=NOW, active=(generation(label), generation("plain")))
    heading, first, second = table(view, width).split("\n")
    assert first.cell_length == second.cell_length == heading.cell_length <= width


# On screen


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_it_is_whole_at_every_size(size: tuple[int, int], tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("loaded\n")
    app = Shown(EngineView(status=READY, at_ns=NOW, active=BUSY.active, finished=BUSY.finished, log=log))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        rows = app.text("rows").splitlines()
        assert [row.split()[0] for row in rows[:3]] == ["Running", "chat", "endpoint"]
        assert max(map(len, rows)) <= size[0] - 2
        assert "\x1b" not in app.export_screenshot()
        assert "worker.log · following" in app.text("log-title")
        assert app.log_lines() == ["loaded"]
        for part in app.screen.children:
            assert part.region.height > 0
            assert part.region.bottom <= size[1]


async def test_it_asks_only_while_it_is_shown_and_draws_only_what_changed() -> None:
    app = Shown(BUSY)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, ActivityScreen)
        drawn = screen.query_one("#rows", Static).content
        screen.look()
        assert screen.query_one("#rows", Static).content is drawn
        app.view = EngineView(status=READY, at_ns=NOW)
        screen.look()
        assert "Nothing is running." in app.text("rows")
        app.push_screen(Screen())
        await pilot.pause()
        before, until_ticks = app.asked, app.ticks + 2
        while app.ticks < until_ticks:
            await pilot.pause()
        assert app.asked == before
        app.pop_screen()
        while app.asked == before:
            await pilot.pause()


async def test_keys_close_it_move_the_focus_and_follow_the_log(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    app = Shown(EngineView(status=READY, at_ns=NOW, log=log))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        tail = app.screen.query_one(Tail)
        assert tail.following
        await pilot.press("tab")
        assert tail.has_focus
        await pilot.press("home")
        while tail.following:
            await pilot.pause()
        with log.open("a") as file:
            file.write("new\n")
        app.look()
        assert app.log_lines()[-1] == "new"
        assert tail.scroll_y == 0
        assert "F follows it again" in app.text("log-title")
        await pilot.press("f")
        assert tail.following
        assert "· following" in app.text("log-title")
        await pilot.press("escape")
        assert not isinstance(app.screen, ActivityScreen)


async def test_a_real_engine_is_shown(tmp_path: Path) -> None:
    with scripted("pace_s=0.005", slots=2) as engine:
        assert view_of(None).status.state == view_of(engine).status.state == "idle"
        generation = engine.submit(ask(label="chat", ignore_eos=True, max_tokens=100_000))
        until(generation, has_text)
        app = Shown(view_of(engine))
        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.pause()
            assert app.text("rows").splitlines()[1].split()[:2] == ["chat", "decode"]
            assert "1 of 2 in use" in app.text("summary")
        assert view_of(engine).log == engine.log


# The log


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\nthr")
    reader = LogReader(log)
    assert reader.read() == ["one", "two"]
    with log.open("a") as file:
        file.write("ee\nfour\n")
    assert reader.read() == ["three", "four"]
    assert reader.read() == []


def test_a_line_without_an_end_comes_when_nothing_more_does(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("aborted")
    reader = LogReader(log)
    assert reader.read() == []
    assert reader.read() == ["aborted"]
    assert reader.read() == []


def test_of_a_long_log_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))
    reader = LogReader(log)
    lines = reader.read()
    assert lines == [f"line {number}" for number in range(100_000 - LINES, 100_000)]
    with log.open("a") as file:
        file.write("x" * MOST_BYTES + "\n" + "last\n")
    assert reader.read() == ["last"]


def test_a_log_that_was_emptied_is_read_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a long line of the past\n")
    reader = LogReader(log)
    assert reader.read() == ["a long line of the past"]
    log.write_text("new\n")
    assert reader.read() == ["new"]


def test_a_log_that_is_gone_or_no_file_has_no_lines(tmp_path: Path) -> None:
    assert LogReader(tmp_path / "none").read() == []
    assert LogReader(tmp_path).read() == []


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_no_log_can_command_the_terminal(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    log = tmp_path_factory.mktemp("log") / "log"
    log.touch()
    reader = LogReader(log)
    for part in parts:
        with log.open("ab") as file:
            file.write(part)
        for line in reader.read():
            assert clean(line) == line
            assert "\t" not in line


async def test_another_worker_brings_another_log(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("of the first\n")
    second.write_text("of the second\n")
    app = Shown(EngineView(status=READY, at_ns=NOW, log=first))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.log_lines() == ["of the first"]
        app.view = EngineView(status=READY, at_ns=NOW, log=second)
        app.look()
        assert app.log_lines() == ["of the second"]
