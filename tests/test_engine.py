"""The engine with a real worker process: events, figures, cancelling, and everything a worker can do wrong."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading

import psutil
import pytest

from localinfer.engine import CRASH_LIMIT
from localinfer.errors import BadRequest, ContextOverflow, ModelFileInvalid, OutOfMemory, WorkerDied
from localinfer.types import Done, GenerationRequest, Loading, Prefilled, Queued, Reasoning, Sampling, Text
from tests.engines import ask, has_text, scripted, until, worker_process


def test_events_come_in_order_and_carry_the_answer() -> None:
    with scripted("text=one%20two%20three") as engine:
        events = list(engine.submit(ask()))
    kinds = [type(event) for event in events if not isinstance(event, Loading)]
    assert kinds[0] is Queued
    assert kinds[1] is Prefilled
    assert kinds[-1] is Done
    assert "".join(event.text for event in events if isinstance(event, Text)) == "one two three"


def test_what_a_long_first_step_does_is_prefill_and_not_queue() -> None:
    with scripted("text=hello&prefill_s=0.005&chunk=100") as engine:
        engine.load()
        generation = engine.submit(ask("word " * 100))
        seen = []
        for event in generation:
            if isinstance(event, Prefilled):
                seen.append((event.done_tokens, generation.active().state, generation.metrics.queue_s))
        assert [(done, state) for done, state, _ in seen[:1]] == [(0, "prefill")]
        assert len(seen) > 1
        assert {queue_s for *_, queue_s in seen} == {generation.metrics.queue_s}, "the final figure is the live one"
        assert (generation.metrics.prefill_s or 0) > 0.5 > (generation.metrics.queue_s or 0)


def test_ttft_is_the_sum_of_its_parts() -> None:
    with scripted("text=hello&prefill_s=0.0005&load_s=0.1&pace_s=0.002") as engine:
        generation = engine.submit(ask("word " * 40))
        generation.text()
        metrics = generation.metrics
        parts = (metrics.queue_s, metrics.load_s, metrics.cached_prefill_s, metrics.prefill_s, metrics.first_decode_s)
        assert sum(part for part in parts if part is not None) == pytest.approx(metrics.ttft_s, abs=1e-6)
        assert None not in parts
        assert metrics.load_s is not None
        assert metrics.load_s >= 0.1
        assert metrics.prompt_tokens is not None
        assert metrics.prefill_s is not None
        assert metrics.prefill_s >= 0.0005 * metrics.prompt_tokens
        warm = engine.submit(ask("word " * 40))
        warm.text()
        assert warm.metrics.load_s == 0
        assert warm.metrics.cached_tokens == metrics.prompt_tokens - 1


def test_completion_tokens_are_tokens_and_the_limit_holds() -> None:
    with scripted("text=abcdefgh") as engine:
        generation = engine.submit(ask(max_tokens=5))
        assert generation.text() == "abcde"
        assert generation.metrics.completion_tokens == 5
        assert generation.metrics.finish_reason == "length"


def test_drafts_are_counted() -> None:
    with scripted("text=abcdefghijklmnop&draft=3&acceptance=1") as engine:
        generation = engine.submit(ask())
        generation.text()
        metrics = generation.metrics
        assert metrics.drafts > 0
        assert metrics.acceptance_rate is not None
        assert 0 < metrics.acceptance_rate <= 1
        assert metrics.accepted <= metrics.drafted


def test_reasoning_is_split_from_the_answer() -> None:
    with scripted("text=four&think=two%20and%20two") as engine:
        events = list(engine.submit(ask()))
    assert "".join(event.text for event in events if isinstance(event, Reasoning)).strip() == "two and two"
    assert "".join(event.text for event in events if isinstance(event, Text)) == "four"


def test_a_stop_string_ends_the_answer_and_never_appears() -> None:
    with scripted("text=one%20two%20three") as engine:
        generation = engine.submit(ask(stop=("two",)))
        assert generation.text() == "one "
        assert generation.metrics.finish_reason == "stop"
        assert engine.submit(ask()).text() == "one two three"


def test_many_at_once_do_not_mix() -> None:
    with scripted("pace_s=0.0005", slots=3) as engine:
        generations = [
            engine.submit(ask(f"question {index}", sampling=Sampling(temperature=1, seed=index), max_tokens=60))
            for index in range(8)
        ]
        together = [generation.text() for generation in generations]
        alone = [
            engine.submit(ask("other", sampling=Sampling(temperature=1, seed=index), max_tokens=60)).text()
            for index in range(8)
        ]
    assert together == alone
    assert len(set(together)) == 8


async def test_async_iteration_and_live_metrics() -> None:
    with scripted("pace_s=0.001") as engine:
        generation = engine.submit(ask(max_tokens=40))
        seen = 0
        async for event in generation:
            if isinstance(event, Text):
                seen += event.tokens
                assert generation.metrics.completion_tokens >= seen
            if isinstance(event, Done):
                assert event.metrics is not None
                assert event.metrics.completion_tokens == seen == 40


def test_iteration_from_a_loop_in_another_thread() -> None:
    with scripted("text=hello") as engine:
        generation = engine.submit(ask())
        out: list[str] = []

        async def read() -> None:
            async for event in generation:
                if isinstance(event, Text):
                    out.append(event.text)

        thread = threading.Thread(target=lambda: asyncio.run(read()))
        thread.start()
        thread.join(30)
        assert "".join(out) == "hello"


def test_cancel_ends_with_done_and_frees_the_slot() -> None:
    with scripted("pace_s=0.001") as engine:
        generation = engine.submit(ask(ignore_eos=True))
        until(generation, has_text)
        generation.cancel()
        _, last = until(generation, lambda event: isinstance(event, Done))
        assert isinstance(last, Done)
        assert last.finish_reason == "cancelled"
        assert engine.submit(ask(max_tokens=3)).text()
        assert engine.status().running == 0


def test_leaving_the_loop_cancels() -> None:
    with scripted("pace_s=0.001") as engine:
        for event in engine.submit(ask(ignore_eos=True)):
            if has_text(event):
                break
        follower = engine.submit(ask(max_tokens=3))  # the only slot must have become free
        follower.text()
        assert follower.metrics.completion_tokens == 3


async def test_leaving_an_async_loop_cancels() -> None:
    with scripted("pace_s=0.001") as engine:
        async for event in engine.submit(ask(ignore_eos=True)):
            if has_text(event):
                break
        async for event in engine.submit(ask(max_tokens=3)):
            if isinstance(event, Done):
                assert event.finish_reason == "length"


def test_cancel_before_it_starts() -> None:
    with scripted("pace_s=0.001&load_s=0.2") as engine:
        generation = engine.submit(ask(ignore_eos=True))
        generation.cancel()
        _, last = until(generation, lambda event: isinstance(event, Done))
        assert isinstance(last, Done)
        assert last.finish_reason == "cancelled"


def test_a_prompt_that_does_not_fit_names_both_counts() -> None:
    with scripted("text=x", context=64) as engine:
        with pytest.raises(ContextOverflow) as caught:
            engine.submit(ask("long " * 100)).text()
        assert caught.value.context == 64
        assert caught.value.prompt_tokens is not None
        assert caught.value.prompt_tokens > 500
        assert engine.submit(ask("short", max_tokens=1)).text()


def test_the_end_of_the_context_finishes_with_length() -> None:
    with scripted("context=80") as engine:
        generation = engine.submit(ask("hi", ignore_eos=True))
        generation.text()
        assert generation.metrics.finish_reason == "length"
        assert generation.metrics.prompt_tokens is not None
        assert generation.metrics.completion_tokens <= 80 - generation.metrics.prompt_tokens + 1


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=-1),
        Sampling(temperature=float("nan")),
        Sampling(temperature=float("inf")),
        Sampling(top_p=0),
        Sampling(top_p=1.5),
        Sampling(top_k=-3),
        Sampling(min_p=float("nan")),
        Sampling(typical_p=-0.1),
        Sampling(repeat_penalty=0),
        Sampling(presence_penalty=float("nan")),
        Sampling(dry_multiplier=-1),
        Sampling(xtc_probability=2),
        Sampling(mirostat=3),
        Sampling(seed=-1),
        Sampling(top_logprobs=-1),
        Sampling(logit_bias={1: float("nan")}),
    ],
)
def test_sampling_values_out_of_range_are_refused(sampling: Sampling) -> None:
    with scripted() as engine, pytest.raises(BadRequest) as caught:
        engine.submit(ask(sampling=sampling))
    assert caught.value.param in sampling.__struct_fields__


@pytest.mark.parametrize(
    "request_",
    [
        GenerationRequest(),
        ask(max_tokens=0),
        ask(max_tokens=2**31),
        ask("x\udcff"),
        ask(stop=("\ud800",)),
        ask("x" * 16_000_001),
        ask(stop=("",)),
        ask(prompt="both"),
        GenerationRequest(prompt=""),
        GenerationRequest(token_ids=(10**6,)),
        GenerationRequest(token_ids=(-1,)),
        ask(sampling=Sampling(temperature=0, logit_bias={10**6: 1.0})),
    ],
)
def test_requests_nobody_could_carry_out_are_refused(request_: GenerationRequest) -> None:
    with scripted() as engine:
        with pytest.raises(BadRequest):
            engine.submit(request_).text()
        assert engine.submit(ask(max_tokens=1)).text()


# Workers that die


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_a_killed_worker_ends_its_generation_and_the_next_request_answers(number: signal.Signals) -> None:
    with scripted("pace_s=0.001") as engine:
        generation = engine.submit(ask(ignore_eos=True))
        until(generation, has_text)
        os.kill(worker_process(engine).pid, number)
        with pytest.raises(WorkerDied) as caught:
            generation.text()
        assert signal.Signals(number).name in str(caught.value.cause)
        assert engine.submit(ask(max_tokens=3)).text()


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_kills_in_a_row_leak_nothing() -> None:
    _kill_many(10)


@pytest.mark.soak
@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_200_kills_in_a_row_leak_nothing() -> None:
    _kill_many(200)


def _kill_many(times: int) -> None:
    me = psutil.Process()
    with scripted("pace_s=0.001") as engine:
        descriptors = threads = 0
        for round_ in range(times):
            generation = engine.submit(ask(ignore_eos=True))
            until(generation, has_text)
            worker_process(engine).kill()
            with pytest.raises(WorkerDied):
                generation.text()
            if round_ == 2:
                descriptors, threads = me.num_fds(), threading.active_count()
        assert engine.submit(ask(max_tokens=3)).text()
        engine.close()
        assert me.num_fds() <= descriptors
        assert threading.active_count() <= threads
        assert not [child for child in me.children() if child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_a_worker_killed_while_idle_is_replaced_unnoticed() -> None:
    with scripted("text=hello") as engine:
        assert engine.submit(ask()).text() == "hello"
        worker_process(engine).kill()
        assert engine.submit(ask()).text() == "hello"


def test_an_abort_names_its_cause() -> None:
    with scripted("die_after=3") as engine, pytest.raises(WorkerDied) as caught:
        engine.submit(ask()).text()
    assert caught.value.cause


def test_running_out_of_memory_is_told_apart() -> None:
    with scripted("oom_after=3") as engine:
        with pytest.raises(OutOfMemory):
            engine.submit(ask()).text()
        assert engine.status().state in ("failed", "idle")


def test_a_model_that_cannot_be_loaded_says_why_each_time() -> None:
    with scripted("fail_load=ModelFileInvalid") as engine:
        for _ in range(CRASH_LIMIT - 1):
            with pytest.raises(ModelFileInvalid):
                engine.submit(ask()).text()
        with pytest.raises(ModelFileInvalid):
            engine.load()


def test_a_crash_loop_is_detected() -> None:
    with scripted("die_after=0") as engine:
        for _ in range(CRASH_LIMIT):
            with pytest.raises(WorkerDied):
                engine.submit(ask()).text()
        with pytest.raises(WorkerDied, match="times in a row"):
            engine.submit(ask()).text()
        assert engine.status().pid is None


def test_closing_ends_running_generations_and_the_process() -> None:
    engine = scripted("pace_s=0.001")
    generation = engine.submit(ask(ignore_eos=True))
    until(generation, has_text)
    process = worker_process(engine)
    engine.close()
    with pytest.raises(WorkerDied):
        generation.text()
    assert not process.is_running()
    with pytest.raises(WorkerDied):
        engine.submit(ask()).text()


def test_a_hanging_worker_can_be_closed() -> None:
    engine = scripted("hang_after=2")
    generation = engine.submit(ask())
    until(generation, has_text)
    process = worker_process(engine)
    engine.close()
    assert not process.is_running()


ORPHAN = """
    import os, signal
    from tests.engines import ask, has_text, scripted, until
    engine = scripted({script!r})
    until(engine.submit(ask(ignore_eos=True)), has_text)
    print(engine.status().pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
@pytest.mark.parametrize("script", ["pace_s=0.001", "hang_after=2"])
def test_a_worker_whose_application_vanished_exits_within_two_seconds(script: str) -> None:
    code = textwrap.dedent(ORPHAN.format(script=script))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as application:
        assert application.stdout is not None
        pid = int(application.stdout.readline())
        application.wait(30)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(2)


def test_frames_that_are_not_ours_end_the_worker_cleanly() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    for garbage in (b"", b"\x00", b"\xff\xff\xff\xff", b"\x04\x00\x00\x00\xc1\xc1\xc1\xc1"):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "localinfer.worker"],
            input=garbage,
            capture_output=True,
            timeout=30,
            env=environment,
            check=False,
        )
        assert done.stdout == b""
