"""The screens of models, as they look on recorded machines."""

from collections.abc import Callable, Iterator

import pytest

from localinfer.machine import Machine
from tests.tui.models_app import Around, Parts
from tests.tui.snapshots import SIZES, check, stage
from tests.tui.snapshots.replies import idle
from tui.screens.models import ModelsScreen
from tui.screens.welcome import WelcomeScreen

Made = Callable[[Machine], Parts]

HERE = (("qwen3.5-4b", "Q4_K_M"), ("smollm2-135m", "Q4_1"))


@pytest.fixture(autouse=True)
def engine() -> Iterator[stage.Still]:
    made = stage.engine()
    with stage.fixed(idle(made)):
        yield made


@pytest.fixture
def parts() -> Iterator[Made]:
    made: list[Parts] = []

    def make(machine: Machine) -> Parts:
        made.append(Parts(machine))
        return made[-1]

    yield make
    for each in made:
        each.close()


def models_of(parts: Parts, *here: tuple[str, str]) -> ModelsScreen:
    models = [stage.variant(*one) for one in here]
    return ModelsScreen(lambda: stage.Advised(parts.machine, models), parts.downloads, parts.engines, offline=True)


async def test_models_on_a_laptop_with_a_card(parts: Made, engine: stage.Still) -> None:
    made = parts(stage.holding(stage.machine(), stage.plan()))
    made.engines = stage.Loaded(engine)
    made.engines.switch(made.engines.prepare("", engine.options))
    app = Around(models_of(made, *HERE))
    async with app.run_test(size=SIZES[0]) as pilot:
        await check("models", pilot, "On this machine", "Qwen3.5 4B", "on the GPU", "GB")
        await pilot.press(*"gemma")
        await check("models-filter", pilot, "Gemma 4 12B", "too big", "offline: the hub is not asked")
        await pilot.press("tab")
        await check("models-details", pilot, "Gemma 4", "Memory", "weights", "KV cache", "Enter fetches")


async def test_models_while_one_is_fetched(parts: Made) -> None:
    made = parts(stage.machine("m1-8gb", "metal"))
    made.downloads.start("qwen3.5-2b:Q4_K_M", "Qwen3.5 2B Q4_K_M", 1_400_000_000)
    app = Around(models_of(made, ("smollm2-135m", "Q4_1")))
    async with app.run_test(size=SIZES[0]) as pilot:
        await check("models-fetching", pilot, "25%", "5.0 MB/s", "15 s")


def welcome_of(parts: Parts) -> WelcomeScreen:
    return WelcomeScreen(parts.advice, parts.downloads, parts.engines)


@pytest.mark.parametrize(
    ("name", "machine", "build", "words"),
    [
        ("welcome-laptop", "m1-8gb", "metal", ("Apple M1", "Start now with", "in the background")),
        ("welcome-card", "rtx-4090", "cuda", ("RTX 4090", "Start now with", "in the background", "tok/s")),
        ("welcome-problem", "driver-mismatch", "cuda", ("!", "Models use", "CPU", "Start now with")),
    ],
)
async def test_welcome(parts: Made, name: str, machine: str, build: str, words: tuple[str, ...]) -> None:
    app = Around(welcome_of(parts(stage.machine(machine, build))))
    async with app.run_test(size=SIZES[0]) as pilot:
        await check(name, pilot, *words, "Choose another", "Quit")


async def test_welcome_while_the_first_is_fetched(parts: Made) -> None:
    app = Around(welcome_of(parts(stage.machine())))
    async with app.run_test(size=SIZES[0]) as pilot:
        await check("welcome-card-laptop", pilot, "RTX 4060", "Start now with")
        await pilot.press("enter")
        await check("welcome-fetching", pilot, "25 MB of 100 MB", "Esc")
