"""The llama.cpp backend on tiny real models of every kind of memory: batching, prefix reuse, order, cancelling.

The models are random, so their logits are far from ties and greedy text is a sensitive check of what the cache holds.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest

import backends
from backends.base import (
    Admitted,
    Backend,
    Finished,
    PrefillAdvanced,
    PrefillStarted,
    Refused,
    Sampled,
    SequenceJob,
    StepEvent,
)
from backends.llama_cpp import LlamaCppBackend
from backends.llama_cpp.native import NativeContext
from backends.llama_cpp.prefix import WORTHWHILE
from backends.llama_cpp.scheduler import Scheduler
from localinfer.errors import DoesNotFit, OutOfMemory
from localinfer.types import LoadOptions, Sampling
from tests.tiny_models import Architecture, write_tiny_model

GREEDY = Sampling(temperature=0)
ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)
_ids = itertools.count(1)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models"), request.param)


@pytest.fixture
def open_backend(model: Path) -> Iterator[Any]:
    opened: list[Backend] = []

    def open_(**options: Any) -> Backend:
        fields = {"slots": 3, "context": 1024, "threads": 1} | options
        backend = backends.load(
            LoadOptions(backend="llama.cpp", model=str(model), name="tiny", **fields), lambda _: None
        )
        opened.append(backend)
        return backend

    yield open_
    for backend in opened:
        backend.close()


def job(tokens: list[int], *, limit: int = 12, **fields: Any) -> SequenceJob:
    return SequenceJob(
        **{"id": next(_ids), "tokens": tokens, "max_tokens": limit, "sampling": GREEDY, "ignore_eos": True, **fields}
    )


def run(backend: Backend, *jobs: SequenceJob) -> dict[int, list[int]]:
    """Submit all at once, step until all are finished, and return the sampled tokens by job id."""
    for each in jobs:
        backend.submit(each)
    return tokens_of(drain(backend, {each.id for each in jobs}))


def drain(backend: Backend, ids: set[int]) -> list[StepEvent]:
    events: list[StepEvent] = []
    waiting = set(ids)
    for _ in range(5000):
        for event in backend.step():
            events.append(event)
            if isinstance(event, Finished):
                waiting.discard(event.id)
        if not waiting:
            return events
    raise AssertionError(f"{waiting} did not finish")


def tokens_of(events: list[StepEvent]) -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for event in events:
        if isinstance(event, Sampled):
            out.setdefault(event.id, []).extend(event.tokens)
    return out


def text(seed: int, count: int) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(30, 300, count)]


def fresh(open_backend: Any, tokens: list[int], limit: int = 12) -> list[int]:
    """The continuation by a backend that has seen nothing else."""
    lone = open_backend(slots=1)
    each = job(tokens, limit=limit)
    return run(lone, each)[each.id]


def test_a_batch_says_what_each_says_alone(open_backend: Any) -> None:
    prompts = [text(seed, 40 + 30 * seed) for seed in range(5)]  # more than there are slots
    backend = open_backend()
    jobs = [job(prompt) for prompt in prompts]
    together = run(backend, *jobs)
    for each, prompt in zip(jobs, prompts, strict=True):
        assert together[each.id] == fresh(open_backend, prompt)


def test_warm_equals_cold(open_backend: Any) -> None:
    backend = open_backend()
    prompt = text(1, 300)
    first = job(prompt)
    reply = run(backend, first)[first.id]
    second = [*prompt, *reply, *text(2, 20)]
    other = text(3, 200)
    for turn in (second, prompt, other, [*prompt[:150], *text(4, 60)], second, prompt):
        each = job(turn)
        assert run(backend, each)[each.id] == fresh(open_backend, turn)


def test_the_next_turn_reuses_the_first(open_backend: Any) -> None:
    backend = open_backend()
    prompt = text(1, 300)
    first = job(prompt)
    reply = run(backend, first)[first.id]
    each = job([*prompt, *reply, *text(2, 20)])
    backend.submit(each)
    started = [event for event in drain(backend, {each.id}) if isinstance(event, PrefillStarted)]
    assert started[0].cached == len(prompt) + len(reply) - 1  # the last sampled token was never decoded


def test_a_prompt_asked_again_reuses_nearly_all_of_it(open_backend: Any) -> None:
    backend = open_backend()
    prompt = text(1, 300)
    run(backend, job(prompt, limit=60))
    each = job(prompt)
    backend.submit(each)
    started = [event for event in drain(backend, {each.id}) if isinstance(event, PrefillStarted)]
    assert started[0].cached >= len(prompt) - 16


def test_prompts_that_share_a_prefix_prefill_it_once(open_backend: Any) -> None:
    backend = open_backend(slots=4)
    system = text(9, 400)
    prompts = [[*system, *text(seed, 10 + seed)] for seed in range(4)]
    jobs = [job(prompt) for prompt in prompts]
    for each in jobs:
        backend.submit(each)
    events = drain(backend, {each.id for each in jobs})
    cached = {event.id: event.cached for event in events if isinstance(event, PrefillStarted)}
    assert cached[jobs[0].id] == 0
    assert all(400 - WORTHWHILE < cached[each.id] <= 400 for each in jobs[1:])
    for each, prompt in zip(jobs, prompts, strict=True):
        assert tokens_of(events)[each.id] == fresh(open_backend, prompt)


def test_order_of_arrival_is_kept(open_backend: Any) -> None:
    backend = open_backend(slots=2)
    jobs = [job(text(seed, 30)) for seed in range(6)]
    for each in jobs:
        backend.submit(each)
    events = drain(backend, {each.id for each in jobs})
    assert [event.id for event in events if isinstance(event, Admitted)] == [each.id for each in jobs]
    assert [event.id for event in events if isinstance(event, PrefillStarted)] == [each.id for each in jobs]


def test_that_a_sequence_begins_is_told_before_its_first_pass(open_backend: Any) -> None:
    backend = open_backend(slots=2)
    system = text(9, 400)
    jobs = [job([*system, *text(seed, 9)]) for seed in range(2)]  # the second waits for the first, and copies
    for each in jobs:
        backend.submit(each)
    running, news = {each.id for each in jobs}, []
    while running:
        events = backend.step()
        told = [event for event in events if isinstance(event, Admitted | PrefillStarted)]
        assert told in ([], events)
        news += told
        running -= {event.id for event in events if isinstance(event, Finished)}
    assert sorted((event.id, type(event).__name__) for event in news) == [
        (each.id, kind) for each in jobs for kind in ("Admitted", "PrefillStarted")
    ]


def test_a_long_prompt_does_not_stop_running_streams(open_backend: Any) -> None:
    backend = open_backend()
    stream = job(text(1, 20), limit=400)
    backend.submit(stream)
    while not any(isinstance(event, Sampled) for event in backend.step()):
        pass
    long = job(text(2, 900))
    backend.submit(long)
    steps_with_prefill = 0
    while True:
        events = backend.step()
        if all(isinstance(event, Admitted | PrefillStarted) for event in events):
            continue  # no pass
        assert any(isinstance(event, Sampled) and event.id == stream.id for event in events), "the stream missed a pass"
        steps_with_prefill += any(isinstance(event, PrefillAdvanced) for event in events)
        if any(isinstance(event, Sampled) and event.id == long.id for event in events):
            break
    assert steps_with_prefill >= 1


def test_cancel_frees_the_slot_before_the_next_step(open_backend: Any) -> None:
    backend = open_backend(slots=1)
    first, second = job(text(1, 200), limit=500), job(text(2, 30))
    backend.submit(first)
    backend.step()
    backend.cancel(first.id)
    backend.submit(second)
    events = backend.step()
    assert isinstance(events[0], Admitted)
    assert events[0].id == second.id
    assert tokens_of(events + drain(backend, {second.id}))[second.id] == fresh(open_backend, text(2, 30))
    assert backend.load().running == 0


def test_the_end_of_the_context_is_length(open_backend: Any) -> None:
    backend = open_backend(context=256)
    each = job(text(1, 200), limit=1000)
    backend.submit(each)
    events = drain(backend, {each.id})
    assert events[-1] == Finished(each.id, "length")
    assert len(tokens_of(events)[each.id]) == 256 - 200 + 1


def test_a_unified_cache_without_room_refuses_the_newest(open_backend: Any, model: Path) -> None:
    backend = open_backend(unified=True, slots=2, context=256)
    jobs = [job(text(seed, 250), limit=1000) for seed in range(2)]
    for each in jobs:
        backend.submit(each)
    assert drain(backend, {each.id for each in jobs})
    assert isinstance(backend, LlamaCppBackend)
    again = job(text(7, 100))
    assert run(backend, again)[again.id] == fresh(open_backend, text(7, 100))


def test_a_context_beyond_the_memory_is_refused_before_it_is_allocated(model: Path, open_backend: Any) -> None:
    if "mamba" in model.name:
        return  # its state does not grow with the context
    with pytest.raises(DoesNotFit, match="are free"):
        open_backend(context=2**31 // 3 - 256, slots=3)


def test_a_sequence_without_a_possible_token_ends_alone(open_backend: Any) -> None:
    backend = open_backend()
    nothing = Sampling(temperature=0, logit_bias=dict.fromkeys(range(backend.info.vocabulary), float("-inf")))
    good, bad = job(text(1, 20)), job(text(2, 20), sampling=nothing)
    for each in (good, bad):
        backend.submit(each)
    events = drain(backend, {good.id})
    refused = [event for event in events if isinstance(event, Refused)]
    assert [event.id for event in refused] == [bad.id]
    assert tokens_of(events)[good.id] == fresh(open_backend, text(1, 20))


def test_rows_stand_in_order_in_a_pass(open_backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp computes only neighbouring rows together."""
    backend = open_backend()
    run(backend, job(text(1, 20)))  # so that the next ones do not get their rows in order of arrival
    passes: list[list[int]] = []
    decode = NativeContext.decode

    def recording(context: NativeContext) -> None:
        passes.append(context.batch._sequence[: context.batch.rows].tolist())
        decode(context)

    monkeypatch.setattr(NativeContext, "decode", recording)
    run(backend, *(job(text(seed, 20)) for seed in (2, 3, 4)))
    assert passes == [sorted(rows) for rows in passes]
    assert [0, 1, 2] in passes


def test_a_pass_that_repeats_the_last_one_is_as_good_as_a_new_one(
    open_backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences come and go while others run, and a pass that found no room is tried again."""
    backend = open_backend(slots=3)
    jobs = [job(list(range(5 + k, 60 + k)), limit=10 + 7 * k) for k in range(3)]
    alone = [run(backend, each)[each.id] for each in jobs]
    compute, failures = NativeContext.decode, itertools.cycle([False] * 4 + [True])

    def sometimes_fail(context: NativeContext) -> None:
        if next(failures):
            raise OutOfMemory("no room", "")
        compute(context)

    monkeypatch.setattr(NativeContext, "decode", sometimes_fail)
    monkeypatch.setattr(Scheduler, "_make_room", lambda *_: None)
    jobs = [msgspec.structs.replace(each, id=next(_ids)) for each in jobs]
    events: list[StepEvent] = []
    for each in jobs:  # the next comes when the one before has begun to speak
        backend.submit(each)
        while not any(isinstance(event, Sampled) and event.id == each.id for event in events):
            events += backend.step()
    events += drain(backend, {each.id for each in jobs} - {event.id for event in events if isinstance(event, Finished)})

    assert [tokens_of(events)[each.id] for each in jobs] == alone
