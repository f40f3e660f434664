"""Many generations of mixed length with cancels at random: the worker's memory stays flat and no slot is lost."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localinfer.engine import WorkerEngine
from localinfer.types import Done, FinishReason, GenerationRequest, Sampling, Text
from tests.engines import llama, until, worker_process
from tests.tiny_models import Architecture, write_tiny_model

SLOTS = 4
CLIENTS = 6
CONTEXT = 2048
ARCHITECTURES: tuple[Architecture, ...] = ("llama", "lfm2")  # rows that are cut, and rows that need checkpoints


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_50_generations_leave_nothing_behind(tmp_path: Path, architecture: Architecture) -> None:
    soak(write_tiny_model(tmp_path, architecture), warm_up=150, count=50)


@pytest.mark.soak
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_1000_generations_leave_nothing_behind(tmp_path: Path, architecture: Architecture) -> None:
    soak(write_tiny_model(tmp_path, architecture), warm_up=150, count=1000)


def soak(model: Path, *, warm_up: int, count: int) -> None:
    with llama(model, slots=SLOTS, context=CONTEXT, threads=1) as engine:
        serve(engine, range(warm_up))
        worker = worker_process(engine)
        before = worker.memory_info().rss
        reasons = serve(engine, range(warm_up, warm_up + count))
        after = worker.memory_info().rss
        print(f"worker: {before / 2**20:.1f} MiB after {warm_up} generations, {after / 2**20:.1f} after {count} more")
        assert abs(after - before) < 0.05 * before
        assert worker_process(engine) == worker
        assert set(reasons) == {"length", "cancelled", None}
        assert_all_slots_are_there(engine)


def serve(engine: WorkerEngine, numbers: range) -> list[FinishReason | None]:
    """One generation for each number, several at a time; how each ended, None where its reader left."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda number: generate(engine, random.Random(number)), numbers))


def generate(engine: WorkerEngine, rng: random.Random) -> FinishReason | None:
    """Half of them end by themselves; the others are cancelled, or left, after some tokens or at once."""
    length = rng.choice((5, 30, 120, 500))
    system = [40 + number % 200 for number in range(rng.choice((0, 100)))]  # some share it
    generation = engine.submit(
        GenerationRequest(
            token_ids=(*system, *(rng.randrange(30, 300) for _ in range(length))),
            sampling=Sampling(seed=rng.randrange(100), repeat_penalty=rng.choice((1.0, 1.1))),
            max_tokens=rng.choice((1, 20, 100)),
            ignore_eos=True,
        )
    )
    ending = rng.choice(("itself", "itself", "cancel", "leave"))
    patience = rng.choice((0, 1, 10))
    for event in generation:
        if isinstance(event, Done):
            return event.finish_reason
        patience -= isinstance(event, Text)
        if patience <= 0 and ending == "cancel":
            generation.cancel()
        if patience <= 0 and ending == "leave":
            return None
    raise AssertionError("the generation has no end")


def assert_all_slots_are_there(engine: WorkerEngine) -> None:
    together = [
        engine.submit(GenerationRequest(token_ids=(50 + number,) * 9, ignore_eos=True)) for number in range(SLOTS)
    ]
    for generation in together:
        until(generation, lambda event: isinstance(event, Text))
    while engine.status().running < SLOTS:
        assert not any(generation.over for generation in together), "they did not run at the same time"
    assert engine.status().queued == 0
