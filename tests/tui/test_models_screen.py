"""The screen of models: what is listed, chosen, fetched, stopped and deleted, by the keys a person presses."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from localinfer.errors import DownloadFailed
from localinfer.models import fetched
from localinfer.types import LoadOptions
from tests.models.conftest import hub
from tests.models.hub_server import Fault, HubServer
from tests.models.machines import cpu_only, cuda, machine
from tests.tiny_models import write_tiny_model
from tests.tui.models_app import Around, Parts, Source, shown, until
from tui.screens.models import Chosen, ModelsScreen
from tui.widgets.models.detail import Detail
from tui.widgets.models.filter import Filter
from tui.widgets.models.listing import ModelList

__all__ = ["hub"]

WIDE, NARROW = (120, 36), (80, 24)


@pytest.fixture
def starter(starter_model: Path, home: Path) -> Path:
    """The starter where localinfer puts it."""
    path = home / "models" / "smollm2-135m" / starter_model.name
    path.parent.mkdir(parents=True)
    shutil.copy(starter_model, path)
    return path


@pytest.fixture
def parts() -> Iterator[Parts]:
    made = Parts(machine(32, cuda(12)))
    yield made
    made.close()


def screen_of(parts: Parts, *, offline: bool = True, query: str = "") -> ModelsScreen:
    return ModelsScreen(parts.advice, parts.downloads, parts.engines, offline=offline, query=query)


def listing(app: Around) -> ModelList:
    return app.screen.query_one(ModelList)


def keys_of(app: Around) -> list[str]:
    return [line.key.partition("\n")[0] for line in listing(app).lines]


def highlighted(app: Around) -> str:
    line = listing(app).highlighted
    return line.key.partition("\n")[0] if line else ""


async def test_what_is_here_comes_first_then_the_catalogue_best_first(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        assert "Models" in shown(app)
        await until(pilot, lambda: bool(keys_of(app)))
        names = keys_of(app)
        assert names[0] == "smollm2-135m"
        assert highlighted(app) == "smollm2-135m"
        text = shown(app)
        assert text.index("On this machine") < text.index("In the catalogue: ★ suits this machine best")
        first = listing(app).lines[1]
        assert first.recommended
        assert f"★ {first.title}" in text
        assert "● on the GPU" in text
        heavy = [line for line in listing(app).lines if line.section == "heavy"]
        assert heavy
        assert names[-len(heavy) :] == [line.key for line in heavy]
        assert starter.exists()


async def test_typing_filters_by_every_word(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: len(keys_of(app)) > 10)
        await pilot.press(*"qw vision")
        assert keys_of(app)
        assert all(key.startswith("qwen") for key in keys_of(app))
        assert all("vision" in line.capabilities for line in listing(app).lines)
        await pilot.press("escape")
        await until(pilot, lambda: len(keys_of(app)) > 10)
        await pilot.press("escape")
        await until(pilot, lambda: app.result == [None])
    assert starter.exists()


async def test_a_filter_that_nothing_fits_says_so(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: len(keys_of(app)) > 10)
        await pilot.press(*"xyzzy")
        await until(pilot, lambda: not keys_of(app))
        assert "No model here or in the catalogue has “xyzzy” in it." in shown(app)
        await pilot.press("escape")
        await until(pilot, lambda: len(keys_of(app)) > 10)
        assert "No model here" not in shown(app)


@pytest.mark.parametrize("size", [NARROW, WIDE, (200, 50)])
async def test_what_models_can_do_is_seen_at_every_width(size: tuple[int, int], parts: Parts) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: len(keys_of(app)) > 10)
        head, row = next(line for line in shown(app).splitlines() if "MODEL" in line), listing(app).lines[0]
        assert "CAN" in head
        line = next(line for line in shown(app).splitlines() if f"★ {row.title}" in line)
        words = " ".join(row.capabilities) if size[0] == 200 else "t·th·v"
        assert row.capabilities == ("tools", "thinking", "vision")
        assert line[head.index("CAN") :].startswith(words)


async def test_enter_on_what_is_here_chooses_it(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press("down", "down", "up", "up", "enter")
        await until(pilot, lambda: bool(app.result))
    assert app.result == [Chosen(reference="smollm2-135m:Q4_1")]
    assert parts.source.asked == []
    assert starter.exists()


async def test_the_details_say_what_it_is_and_where_it_would_lie(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: len(keys_of(app)) > 3)
        await pilot.press("down", *"qwen3-8b")
        await until(pilot, lambda: keys_of(app) == ["qwen3-8b"])
        text = shown(app)
        for words in ("8.2B parameters", "Apache-2.0", "tools, thinking", "Enter fetches ~6.7 GB, then loads it"):
            assert words in text, text
        for words in ("A card", "█ weights", "▓ KV cache", "▒ buffers", "░ kept free", "· free", "In memory", "decode"):
            assert words in text, text
        assert "▸ Q6_K" in text
        await pilot.press("right")
        assert "▸ Q8_0" in shown(app)
        assert "Enter fetches ~8.7 GB" in shown(app)
        await pilot.press("right")
        assert "▸ Q4_K_M" in shown(app)
        assert "Enter fetches ~5.0 GB" in shown(app)
        await pilot.press("enter")
        await until(pilot, lambda: bool(parts.source.asked))
    assert parts.source.asked == ["qwen3-8b:Q4_K_M"]
    assert starter.exists()


async def test_where_it_is_narrow_the_details_take_the_place_of_the_list(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        assert not app.screen.query_one(Detail).display
        await pilot.press("space")
        await until(pilot, lambda: app.screen.query_one(Detail).display)
        assert not listing(app).display
        assert "Enter loads it" in shown(app)
        await pilot.press("tab")
        await until(pilot, lambda: listing(app).display)
        assert isinstance(app.focused, Filter)
        await pilot.press("q", "space")
        assert app.screen.query_one(Filter).value == "q "
    assert starter.exists()


async def test_fetching_shows_how_far_it_is_and_loads_what_was_asked_for(parts: Parts) -> None:
    app = Around(screen_of(parts, query="qwen3-8b"))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press("enter")
        await until(pilot, lambda: "25%" in shown(app))
        row = next(line for line in shown(app).splitlines() if "Qwen3 8B" in line and "25%" in line)
        assert "━━━───" in row
        assert "5.0 MB/s · 15 s" in row
        assert "25 MB of 100 MB · 25% · 5.0 MB/s · 15 s" in shown(app)
        assert "It goes on when you leave this screen." in shown(app)
        parts.source.arrive.set()
        await until(pilot, lambda: bool(app.result))
    assert app.result == [Chosen(reference="qwen3-8b:Q6_K")]


async def test_who_has_gone_on_to_another_model_is_not_torn_away(parts: Parts) -> None:
    app = Around(screen_of(parts, query="qwen3"))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: len(keys_of(app)) > 2)
        await pilot.press("enter")
        await until(pilot, lambda: "25%" in shown(app))
        await pilot.press("down")
        looks = parts.looks
        parts.source.arrive.set()
        await until(pilot, lambda: parts.looks > looks)  # what has arrived is listed
        assert app.result == []
        assert isinstance(app.screen, ModelsScreen)


async def test_a_download_goes_on_without_the_screen_and_can_be_stopped_from_it_again(parts: Parts) -> None:
    app = Around(screen_of(parts, query="qwen3-8b"))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press("enter")
        await until(pilot, lambda: parts.downloads.active)
        await pilot.press("escape", "escape")
        await until(pilot, lambda: app.result == [None])
        assert parts.downloads.active
        app.push_screen(screen_of(parts, query="qwen3-8b"), app.result.append)
        await until(pilot, lambda: "25%" in shown(app))
        await pilot.press("delete")
        await until(pilot, lambda: "stopped at 25%" in shown(app))
        assert "Enter goes on from there" in shown(app)
        await pilot.press("enter")
        await until(pilot, lambda: parts.downloads.active)
    assert parts.source.asked == ["qwen3-8b:Q6_K"] * 2


async def test_a_failure_says_why_and_how_to_go_on(parts: Parts) -> None:
    parts.source.failure = DownloadFailed("The hub [b]broke off[/b].", "Try again \x1b[31mlater.")
    parts.source.arrive.set()
    app = Around(screen_of(parts, query="qwen3-8b"))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press("enter")
        await until(pilot, lambda: "The hub [b]broke off[/b]." in shown(app))
        assert "\x1b" not in shown(app)
        assert "Enter goes on from there" in shown(app)
        await pilot.press("delete")  # off the list
        await until(pilot, lambda: "broke off" not in shown(app).replace("is off", ""))
        assert parts.downloads.snapshot() == ()


async def test_what_is_too_big_is_fetched_only_after_a_question(parts: Parts) -> None:
    app = Around(screen_of(parts, query="llama-3.3-70b"))
    parts.machine = machine(16, cuda(8))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        assert "✗ too big" in shown(app)
        await pilot.press("enter")
        await until(pilot, lambda: "does not fit" in shown(app))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        assert not parts.downloads.active
        await pilot.press("enter")
        await until(pilot, lambda: "does not fit" in shown(app))
        await pilot.press("y")
        await until(pilot, lambda: parts.downloads.active)


async def test_the_model_in_use_is_marked_and_what_switching_frees_is_said(parts: Parts, starter: Path) -> None:
    options = LoadOptions(backend="llama.cpp", model="", name="", context=512, threads=1)
    parts.engines.switch(parts.engines.prepare("smollm2-135m", options))
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: len(keys_of(app)) > 2)
        assert "✓ SmolLM2 135M" in shown(app)
        assert "✓ in use" in shown(app)
        await pilot.press("delete")
        await until(pilot, lambda: "is in use: load" in shown(app))
        await pilot.press("down")
        await until(pilot, lambda: "of smollm2-135m" in " ".join(shown(app).split()))
    assert starter.exists()


async def test_deleting_asks_first_and_deletes_only_what_was_fetched(parts: Parts, starter: Path) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press("delete")
        await until(pilot, lambda: "Delete smollm2-135m?" in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ModelsScreen))
        assert starter.exists()
        await pilot.press("delete")
        await until(pilot, lambda: "Delete smollm2-135m?" in shown(app))
        await pilot.press("y")
        await until(pilot, lambda: not starter.exists())
        await until(pilot, lambda: "On this machine" not in shown(app))


async def test_a_model_of_somebody_else_is_not_deleted(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = write_tiny_model(tmp_path, "llama")
    monkeypatch.setenv("LOCALINFER_MODEL_FOLDERS", str(tmp_path))
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        assert highlighted(app) == "llama"
        await pilot.press("delete")
        await until(pilot, lambda: "localinfer did not fetch llama" in shown(app))
    assert mine.exists()


async def test_a_hostile_name_reaches_no_terminal(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_model(tmp_path, "llama").rename(tmp_path / "[red]x[b]\u202e\x1b]52;c;aGk=\x07.gguf")
    monkeypatch.setenv("LOCALINFER_MODEL_FOLDERS", str(tmp_path))
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await until(pilot, lambda: "KV cache" in shown(app))
        assert "[red]x[b]" in shown(app)
        assert not set(shown(app)) & {"\x1b", "\x07", "\u202e"}


# The hub


@pytest.fixture
def with_tiny(hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubServer:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    data = write_tiny_model(tmp_path, "llama").read_bytes()
    hub.offer("owner/zebra-GGUF", {"zebra-Q4_K_M.gguf": data, "zebra-Q8_0.gguf": data}, downloads=1_234_567)
    return hub


async def test_from_three_letters_on_the_hub_is_searched_looked_into_and_fetched_from(
    with_tiny: HubServer, tmp_path: Path
) -> None:
    parts = Parts(cpu_only(8))
    parts.downloads._fetch = None  # the real one
    app = Around(screen_of(parts, offline=False))
    try:
        async with app.run_test(size=WIDE, notifications=True) as pilot:
            await until(pilot, lambda: bool(keys_of(app)))
            await pilot.press("z", "e")
            assert with_tiny.requests == []
            await pilot.press("b")
            await until(pilot, lambda: "owner/zebra-GGUF" in keys_of(app))
            assert "On the hub" in shown(app)
            await until(pilot, lambda: "▸ Q4_K_M" in shown(app) or "▸ Q8_0" in shown(app))
            assert "1.2M downloads" in shown(app)
            assert "○ on the CPU" in shown(app)
            await pilot.press("enter")
            await until(pilot, lambda: bool(app.result))
    finally:
        parts.close()
    (chosen,) = app.result
    assert chosen.reference.startswith("owner/zebra-GGUF:Q")
    assert fetched.ours(tuple((tmp_path / "cache").rglob("zebra-*.gguf")))


async def test_offline_the_hub_is_not_asked(with_tiny: HubServer, parts: Parts) -> None:
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press(*"zebra")
        await until(pilot, lambda: "offline: the hub is not asked" in shown(app))
        assert keys_of(app) == []
    assert with_tiny.requests == []


async def test_a_hub_that_refuses_is_one_quiet_line(with_tiny: HubServer, parts: Parts) -> None:
    with_tiny.fail("api", Fault(status=403))
    app = Around(screen_of(parts, offline=False))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        await pilot.press(*"qwen3-8b")
        await until(pilot, lambda: "asking the hub" in shown(app))
        await until(pilot, lambda: "asking the hub" not in shown(app))
        assert keys_of(app) == ["qwen3-8b"]
        assert "does not give model search to strangers" in shown(app).splitlines()[-2]


async def test_looking_again_finds_what_is_new(parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALINFER_MODEL_FOLDERS", str(tmp_path))
    app = Around(screen_of(parts))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: bool(keys_of(app)))
        assert "llama" not in keys_of(app)
        write_tiny_model(tmp_path, "llama")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: keys_of(app)[:1] == ["llama"])
    assert parts.looks == 2


async def test_a_download_that_is_listed_nowhere_has_its_own_line() -> None:
    parts = Parts(cpu_only(8), Source())
    parts.downloads.start("owner/unknown:Q4_0", "owner/unknown Q4_0", 100)
    app = Around(screen_of(parts))
    try:
        async with app.run_test(size=NARROW) as pilot:
            await until(pilot, lambda: len(keys_of(app)) > 1)
            assert keys_of(app)[0] == "owner/unknown:Q4_0"
            assert "Downloads" in shown(app)
            await until(pilot, lambda: "25%" in shown(app))
            await pilot.press("home", "delete")
            await until(pilot, lambda: not parts.downloads.active)
    finally:
        parts.close()
