"""A generation without an engine: events from threads, readers in threads and event loops, leaving and failing."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from localinfer.errors import ContextOverflow, LocalInferError, WorkerDied
from localinfer.generation import Generation
from localinfer.metrics import now_ns
from localinfer.types import (
    Done,
    Event,
    Failed,
    Fault,
    GenerationRequest,
    Loading,
    Prefilled,
    Queued,
    Reasoning,
    Text,
)


class Cancels(list[int]):
    """The ids of generations that were cancelled."""


@pytest.fixture
def cancels() -> Cancels:
    return Cancels()


@pytest.fixture
def generation(cancels: Cancels) -> Generation:
    return Generation(7, GenerationRequest(prompt="x"), cancels.append)


def text(piece: str, tokens: int = 1, at_ns: int | None = None) -> Text:
    return Text(text=piece, tokens=tokens, at_ns=now_ns() if at_ns is None else at_ns)


def done() -> Done:
    return Done(finish_reason="stop", at_ns=now_ns())


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def push_all(generation: Generation, events: list[Event]) -> None:
    for event in events:
        generation.push(event)


# Reading


def test_a_reader_gets_every_event_in_order(generation: Generation, cancels: Cancels) -> None:
    events: list[Event] = [Loading(progress=0.5), *(text(f"{number} ") for number in range(500))]
    writer = in_thread(lambda: push_all(generation, [*events, done()]))
    *read, last = generation
    writer.join()
    assert read == events
    assert isinstance(last, Done)
    assert generation.over
    assert cancels == []


async def test_a_reader_in_an_event_loop_gets_every_event_in_order(generation: Generation, cancels: Cancels) -> None:
    events: list[Event] = [text(f"{number} ") for number in range(500)]
    writer = in_thread(lambda: push_all(generation, [*events, done()]))
    *read, last = [event async for event in generation]
    writer.join()
    assert read == events
    assert isinstance(last, Done)
    assert cancels == []


def test_events_of_many_threads_all_arrive(generation: Generation) -> None:
    def push(number: int) -> None:
        push_all(generation, [text(f"{number}:{count} ") for count in range(100)])

    def finish() -> None:
        for writer in [in_thread(partial(push, number)) for number in range(5)]:
            writer.join()
        generation.push(done())

    finisher = in_thread(finish)
    words = generation.text().split()
    finisher.join()
    assert len(words) == len(set(words)) == 500
    for number in range(5):
        mine = [word for word in words if word.startswith(f"{number}:")]
        assert mine == [f"{number}:{count}" for count in range(100)]


def test_what_was_pushed_before_anyone_reads_is_not_lost(generation: Generation) -> None:
    push_all(generation, [text("a"), Reasoning(text="hm", tokens=1, at_ns=now_ns()), text("b"), done()])
    assert generation.text() == "ab"


async def test_a_waiting_reader_is_woken_for_each_event(generation: Generation) -> None:
    reader = generation.__aiter__()
    for number in range(3):
        wanted = asyncio.ensure_future(reader.__anext__())
        await asyncio.sleep(0)  # let it begin to wait
        in_thread(partial(generation.push, text(str(number)))).join()
        event = await wanted
        assert isinstance(event, Text)
        assert event.text == str(number)


def test_one_event_loop_after_the_other(generation: Generation, cancels: Cancels) -> None:
    async def read(wanted: type[Event]) -> list[Event]:
        events = []
        async for event in generation:
            events.append(event)
            if isinstance(event, wanted):
                break
        return events

    push_all(generation, [text("a"), Loading(progress=1), text("b")])
    assert [type(event) for event in asyncio.run(read(Loading))] == [Text, Loading]
    assert cancels == [7]  # the first loop's reader left, which ended it
    writer = in_thread(lambda: push_all(generation, [text("c"), done()]))
    assert [type(event) for event in asyncio.run(read(Done))] == [Text, Done]
    writer.join()


def test_a_loop_that_closed_while_its_reader_waited_breaks_no_push(generation: Generation) -> None:
    loop = asyncio.new_event_loop()
    reader = generation.__aiter__()

    async def read() -> Event:
        return await reader.__anext__()

    waiting = loop.create_task(read())
    loop.run_until_complete(asyncio.sleep(0))
    assert not waiting.done()
    loop.close()
    push_all(generation, [text("still"), done()])
    assert generation.text() == "still"


# Leaving and cancelling


def test_leaving_a_loop_cancels_once(generation: Generation, cancels: Cancels) -> None:
    push_all(generation, [text("a"), text("b")])
    for _ in generation:
        break
    assert cancels == [7]


async def test_a_reader_whose_task_is_cancelled_cancels(generation: Generation, cancels: Cancels) -> None:
    async def read() -> None:
        async for _ in generation:
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancels == [7]
    generation.push(text("late"))  # nobody is woken


def test_cancelling_what_is_over_does_nothing(generation: Generation, cancels: Cancels) -> None:
    generation.cancel()
    assert cancels == [7]
    generation.push(done())
    generation.cancel()
    assert cancels == [7]


# Ends


def test_an_error_is_raised_after_the_events_before_it(generation: Generation, cancels: Cancels) -> None:
    generation.push(text("partly"))
    generation.fail(ContextOverflow("Too long.", "Shorten it.", prompt_tokens=9, context=8))
    read: list[Event] = []
    with pytest.raises(ContextOverflow) as caught:
        read.extend(generation)
    assert [type(event) for event in read] == [Text]
    assert (caught.value.message, caught.value.hint) == ("Too long.", "Shorten it.")
    assert (caught.value.prompt_tokens, caught.value.context) == (9, 8)
    assert cancels == []


async def test_an_error_is_raised_in_an_event_loop(generation: Generation) -> None:
    generation.push(text("partly"))
    generation.fail(Fault(kind="WorkerDied", message="It died.", fields={"cause": "SIGKILL"}))
    reader = generation.__aiter__()
    assert isinstance(await reader.__anext__(), Text)
    with pytest.raises(WorkerDied) as caught:
        await reader.__anext__()
    assert caught.value.cause == "SIGKILL"


def test_an_error_of_a_kind_unknown_here_is_still_an_error(generation: Generation) -> None:
    generation.push(Failed(error=Fault(kind="FromTheFuture", message="What?")))
    with pytest.raises(LocalInferError, match="What"):
        generation.text()


def test_nothing_is_taken_after_the_last_event(generation: Generation) -> None:
    push_all(generation, [text("a"), done()])
    before = generation.metrics
    push_all(generation, [text("late"), Done(finish_reason="length", at_ns=now_ns())])
    generation.fail(WorkerDied("Too late."))
    assert generation.text() == "a"
    assert generation.metrics == before


# Figures


def test_done_carries_the_final_figures(generation: Generation) -> None:
    start = now_ns()
    ms = 1_000_000
    generation.loaded(start)
    generation.push(Queued(prompt_tokens=10, ahead=0, at_ns=start))
    generation.push(
        Prefilled(
            prompt_tokens=10,
            cached_tokens=4,
            done_tokens=10,
            admitted_ns=start,
            started_ns=start,
            at_ns=start + 2 * ms,
        )
    )
    generation.push(text("a", at_ns=start + 3 * ms))
    assert generation.metrics.completion_tokens == 1
    assert generation.metrics.finish_reason is None
    generation.push(text("b", tokens=2, at_ns=start + 5 * ms))
    generation.push(done())
    *_, last = generation
    assert isinstance(last, Done)
    assert last.metrics == generation.metrics
    assert last.metrics is not None
    assert last.metrics.completion_tokens == 3
    assert last.metrics.cached_tokens == 4
    assert last.metrics.prefill_tps == pytest.approx(3000)
    assert last.metrics.tps == pytest.approx(1000)
    assert last.metrics.ttft_s is not None
    assert last.metrics.finish_reason == "stop"
