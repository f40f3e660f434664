"""Decoding from several threads at once, and that nothing decodes into structs another way."""

import ast
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from localinfer import decoding

ROOT = Path(__file__).parent.parent
RACE = """
import sys, threading
from typing import Annotated, Optional
import msgspec
from localinfer import decoding

sys.setswitchinterval(1e-6)
for round in range(150):
    inner = None
    for depth in range(10):
        fields = [("a", Annotated[int, msgspec.Meta(ge=0)]), ("b", Optional[inner] if inner else int, None)]
        inner = msgspec.defstruct(f"S{round}_{depth}", fields, frozen=True)
    barrier = threading.Barrier(4)
    found = []

    def run():
        barrier.wait()
        found.append(decoding.json(b'{"a": 1, "b": {"a": 2}}', inner).b.a)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2, 2, 2, 2], found
print("survived")
"""


class Point(msgspec.Struct, frozen=True):
    x: int


def test_threads_may_learn_a_type_at_the_same_moment() -> None:
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr[-500:]


def test_each_form_decodes_and_refuses() -> None:
    assert decoding.json(b'{"x": 1}', Point) == Point(1)
    assert decoding.convert({"x": "1"}, Point, strict=False) == Point(1)
    assert decoding.msgpack(Point).decode(msgspec.msgpack.encode(Point(3))) == Point(3)
    for bad in (b'{"x": "a"}', b"{", b"[]"):
        with pytest.raises(ValueError, match=r"."):
            decoding.json(bad, Point)


def test_nothing_else_decodes_into_structs() -> None:
    """``msgspec.json.decode`` without a type, or into plain containers, learns nothing and is no danger."""
    plain = ("dict[str, object]", "dict[str, msgspec.Raw]", "str")
    for folder in ("localinfer", "backends", "tui"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name == "decoding.py":
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                called = ast.unparse(node.func)
                typed = [ast.unparse(word.value) for word in node.keywords if word.arg == "type"]
                assert not called.endswith((".Decoder", "msgspec.convert")), f"{path}:{node.lineno}: use decoding"
                if called in ("msgspec.json.decode", "msgspec.msgpack.decode"):
                    assert all(kind in plain for kind in typed), f"{path}:{node.lineno}: use decoding"
