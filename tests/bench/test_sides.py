"""Both sides of a comparison do the same work and report it in the same terms."""

import os
from pathlib import Path

import pytest

from localinfer.types import Message
from tests.bench.clients import Job, Side, Trace, generate
from tests.bench.native import llama_server, tool
from tests.bench.ours import worker
from tests.bench.prompts import token_ids

CONTEXT = 512
OUTPUT = 6


def check(side: Side) -> None:
    prompt = token_ids(60, "sides")
    first = generate(side, Job(prompt, OUTPUT))
    assert (first.tokens, first.fresh_tokens) == (OUTPUT, 60)
    assert 0 < len(first.arrivals_ns) <= OUTPUT
    assert first.submitted_ns < first.arrivals_ns[0] <= first.arrivals_ns[-1] <= first.finished_ns
    assert first.prefill_tps > 0
    assert first.decode_tps > 0
    again = generate(side, Job(prompt + token_ids(5, "tail"), OUTPUT))
    assert again.fresh_tokens == 5
    chat = generate(side, Job((Message(role="user", content="Say hello."),), OUTPUT))
    assert chat.tokens == OUTPUT
    assert chat.text
    stopped = Trace()
    stopped.stop = True
    side.generate(Job(prompt, CONTEXT - 100), stopped)
    assert len(stopped.arrivals_ns) == 1


def test_our_side(starter_model: Path) -> None:
    with worker(starter_model, slots=1, context=CONTEXT) as side:
        check(side)


@pytest.mark.native
@pytest.mark.skipif(not os.environ.get("LOCALINFER_NATIVE_TOOLS"), reason="LOCALINFER_NATIVE_TOOLS is not set")
def test_the_other_side(starter_model: Path) -> None:
    with llama_server(starter_model, slots=1, context=CONTEXT) as side:
        check(side)


def test_a_missing_tool_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCALINFER_NATIVE_TOOLS", raising=False)
    with pytest.raises(SystemExit, match=r"build_native_tools\.sh"):
        tool("llama-bench")
