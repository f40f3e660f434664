"""The prompt in a real terminal: bytes as terminals send them."""

import contextlib
import json
import string
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser

from tests.cli import terminal
from tests.cli.terminal import Terminal
from tui.widgets.prompt.terminal import prepare

CTRL_Q = "\x11"


class Typed:
    """A terminal with a prompt in it, and what was sent from there."""

    def __init__(self, screen: Terminal, file: Path) -> None:
        self.screen = screen
        self._file = file

    def lines(self) -> list[str]:
        """What was sent, a line of JSON each."""
        return self._file.read_text().splitlines()

    def sent(self, count: int) -> list[list[str]]:
        """Wait for ``count`` messages; what was sent."""
        self.screen.expect(f"sent {count}")
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Typed]:
    script = Path(__file__).with_name("terminal_app.py")
    monkeypatch.setattr(terminal, "COMMAND", [sys.executable, str(script)])
    root = str(script.parents[3])
    with Terminal(str(tmp_path / "sent"), PYTHONPATH=root) as screen:
        typed = Typed(screen, tmp_path / "sent")
        screen.expect("sent 0")
        yield typed
        screen.send(CTRL_Q)
        assert screen.exit_code() == 0


def test_a_bracketed_paste_of_100_kb_is_one_thing_and_never_sends(typed: Typed) -> None:
    text = "\r".join(f"line {number:05} \x1b[A /help" for number in range(4_000))
    typed.screen.send(f"\x1b[200~{text}\x1b[201~")
    typed.screen.send("and this\r")
    assert typed.sent(1) == [["and this", text.replace("\r", "\n").replace("\x1b", "␛")]]


def test_new_line_keys_and_a_paste_without_brackets(typed: Typed) -> None:
    typed.screen.send("a\x1b\rb")  # Alt+Enter
    typed.screen.expect("b")
    typed.screen.send("\nc")  # Ctrl+J
    typed.screen.expect("c")
    typed.screen.send("\x1b[27;2;13~d")  # Shift+Enter as xterm writes it
    typed.screen.expect("d")
    typed.screen.send("\x1b[13;2ue")  # and as kitty does
    typed.screen.expect("e")
    typed.screen.send("\r")
    assert typed.sent(1) == [["a\nb\nc\nd\ne"]]
    typed.screen.send("one\rtwo\r\rthree\r")
    typed.screen.expect("three")
    for _ in range(5):  # one that comes within 12 ms of the burst still belongs to it
        typed.screen.send("\r")
        with contextlib.suppress(AssertionError):
            typed.screen.expect("sent 2", timeout_s=2)
            break
    assert [json.loads(line) for line in typed.lines()][1:] == [["one\ntwo\n\nthree"]]


@given(
    st.text(alphabet="a\r\x1b[201~/"), st.lists(st.integers(0, 60), max_size=4), st.sampled_from(["", "k", "\x1b[A"])
)
def test_a_paste_is_cut_out_wherever_the_bytes_are_cut(pasted: str, cuts: list[int], around: str) -> None:
    pasted = pasted.replace("\x1b[201~", "")
    data = f"{around}\x1b[200~{pasted}\x1b[201~{around}"
    begin = len(around)
    borders = sorted({0, len(data), *(cut for cut in cuts if begin + 3 <= cut < len(data) - len(around))})
    prepare()
    parser = XTermParser()
    found = [one for start, end in pairwise(borders) for one in parser.feed(data[start:end])]
    pastes = [one.text for one in found if isinstance(one, events.Paste)]
    assert pastes == [pasted]
    assert len(found) == 1 + 2 * bool(around)


@given(st.sampled_from(string.printable.strip() + " äπ你"), st.sampled_from([3, 5, 7, 9]))
def test_a_key_with_a_modifier_is_no_text(sign: str, modifiers: int) -> None:
    prepare()
    for written in (f"\x1b{sign}", f"\x1b[{ord(sign)};{modifiers}u"):
        if written[1:] in ("[", "]", "_", "^", "O", "P", "X"):  # the first of longer sequences
            continue
        parser = XTermParser()
        found = [*parser.feed(written), *parser.feed("")]
        assert [one for one in found if isinstance(one, events.Key) and one.is_printable] == []
        assert found


def test_alt_with_a_key_is_that_key_whatever_comes_behind_it() -> None:
    prepare()
    found = [one for one in XTermParser().feed("\x1bs\x1bS\x1b.\x1bshi") if isinstance(one, events.Key)]
    assert [one.key for one in found] == ["alt+s", "alt+shift+s", "alt+full_stop", "alt+s", "h", "i"]
