"""Engines over real workers, for tests: scripted by a query string, or llama.cpp over a model file."""

from collections.abc import Callable
from pathlib import Path

import psutil

from localinfer import settings
from localinfer.engine import WorkerEngine
from localinfer.generation import Generation
from localinfer.types import Event, GenerationRequest, LoadOptions, Message, Sampling, Text

GREEDY = Sampling(temperature=0)


def scripted(script: str = "", **options: object) -> WorkerEngine:
    """An engine whose worker runs the scripted backend."""
    return WorkerEngine(LoadOptions(backend="scripted", model=script, name="scripted", **options), settings.log_dir())  # type: ignore[arg-type]


def llama(model: Path, **options: object) -> WorkerEngine:
    """An engine whose worker runs llama.cpp."""
    return WorkerEngine(LoadOptions(backend="llama.cpp", model=str(model), name="test", **options), settings.log_dir())  # type: ignore[arg-type]


def ask(text: str = "Hello", **fields: object) -> GenerationRequest:
    """A greedy chat request with one message."""
    return GenerationRequest(messages=(Message(role="user", content=text),), **({"sampling": GREEDY} | fields))  # type: ignore[arg-type]


def until(generation: Generation, wanted: Callable[[Event], bool]) -> tuple[list[Event], Event]:
    """Read events up to the first one that is ``wanted``, without leaving the loop: the generation goes on."""
    seen: list[Event] = []
    events = iter(generation)
    _open.append(events)  # an iterator that is dropped cancels its generation
    for event in events:
        seen.append(event)
        if wanted(event):
            return seen, event
    raise AssertionError(f"the event did not come, only {seen}")


def has_text(event: Event) -> bool:
    """Whether it is a piece of the answer."""
    return isinstance(event, Text) and bool(event.text)


def worker_process(engine: WorkerEngine) -> psutil.Process:
    """The engine's worker."""
    pid = engine.status().pid
    assert pid is not None
    return psutil.Process(pid)


_open: list[object] = []
