"""Another program's server, asked over a real socket: what is counted, and every bad answer."""

import threading
import time

import pytest

from localinfer.bench.server import KEY, Server
from localinfer.bench.target import Trace
from localinfer.bench.workloads import Prompt
from localinfer.errors import BackendUnavailable, BadRequest, LocalInferError, ModelNotFound, Offline
from localinfer.types import Message
from tests.bench_command.openai_server import OpenAiServer, serving

PROMPT = Prompt(messages=(Message(role="system", content="Be brief."), Message(role="user", content="Why?")))


def answer(**behaviour: object) -> Trace:
    with serving(OpenAiServer(**behaviour)) as served:  # type: ignore[arg-type]
        server = Server(served.url)
        server.subject()
        try:
            return server.answer(PROMPT, 16)
        finally:
            server.close()


def test_what_is_asked_and_what_is_counted() -> None:
    with serving(OpenAiServer()) as served:
        server = Server(served.url)
        assert server.subject().name == "served"
        before = time.perf_counter_ns()
        trace = server.answer(PROMPT, 16)
        server.close()
    (asked,) = served.asked
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("served", 16, 0)
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True}
    assert (trace.prompt_tokens, trace.completion_tokens) == (20, 8)
    assert trace.text == "word " * 8
    assert len(trace.gaps_ms) == 7
    assert all(gap > 1 for gap in trace.gaps_ms)
    assert trace.ttft_s is not None
    assert before <= trace.submitted_ns < trace.ended_ns
    assert trace.tps == pytest.approx(7 / (sum(trace.gaps_ms) / 1e3))


def test_chunks_are_not_tokens() -> None:
    trace = answer(tokens=8, per_chunk=4)
    assert trace.completion_tokens == 8
    assert trace.gaps_ms == ()
    assert trace.tps is not None
    assert trace.ttft_s is not None
    took_s = (trace.ended_ns - trace.submitted_ns) / 1e9 - trace.ttft_s
    assert trace.tps == pytest.approx(4 / took_s)  # the four of the second chunk


@pytest.mark.parametrize("usage", [None, 0, 10_000])
def test_a_count_that_cannot_be_is_not_believed(usage: int | None) -> None:
    trace = answer(usage=usage)
    assert trace.completion_tokens is None
    assert trace.tps is None
    assert trace.gaps_ms == ()
    assert trace.ttft_s is not None


def test_an_answer_without_text() -> None:
    trace = answer(tokens=0, usage=None)
    assert (trace.ttft_s, trace.tps, trace.completion_tokens, trace.text) == (None, None, None, "")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"data: {not json\n\n", "no such server"),
        (b'data: {"choices": 7}\n\n', "no such server"),
        (b'data: {"usage": {"completion_tokens": -1}}\n\n', "no such server"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "no such server"),
        (b'data: {"error": {"message": "out of \\u001b[31mmemory"}}\n\n', "memory"),
        (b"data: " + b"x" * 3_000_000, "does not end"),
    ],
)
def test_answers_that_make_no_sense(raw: bytes, said: str) -> None:
    with pytest.raises(BackendUnavailable, match=said) as caught:
        answer(raw=raw)
    assert "\x1b" not in caught.value.message


def test_lines_that_are_no_events_are_passed_over() -> None:
    assert answer(raw=b": a comment\r\nevent: x\r\n\r\ndata: [DONE]\r\n\r\n").text == ""


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (401, BackendUnavailable, KEY),
        (404, ModelNotFound, "/v1"),
        (302, BackendUnavailable, "elsewhere"),
        (500, BackendUnavailable, "500"),
    ],
)
def test_refusals(status: int, error: type[LocalInferError], said: str) -> None:
    with serving(OpenAiServer(status=status)) as served, pytest.raises(error) as caught:
        Server(served.url).subject()
    assert said in caught.value.message + caught.value.hint


def test_a_server_that_is_not_there_or_lists_nothing() -> None:
    with serving(OpenAiServer(models=())) as served:
        with pytest.raises(ModelNotFound, match="lists no model"):
            Server(served.url).subject()
        assert Server(served.url, "mine").subject().name == "mine"
    with pytest.raises(BackendUnavailable, match="No server"):
        Server(served.url).subject()


def test_a_name_cannot_command_the_terminal() -> None:
    with serving(OpenAiServer(models=("a\x1b[31mb",))) as served:
        assert "\x1b" not in Server(served.url).subject().name


def test_the_key_goes_along_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "sk-secret")
    with serving(OpenAiServer()) as served:
        server = Server(served.url)
        subject = server.subject()
        server.close()
    assert "sk-secret" in {headers.get("authorization", "").removeprefix("Bearer ") for headers in served.headers}
    assert "sk-secret" not in repr(subject)
    assert server.warning == ""
    assert KEY in Server("http://example.org").warning
    monkeypatch.setenv(KEY, "line\nbreak")
    with pytest.raises(BadRequest, match=KEY):
        Server("http://localhost")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("localhost:8080", "http://localhost:8080/v1"),
        ("http://localhost:8080/", "http://localhost:8080/v1"),
        ("https://user:word@host/api/v3/?x=1#y", "https://host/api/v3"),
        ("http://host/v1/chat/completions", "http://host/v1"),
    ],
)
def test_addresses(address: str, url: str) -> None:
    assert Server(address, "m").subject().url == url


@pytest.mark.parametrize(
    "address", ["", "http://", "ftp://host", "http://host:99999", "http://a b", "http://[::1", "\x1b"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(BadRequest, match="no address"):
        Server(address)


def test_offline_allows_this_machine_alone() -> None:
    for address in ("http://example.org", "https://10.0.0.7:8000/v1", "http://localhost.example.org"):
        with pytest.raises(Offline):
            Server(address, offline=True)
    for address in ("http://localhost:1", "http://127.0.0.1:1", "http://127.8.9.1", "http://[::1]:8"):
        Server(address, offline=True)


def test_stop_wakes_who_reads_an_answer_that_has_begun() -> None:
    with serving(OpenAiServer(tokens=100_000, pace_s=0.01)) as served:
        server = Server(served.url, "m")
        caught: list[BaseException] = []

        def ask() -> None:
            try:
                server.answer(PROMPT, 16)
            except LocalInferError as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        served.begun.wait()
        while thread.is_alive():
            server.stop()
            thread.join(0.05)
        server.close()
