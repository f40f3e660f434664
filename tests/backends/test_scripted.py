"""The scripted backend keeps the seam's promises: what is said never depends on who else is running or on drafts."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

import backends
from backends.base import (
    Admitted,
    Backend,
    Finished,
    Load,
    PrefillAdvanced,
    PrefillStarted,
    Sampled,
    SequenceJob,
    StepEvent,
    Tokenizer,
)
from backends.scripted import ByteTokenizer, Script, ScriptedBackend
from localinfer.errors import ModelFileInvalid, OutOfMemory
from localinfer.types import LoadOptions, Sampling

GREEDY = Sampling(temperature=0)
TOKENIZER = ByteTokenizer()
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
prompts = st.lists(st.integers(0, 3), min_size=1, max_size=30)


def scripted(script: Script, slots: int = 1) -> ScriptedBackend:
    return ScriptedBackend(script, LoadOptions(backend="scripted", model="", name="script", slots=slots))


def job(number: int, tokens: Sequence[int] = (1,), sampling: Sampling = GREEDY, **limits: int | bool) -> SequenceJob:
    return msgspec.convert(
        {"id": number, "tokens": tokens, "sampling": msgspec.to_builtins(sampling), **limits}, SequenceJob
    )


def passes(backend: Backend, jobs: Iterable[SequenceJob]) -> list[list[StepEvent]]:
    """The events of every pass until there is nothing left to do."""
    for each in jobs:
        backend.submit(each)
    steps = []
    while events := backend.step():
        steps.append(events)
    return steps


def play(backend: Backend, *jobs: SequenceJob) -> list[StepEvent]:
    return [event for events in passes(backend, jobs) for event in events]


def sampled(events: Iterable[StepEvent], number: int) -> list[int]:
    return [token for event in events if isinstance(event, Sampled) and event.id == number for token in event.tokens]


def said(events: Iterable[StepEvent], number: int) -> str:
    return b"".join(map(TOKENIZER.piece, sampled(events, number))).decode()


def finish(events: Iterable[StepEvent], number: int) -> list[str]:
    return [event.reason for event in events if isinstance(event, Finished) and event.id == number]


@given(
    texts,
    texts,
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(0, 5),
    st.floats(0, 1),
    st.lists(prompts, min_size=1),
)
def test_greedy_says_the_script_whatever_else_happens(
    text: str, think: str, slots: int, chunk: int, draft: int, acceptance: float, many: list[list[int]]
) -> None:
    script = Script(text=text, think=think, chunk=chunk, draft=draft, acceptance=acceptance)
    events = play(scripted(script, slots), *(job(number, prompt) for number, prompt in enumerate(many)))
    for number in range(len(many)):
        assert said(events, number) == f"<think>\n{think}\n</think>\n\n{text}"
        assert sampled(events, number)[-1] == TOKENIZER.end
        assert finish(events, number) == ["stop"]


@given(texts, st.lists(st.integers(0, 2**40), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 4))
def test_a_seed_gives_the_same_text_alone_and_in_a_batch(text: str, seeds: list[int], slots: int, draft: int) -> None:
    alone = [
        said(play(scripted(Script(text=text)), job(0, sampling=Sampling(temperature=0.7, seed=seed))), 0)
        for seed in seeds
    ]
    batch = play(
        scripted(Script(text=text, draft=draft, acceptance=0.5), slots),
        *(job(number, [2] * (number + 1), Sampling(temperature=0.7, seed=seed)) for number, seed in enumerate(seeds)),
    )
    assert [said(batch, number) for number in range(len(seeds))] == alone


def test_above_temperature_zero_the_words_are_of_the_script_and_the_seed_matters() -> None:
    script = Script(text="one two three four five six seven eight")
    backend = scripted(script)
    replies = {said(play(backend, job(seed, sampling=Sampling(temperature=1, seed=seed))), seed) for seed in range(10)}
    assert len(replies) == 10
    assert {word for reply in replies for word in reply.split()} <= set(script.text.split())
    unseeded = {said(play(backend, job(number, sampling=Sampling(temperature=1))), number) for number in range(4)}
    assert len(unseeded) > 1


@given(prompts, st.integers(1, 9))
def test_prefill_comes_in_chunks_and_adds_up(prompt: list[int], chunk: int) -> None:
    steps = passes(scripted(Script(text="x", chunk=chunk)), [job(0, prompt)])
    assert steps[0] == [Admitted(0), PrefillStarted(0, 0)], "what begins is told before the first pass"
    done = [event.done for events in steps for event in events if isinstance(event, PrefillAdvanced)]
    assert done == [*range(chunk, len(prompt), chunk), len(prompt)]
    first_text = next(index for index, events in enumerate(steps) if any(isinstance(e, Sampled) for e in events))
    assert first_text == len(done), "the pass that ends the prefill yields the first token"


@given(st.lists(prompts, min_size=1, max_size=6), st.integers(1, 3), st.integers(1, 5))
def test_first_come_first_served_and_one_prefill_a_pass(many: list[list[int]], slots: int, chunk: int) -> None:
    backend = scripted(Script(text="some words", chunk=chunk), slots)
    running: set[int] = set()
    admitted = []
    for events in passes(backend, [job(number, prompt) for number, prompt in enumerate(many)]):
        assert sum(isinstance(event, PrefillAdvanced) for event in events) <= 1
        for event in events:
            if isinstance(event, Admitted):
                admitted.append(event.id)
                running.add(event.id)
            assert event.id in running
            assert len(running) <= slots
            if isinstance(event, Finished):
                running.remove(event.id)
    assert admitted == list(range(len(many)))
    assert not running


def test_others_go_on_decoding_while_a_prompt_is_read() -> None:
    backend = scripted(Script(text="a long enough answer", chunk=1), slots=2)
    backend.submit(job(0, [7]))
    assert sampled(backend.step() + backend.step(), 0)
    backend.submit(job(1, [8] * 5))
    assert backend.step() == [Admitted(1), PrefillStarted(1, 0)]
    for _ in range(4):
        events = backend.step()
        assert {type(event) for event in events if event.id == 1} >= {PrefillAdvanced}
        assert [len(event.tokens) for event in events if isinstance(event, Sampled)] == [1]


@given(prompts, prompts)
def test_a_prompt_reuses_what_it_shares_with_an_earlier_one(first: list[int], second: list[int]) -> None:
    backend = scripted(Script(text="ok", chunk=4))
    play(backend, job(0, first))
    events = play(backend, job(1, second))
    held = first + list(b"ok")
    shared = max(n for n in range(len(second)) if held[:n] == second[:n])
    assert PrefillStarted(1, shared) in events
    assert [e.done for e in events if isinstance(e, PrefillAdvanced)] == [
        *range(shared + 4, len(second), 4),
        len(second),
    ]


def test_a_conversation_keeps_its_slot_while_another_comes_and_goes() -> None:
    backend = scripted(Script(text="ok"), slots=2)
    one, other = [1] * 20, [1] * 3 + [2] * 20
    play(backend, job(0, one))
    play(backend, job(1, other))
    for number, prompt in enumerate((one, other, one, other), start=2):
        longer = [*prompt, *b"ok", 3]
        assert PrefillStarted(number, len(longer) - 1) in play(backend, job(number, longer))


@given(st.integers(0, 40), st.integers(0, 5), st.floats(0, 1), st.booleans())
def test_max_tokens_is_the_last_word(limit: int, draft: int, acceptance: float, ignore_eos: bool) -> None:
    script = Script(text="0123456789", draft=draft, acceptance=acceptance)
    events = play(scripted(script), job(0, max_tokens=limit, ignore_eos=ignore_eos))
    ends = limit > 10 and not ignore_eos
    assert len(sampled(events, 0)) == (11 if ends else limit)
    assert finish(events, 0) == ["stop" if ends else "length"]


@given(st.integers(2, 50), st.integers(1, 49))
def test_the_end_of_the_context_ends_the_text(context: int, prompt: int) -> None:
    prompt = min(prompt, context - 1)
    events = play(scripted(Script(text="abc", context=context)), job(0, [1] * prompt, ignore_eos=True))
    assert said(events, 0) == ("abc" * context)[: context - prompt]
    assert finish(events, 0) == ["length"]


@pytest.mark.parametrize("acceptance", [0, 0.3, 0.8, 1])
@pytest.mark.parametrize("draft", [1, 5])
def test_drafts_save_passes_at_the_rate_of_acceptance(acceptance: float, draft: int) -> None:
    script = Script(text="z" * 4000, draft=draft, acceptance=acceptance)
    events = [event for event in play(scripted(script), job(0, max_tokens=3000)) if isinstance(event, Sampled)]
    assert all(len(event.tokens) == 1 + event.accepted and event.accepted <= event.drafted <= draft for event in events)
    tokens_per_pass = sum(acceptance**k for k in range(draft + 1))
    assert 2999 / (len(events) - 1) == pytest.approx(tokens_per_pass, rel=0.08)
    assert [event for event in play(scripted(script), job(0, max_tokens=3000)) if isinstance(event, Sampled)] == events


def test_cancelled_work_leaves_no_trace_and_frees_its_slot() -> None:
    backend = scripted(Script(text="hello"))
    for number in range(3):
        backend.submit(job(number))
    backend.step()
    assert backend.load() == Load(running=1, queued=2, threads=None)
    for number in (0, 1, 99):
        backend.cancel(number)
    assert backend.load() == Load(running=0, queued=1, threads=None)
    events = play(backend)
    assert {event.id for event in events} == {2}
    assert said(events, 2) == "hello"
    assert backend.load() == Load(running=0, queued=0, threads=None)


def test_a_prefill_cancelled_halfway_does_not_hold_up_the_next() -> None:
    backend = scripted(Script(text="hello", chunk=2), slots=2)
    backend.submit(job(0, [5] * 9))
    backend.submit(job(1, [6]))
    backend.step()
    backend.cancel(0)
    assert said(play(backend), 1) == "hello"


def test_nothing_happens_when_idle_or_closed() -> None:
    backend = scripted(Script())
    assert backend.step() == []
    backend.submit(job(0))
    backend.close()
    assert backend.step() == []


@given(st.integers(0, 300))
def test_logprobs_are_one_per_token_and_ordered(top: int) -> None:
    script = Script(text="abcdef", draft=3, acceptance=0.7)
    events = play(scripted(script), job(0, sampling=Sampling(temperature=0, top_logprobs=top)))
    for event in events:
        if isinstance(event, Sampled):
            assert len(event.logprobs) == len(event.tokens)
            for token, logprob in zip(event.tokens, event.logprobs, strict=True):
                assert len(logprob.top) == min(top, TOKENIZER.size)
                assert [value for _, value in logprob.top] == sorted((v for _, v in logprob.top), reverse=True)
                assert not logprob.top or logprob.top[0] == (token, logprob.value)
                assert sum(math.exp(value) for _, value in logprob.top) < 1.0001
    assert not any(isinstance(e, Sampled) and e.logprobs for e in play(scripted(script), job(0)))


@given(st.text(st.characters(codec="utf-8")))
def test_the_tokenizer_is_lossless(text: str) -> None:
    tokenizer: Tokenizer = TOKENIZER
    assert b"".join(map(tokenizer.piece, tokenizer.encode(text, special=False))).decode() == text
    spelled = tokenizer.encode(f"<|im_start|>{text}<|im_end|>", special=True)
    assert (spelled[0], spelled[-1]) == (TOKENIZER.start, TOKENIZER.end)
    assert spelled[1:-1] == tokenizer.encode(text, special=True)


def test_control_tokens_have_spellings_and_no_bytes() -> None:
    for text in TOKENIZER.control_texts():
        (token,) = TOKENIZER.encode(text, special=True)
        assert TOKENIZER.text(token) == text
        assert TOKENIZER.piece(token) == b""
        assert TOKENIZER.is_end(token) == (text == "<|im_end|>")
        assert len(TOKENIZER.encode(text, special=False)) == len(text)
    assert not any(TOKENIZER.is_end(token) for token in range(256))


def test_the_chat_template_is_chatml() -> None:
    assert TOKENIZER.chat_template is not None
    template = ImmutableSandboxedEnvironment().from_string(TOKENIZER.chat_template)
    rendered = template.render(messages=[{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    assert rendered == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


def load(query: str, progress: list[float] | None = None, **options: int) -> Backend:
    seen = [] if progress is None else progress
    return backends.load(LoadOptions(backend="scripted", model=query, name="demo", **options), seen.append)  # type: ignore[arg-type]


def test_the_registry_loads_it_and_progress_rises_to_one() -> None:
    progress: list[float] = []
    backend = load("text=Hello%20world", progress, context=99, slots=3)
    assert progress == sorted(progress)
    assert (progress[0], progress[-1]) == (0, 1)
    assert (backend.info.name, backend.info.backend, backend.info.context, backend.info.slots) == (
        "demo",
        "scripted",
        99,
        3,
    )
    assert said(play(backend, job(0)), 0) == "Hello world"
    assert load("context=50&slots=2", context=99, slots=3).info.context == 50


def test_loading_fails_as_the_script_says() -> None:
    with pytest.raises(ModelFileInvalid):
        load("fail_load=ModelFileInvalid")


def test_costs_are_spent() -> None:
    begun = time.perf_counter()
    backend = load("load_s=0.02&text=abc&pace_s=0.01&prefill_s=0.001")
    assert time.perf_counter() - begun >= 0.02
    begun = time.perf_counter()
    play(backend, job(0, [1] * 30))
    assert time.perf_counter() - begun >= 30 * 0.001 + 3 * 0.01


def test_memory_runs_out_when_the_script_says() -> None:
    backend = load("oom_after=4&text=hello%20world")
    backend.submit(job(0))
    text = [event for _ in range(5) for event in backend.step()]
    assert len(sampled(text, 0)) == 4
    with pytest.raises(OutOfMemory):
        backend.step()


STEPPER = """
import sys
from backends.base import SequenceJob
from backends.scripted import load
from localinfer.types import LoadOptions, Sampling
backend = load(LoadOptions(backend="scripted", model=sys.argv[1], name="script"), lambda progress: None)
backend.submit(SequenceJob(id=0, tokens=[1], sampling=Sampling(temperature=0)))
assert backend.step()  # it begins
while backend.step():
    print("pass", flush=True)
"""


def stepping(query: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", STEPPER, query], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_process_dies_when_the_script_says() -> None:
    with stepping("die_after=3&text=hello") as child:
        out, log = child.communicate()
    assert out.split() == ["pass"] * 3
    assert "aborting after 3 tokens" in log
    assert child.returncode == -signal.SIGABRT if os.name == "posix" else child.returncode != 0


def test_the_process_hangs_when_the_script_says() -> None:
    with stepping("hang_after=2&text=hello") as child:
        assert child.stdout is not None
        assert [child.stdout.readline().strip() for _ in range(2)] == ["pass", "pass"]
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.3)
        child.kill()
        assert child.stdout.read() == ""


def test_a_random_schedule_of_arrivals_and_cancellations_changes_no_text() -> None:
    chance = random.Random(5)
    backend = scripted(Script(text="The quick brown fox jumps.", chunk=3, draft=2, acceptance=0.6), slots=3)
    events: list[StepEvent] = []
    cancelled = set()
    for number in range(200):
        backend.submit(job(number, [chance.randrange(3) for _ in range(chance.randint(1, 12))]))
        if chance.random() < 0.3:
            cancelled.add(victim := chance.randint(max(0, number - 5), number))
            backend.cancel(victim)
        for _ in range(chance.randint(0, 6)):
            events += backend.step()
    events += play(backend)
    for number in range(200):
        text = said(events, number)
        assert "The quick brown fox jumps.".startswith(text)
        assert number in cancelled or finish(events, number) == ["stop"]
