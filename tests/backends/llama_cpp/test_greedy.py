"""Greedy text equals llama.cpp's own: the worker against ``llama-server``, given the same token ids.

Two programs need not round alike. A split is accepted where the two best tokens were within ``TIE`` of each other; what
follows a split is not compared. Prompts are short, because from 64 tokens in one pass on llama.cpp's attention on a CPU
takes a kernel that rounds otherwise, and the worker cuts longer prompts as the time allows.
"""

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backends.llama_cpp.native import NativeModel
from backends.llama_cpp.tokenizer import LlamaTokenizer
from localinfer.engine import WorkerEngine
from localinfer.types import GenerationRequest, Sampling, Text, TokenLogprob
from tests.backends.llama_cpp.driving import chat
from tests.engines import llama

TIE = 0.1  # of a natural log-probability
TOKENS = 64
CONTEXT = 512
KERNEL_CHANGES_AT = 64
THREADS = 1
HOST = "127.0.0.1"
PATIENCE_S = 60

TOOLS = os.environ.get("LOCALINFER_NATIVE_TOOLS")
SERVER = Path(TOOLS or ".") / "llama-server"
pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not TOOLS or not SERVER.exists(), reason="LOCALINFER_NATIVE_TOOLS names no llama-server"),
]

QUESTIONS = (
    "What is the capital of France?",
    "Explain photosynthesis in two sentences.",
    "Write a haiku about autumn.",
    "List the planets of the solar system.",
    "How do I boil an egg?",
    "Why do cats purr?",
    "Translate “good morning” into Spanish, French and German.",
    "Give me three tips for learning to play the guitar.",
    "What is 17 + 25?",
    "Who was Ada Lovelace?",
    "Write a Python function that reverses a string.",
    "Describe a sunset to someone who cannot see.",
    "What is the difference between a frog and a toad?",
    "Tell me a story that begins with a knock on the door.",
    "日本の首都はどこですか。",
)
TEXTS = (
    "The lighthouse stood at the end of a long spit of sand. Every evening the keeper climbed its ninety-eight steps,",
    "Chapter 7. In winter nobody came for weeks, and the only voices were those of the gulls and of the radio. Then",
    "def fibonacci(n):\n    if n < 2:\n        return n\n",
    "Dear Sir or Madam,\n\nI am writing to",
    "| Country | Capital |\n|---|---|\n| Italy | Rome |\n| Spain |",
)


class NativeServer:
    """``llama-server`` with one slot."""

    def __init__(self, port: int) -> None:
        self._port = port

    def healthy(self) -> bool:
        """Whether it takes requests."""
        with closing(http.client.HTTPConnection(HOST, self._port)) as connection:
            try:
                connection.request("GET", "/health")
                return connection.getresponse().status == 200
            except OSError:
                return False

    def greedy(self, prompt: list[int]) -> tuple[str, list[int]]:
        """The answer to a prompt, as text and as tokens, an end-of-generation token included."""
        options = {"n_predict": TOKENS, "temperature": 0, "cache_prompt": False, "return_tokens": True}
        body = json.dumps({"prompt": prompt, **options})
        with closing(http.client.HTTPConnection(HOST, self._port, timeout=PATIENCE_S)) as connection:
            connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            answer = json.load(response)
        return answer["content"], answer["tokens"]


@contextmanager
def native_server(model: Path, log: Path) -> Iterator[NativeServer]:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    size = ["-np", "1", "-c", str(CONTEXT), "-t", str(THREADS), "-tb", str(THREADS)]
    command = [str(SERVER), "-m", str(model), *size, "--host", HOST, "--port", str(port), "--no-webui"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        server = NativeServer(port)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not server.healthy():
                assert process.poll() is None, log.read_text("utf-8", "replace")[-2000:]
                assert time.monotonic() < deadline, "llama-server does not answer"
            yield server
        finally:
            process.kill()
            process.wait()


def ours(engine: WorkerEngine, prompt: list[int]) -> tuple[str, list[TokenLogprob]]:
    request = GenerationRequest(
        token_ids=tuple(prompt), sampling=Sampling(temperature=0, top_logprobs=2), max_tokens=TOKENS
    )
    events = [event for event in engine.submit(request) if isinstance(event, Text)]
    return "".join(event.text for event in events), [step for event in events for step in event.logprobs]


def test_greedy_text_equals_llama_cpp(starter_model: Path, starter: NativeModel, tmp_path: Path) -> None:
    tokenizer = LlamaTokenizer(starter)
    prompts = [chat(tokenizer, question) for question in QUESTIONS]
    prompts += [tokenizer.encode(text, special=False) for text in TEXTS]
    splits = []
    with (
        native_server(starter_model, tmp_path / "llama-server.log") as server,
        llama(starter_model, threads=THREADS, context=CONTEXT) as engine,
    ):
        for number, prompt in enumerate(prompts):
            assert len(prompt) < KERNEL_CHANGES_AT
            text, steps = ours(engine, prompt)
            native_text, tokens = server.greedy(prompt)
            shared = min(len(steps), len(tokens))
            assert shared > 0
            split = next((index for index in range(shared) if steps[index].token_id != tokens[index]), None)
            if split is None:
                assert len(steps) == len(tokens)
                assert text == native_text
                continue
            (_, _, best), (_, _, second) = steps[split].top
            splits.append((number, split, round(best - second, 3)))
            assert best - second < TIE, f"prompt {number} splits at token {split}: {best:.3f} against {second:.3f}"
    print(f"{len(prompts)} prompts, {len(splits)} splits at ties (prompt, token, gap): {splits}")
    assert len(splits) <= 3
