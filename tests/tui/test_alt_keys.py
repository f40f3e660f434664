"""Alt with a letter in a real terminal, where it is an Esc before the letter: it acts, and is no text."""

import os

import pytest

from tests.tui.emulated import application

if os.name != "posix":
    pytest.skip("pseudo-terminals are POSIX's", allow_module_level=True)

ESC = "\x1b"


def test_alt_with_a_letter_acts_whatever_is_in_the_prompt() -> None:
    with application("text=Hello.", columns=120, rows=36) as terminal:
        terminal.send("a draft")
        terminal.see("a draft")
        for letter, shown in (("a", "Activity"), ("s", "Settings"), ("t", "Settings")):
            terminal.send(f"{ESC}{letter}")
            terminal.until(lambda lines, shown=shown: any(shown in line for line in lines[:12]))  # type: ignore[misc]
            terminal.send(ESC)
            terminal.until(lambda lines, shown=shown: not any(shown in line for line in lines[:12]))  # type: ignore[misc]
        terminal.see("TTFT")
        terminal.send(f"{ESC}r")
        terminal.until(lambda lines: not any("first text" in line for line in lines))
        terminal.send(f"{ESC}x{ESC}.{ESC}1{ESC}M and more")
        terminal.see("a draft and more")


def test_what_alt_does_has_a_command_too() -> None:
    with application("text=Hello.", columns=120, rows=36) as terminal:
        for command, shown in (("activity", "Activity"), ("settings", "Settings"), ("theme", "Settings")):
            terminal.send(f"/{command}")
            terminal.see(f"/{command}")
            terminal.send("\r")
            terminal.until(lambda lines, shown=shown: any(shown in line for line in lines[:12]))  # type: ignore[misc]
            terminal.send(ESC)
            terminal.until(lambda lines, shown=shown: not any(shown in line for line in lines[:12]))  # type: ignore[misc]
        terminal.see("first text")
        terminal.send("/figures")
        terminal.see("/figures")
        terminal.send("\r")
        terminal.until(lambda lines: not any("first text" in line for line in lines))
