"""What the engine does when memory runs out while a model is being loaded."""

import pytest

from localinfer import settings
from localinfer.engine import WorkerEngine
from localinfer.errors import ModelFileInvalid, OutOfMemory
from localinfer.types import LoadOptions
from tests.engines import ask


def starved(*scripts: str) -> WorkerEngine:
    """An engine whose first load runs out of memory; ``scripts`` are loaded instead, one after another."""
    first, *smaller = (
        LoadOptions(backend="scripted", model=script, name="scripted", notices=(f"load {number}",))
        for number, script in enumerate(("fail_load=OutOfMemory", *scripts))
    )
    return WorkerEngine(first, settings.log_dir(), smaller)


def test_where_memory_runs_out_while_loading_the_next_smaller_load_answers() -> None:
    with starved("fail_load=OutOfMemory", "text=small") as engine:
        generations = [engine.submit(ask()) for _ in range(3)]
        assert [generation.text() for generation in generations] == ["small"] * 3
        model = engine.status().model
        assert model is not None
        assert "load 2" in model.notices, "it was not said that it is the smaller one"
    with starved("text=small") as engine:
        assert "load 1" in engine.load().notices


def test_where_no_load_is_small_enough_the_reason_stays() -> None:
    with starved("fail_load=OutOfMemory") as engine:
        generation = engine.submit(ask())
        with pytest.raises(OutOfMemory):
            generation.text()
        with pytest.raises(OutOfMemory):
            engine.load()
        assert engine.status().state == "failed"


def test_only_memory_makes_a_load_smaller() -> None:
    options = LoadOptions(backend="scripted", model="fail_load=ModelFileInvalid", name="scripted")
    small = LoadOptions(backend="scripted", model="text=small", name="scripted")
    with WorkerEngine(options, settings.log_dir(), [small]) as engine, pytest.raises(ModelFileInvalid):
        engine.load()
