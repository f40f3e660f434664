"""Whatever a model writes takes bounded time and loads nothing early. Bounds are several times what was measured."""

import gc
import subprocess
import sys
import time

import pytest

from tui.text.markdown import Look, MarkdownText, warm

LOOK = Look()


def cpu_s(source: str, piece: int | None = None) -> float:
    """Processor seconds to draw ``source``, at once or in pieces; without those of a garbage collection, which has all
    that other tests have left to look through."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        growing = MarkdownText("" if piece else source, whole=not piece)
        for offset in range(0, len(source) if piece else 0, piece or 1):
            growing.append(source[offset : offset + (piece or 0)])
            growing.lines(100, LOOK)
        assert len(growing.lines(100, LOOK)) > 0
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "source",
    [
        ">" * 10_000,
        "[" * 10_000,
        "![" * 10_000,
        "- " * 10_000 + "x",
        "1. " * 10_000 + "x",
        "**a *" * 20_000,
        "a*b_c~d[" * 12_000,
        "[a](" * 25_000,
        "\\(a " * 25_000,
        "$a " * 30_000,
        "`" * 50_000 + "x",
        "word and more " * 7_000,
        "x" * 100_000,
        " " * 100_000 + "x",
        "\t" * 100_000 + "x",
        "日本語" * 10_000,
        "👩\u200d👩\u200d👧" * 10_000,
        "e" + "\u0301" * 100_000,
        "```json\n" + '{"a": 1}, ' * 10_000,
        "```perl\n" + "s/((((" * 10_000,
        "|" + "a|" * 5_000 + "\n|" + "-|" * 5_000 + "\n",
    ],
    ids=lambda source: f"{len(source)} of {source[:8]!r}",
)
def test_a_hostile_line(source: str) -> None:
    warm()
    assert cpu_s(source) < 2.0


@pytest.mark.parametrize("line", ["short\n", "- item\n", "> q\n", "x\n\n", "# h\n", "|a|b|\n|-|-|\n", "```\n"])
def test_twice_as_many_lines_take_twice_as_long(line: str) -> None:
    warm()
    few, many = cpu_s(line * 2_000), cpu_s(line * 8_000)
    assert many < 12 * few + 0.2


def test_a_line_that_never_ends_is_not_drawn_from_its_start() -> None:
    warm()
    assert cpu_s("word and more " * 20_000, piece=2_000) < 4.0


def test_a_streamed_reply_costs_little() -> None:
    warm()
    paragraph = "The **decode** step reads every `weight` once, so its *speed* is bounded by bandwidth. " * 6
    code = "\n".join(f"    value_{line} = compute(data[{line}], 'name')  # {line}" for line in range(60))
    rows = "\n".join(f"| model {row} | {row} MB | {row} |" for row in range(30))
    part = f"## Part\n\n{paragraph}\n\n```python\n{code}\n```\n\n" + "".join(f"- item {item}\n" for item in range(12))
    reply = f"{part}\n{paragraph}\n\n" * 3 + f"| Model | Size | tok/s |\n|---|--:|--:|\n{rows}\n"
    assert len(reply) > 12_000
    assert cpu_s(reply, piece=50) < 2.4


def test_importing_it_loads_no_parser_and_no_lexer() -> None:
    program = (
        "import sys, tui.text.markdown, tui.text.plain;"
        "print(*sorted({'pygments', 'markdown_it', 'rich.markdown', 'rich.syntax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
