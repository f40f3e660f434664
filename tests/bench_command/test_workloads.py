"""What is asked: the built-in prompts, and every way a file of prompts can be wrong."""

import json
import os
from pathlib import Path

import pytest

from localinfer.bench.texts import BUILT_IN
from localinfer.bench.workloads import MIXED, Prompt, built_in, from_file, interleaved
from localinfer.errors import BadRequest
from localinfer.types import Message


def texts(path: Path) -> list[str]:
    (workload,) = from_file(path)
    return [prompt.messages[-1].content for prompt in workload.prompts]


def test_every_built_in_workload_has_several_prompts_and_they_are_short_enough() -> None:
    assert {workload.name for workload in built_in(MIXED)} == set(BUILT_IN)
    for workload in built_in(MIXED):
        assert len({prompt.messages for prompt in workload.prompts}) >= 4
        assert all(len(prompt.messages[0].content.encode()) < 1400 for prompt in workload.prompts)
    assert [workload.name for workload in built_in("code")] == ["code"]
    with pytest.raises(BadRequest, match="no workload"):
        built_in("poems")


def test_the_mix_takes_one_of_each_in_turn() -> None:
    mixed = interleaved(built_in(MIXED))
    assert [prompt.origin for prompt in mixed[:5]] == [
        *(f"the {kind} workload" for kind in BUILT_IN),
        "the chat workload",
    ]
    assert len(mixed) == sum(map(len, BUILT_IN.values()))


def test_a_mark_comes_before_the_first_message_only() -> None:
    prompt = Prompt(messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hi")))
    marked = prompt.marked("abc")
    assert marked.messages[0].content.startswith("[abc]")
    assert marked.messages[1] == prompt.messages[1]
    assert marked.marked("d") != marked


def test_a_prompt_per_line(tmp_path: Path) -> None:
    file = tmp_path / "prompts.txt"
    file.write_bytes("\ufeffWhy?\r\n\n  Wherefore\u2028art thou?  \n".encode())
    assert texts(file) == ["Why?", "Wherefore\u2028art thou?"]


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why\u2028so?", "name": "x"}]
    lines = [{"prompt": "One\ntwo", "id": 7}, {"messages": talk}]
    file.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
    (workload,) = from_file(file)
    assert [len(prompt.messages) for prompt in workload.prompts] == [1, 2]
    assert texts(file) == ["One\ntwo", "Why\u2028so?"]
    assert workload.prompts[1].origin == "line 2 of prompts.jsonl"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no prompt"),
        (b"\n \n", "no prompt"),
        (b"abc\0def", "binary"),
        (b"abc\xff", "UTF-8"),
        (b'{"prompt": "x"}\n{"prompt": ', "line 2"),
        (b'{"prompt": "x"}\nplain', "line 2"),
        (b'{"prompt": 3}', "line 1"),
        (b"{}", "either"),
        (b'{"prompt": "x", "messages": []}', "either"),
        (b'{"messages": []}', "last message"),
        (b'{"prompt": " "}', "last message"),
        (b'{"messages": [{"role": "assistant", "content": "x"}]}', "last message"),
        (b'{"messages": [{"role": "robot", "content": "x"}]}', "robot"),
        (b'{"prompt":' + b"[" * 100_000, "line 1"),
    ],
)
def test_a_file_that_is_wrong_says_where(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "prompts"
    file.write_bytes(content)
    with pytest.raises(BadRequest) as caught:
        from_file(file)
    assert said in caught.value.message + caught.value.hint
    assert caught.value.hint


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(BadRequest, match="cannot be read"):
            from_file(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(BadRequest, match="cannot be read"):
            from_file(tmp_path / "pipe")


def test_a_name_cannot_command_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "a\x1b[31mb"
    file.write_bytes(b"")
    with pytest.raises(BadRequest) as caught:
        from_file(file)
    assert "\x1b" not in caught.value.message
