"""The two widgets on a screen: what they paint, and what keys do."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from textual.app import App, ComposeResult

from tests.tui.readout.replies import phases, pulse
from tui.widgets.readout import Reading, Readout, StatusLine
from tui.widgets.readout.explanations import EXPLANATIONS
from tui.widgets.readout.line import status
from tui.widgets.readout.rows import cell_len

PHASES = phases()


class Screen(App[None]):
    """Both ways to show a reading."""

    AUTO_FOCUS = None
    left = 0

    def compose(self) -> ComposeResult:
        yield Readout()
        yield StatusLine()

    def on_readout_left(self) -> None:
        self.left += 1


def painted(app: App[None], widget: type[Readout] | type[StatusLine]) -> list[str]:
    one = app.query_one(widget)
    return ["".join(segment.text for segment in one.render_line(y)) for y in range(one.size.height)]


async def test_a_reading_is_painted() -> None:
    app = Screen()
    async with app.run_test(size=(60, 40)) as pilot:
        readout = app.query_one(Readout)
        for reading in PHASES.values():
            readout.show(reading)
            app.query_one(StatusLine).show(reading)
            await pilot.pause()
        assert any("CPU ×2" in line for line in painted(app, Readout))
        assert "tok/s" in painted(app, StatusLine)[0]
        assert "first text" in app.export_screenshot().replace("&#160;", " ")


async def test_only_rows_that_changed_are_painted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Screen()
    async with app.run_test(size=(60, 40)) as pilot:
        readout = app.query_one(Readout)
        readout.show(PHASES["queued"])
        await pilot.pause()
        asked: list[int] = []
        monkeypatch.setattr(readout, "refresh", lambda *regions, **_: asked.extend(region.y for region in regions))
        readout.show(PHASES["queued"])
        assert asked == []
        readout.show(PHASES["prefill"])
        assert 0 < len(asked) < 15


async def test_keys_choose_a_figure_and_its_definition_is_shown() -> None:
    app = Screen()
    async with app.run_test(size=(60, 40)) as pilot:
        readout = app.query_one(Readout)
        readout.show(PHASES["done"])
        await pilot.pause()
        assert not any(line.startswith("▸") for line in painted(app, Readout))
        readout.focus()
        await pilot.press("down", "down")
        assert next(line for line in painted(app, Readout) if line.startswith("▸")).startswith("▸┄ queue")
        assert EXPLANATIONS["queue"].meaning[1:] in " ".join(" ".join(painted(app, Readout)).split())
        await pilot.press("up", "up", "up")
        assert painted(app, Readout)[0].startswith("▸TTFT · first text")
        await pilot.press("end")
        assert any(line.startswith("▸power") for line in painted(app, Readout))
        await pilot.press("up")
        assert any(line.startswith("▸CPU") for line in painted(app, Readout))
        await pilot.press("escape")
        assert app.left == 1
        app.set_focus(None)
        await pilot.pause()
        assert not any("▸" in line for line in painted(app, Readout))


async def test_a_new_size_is_drawn_anew() -> None:
    app = Screen()
    async with app.run_test(size=(60, 40)) as pilot:
        app.query_one(Readout).show(PHASES["done"])
        await pilot.resize_terminal(60, 12)
        await pilot.pause()
        assert len(painted(app, Readout)) == 11
        assert not any("Machine" in line for line in painted(app, Readout))
        await pilot.resize_terminal(60, 40)
        await pilot.pause()
        assert any("Machine" in line for line in painted(app, Readout))


async def test_another_theme_repaints_in_its_colours() -> None:
    app = Screen()
    async with app.run_test(size=(60, 40)) as pilot:
        readout = app.query_one(Readout)
        readout.show(PHASES["done"])
        await pilot.pause()
        before = {segment.style for segment in readout.render_line(0)}
        app.theme = "textual-light"
        await pilot.pause()
        assert {segment.style for segment in readout.render_line(0)}.isdisjoint(before)


def narrowing(reading: Reading) -> Iterator[str]:
    for width in range(100, 0, -1):
        line = status(reading, width)
        assert cell_len(line) <= width
        yield line


@pytest.mark.parametrize("phase", list(PHASES))
def test_the_line_fits_every_width(phase: str) -> None:
    assert len(list(narrowing(PHASES[phase]))) == 100


def test_what_the_line_says() -> None:
    assert status(PHASES["loading"], 80).startswith("loading … · 0.50 s · ctx 12 %")
    assert status(PHASES["queued"], 80).startswith("queued, 2 ahead · 1.40 s")
    assert status(PHASES["prefill"], 80).startswith("prefill 1,600/2,310 · 411 tok/s · 3.20 s · ctx 28 %")
    decoding = status(PHASES["decode"], 80)
    assert decoding.startswith(" 100 tok/s ")
    assert "██ · TTFT 5.01 s · 200 tokens · ctx 31 % · 1.8 GiB" in decoding
    assert status(PHASES["done"], 22) == " 100 tok/s · ctx 31 %"
    assert status(PHASES["done"], 12) == " 100 tok/s"
    drafting = status(phases(gpu=True)["decode"], 80)
    assert "██ · TTFT 5.01 s · gain 1.60× · ctx 33 %" in drafting
    assert status(Reading(), 40) == "ready"
    assert status(Reading(phase="none"), 40) == "no model is loaded"
    assert status(Reading(phase="checking"), 40) == "checking …"
    again = replace(PHASES["done"], phase="loading", load_progress=0.43)
    assert status(again, 80).startswith("loading 43 % · TTFT 5.01 s")


def test_the_line_gives_up_the_least_important_first() -> None:
    line = status(PHASES["decode"], 42)
    assert "TTFT" in line
    assert "CPU" not in line
    assert "MiB" not in line


def test_trouble_is_more_important_than_what_is_known_anyway() -> None:
    hot = replace(PHASES["done"], pulse=pulse(throttled="the processor is slowed down to stay cool"))
    line = status(hot, 74)
    assert line.endswith("the processor is slowed down to stay cool")
    assert "tokens" not in line
