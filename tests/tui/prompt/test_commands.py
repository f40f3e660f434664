"""Commands: what is one, the list that completes it, and a message that looks like one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.prompt.host import COMMANDS, running
from tui.widgets.prompt.commands import Given, Unknown, complete, escaped, meaning, unescaped


@pytest.mark.parametrize(
    "text", ["/usr/bin is full", "/", "/ help", "//help", " /help", "help", "/3.5 is a ratio", "/help: what is it?"]
)
def test_what_is_a_message(text: str) -> None:
    assert meaning(text, COMMANDS) is None


def test_a_known_word_is_a_command_with_what_follows_it() -> None:
    what = meaning("/System  You are\nkind. ", COMMANDS)
    assert isinstance(what, Given)
    assert (what.command.name, what.argument) == ("system", "You are\nkind.")
    assert meaning("/helf me", COMMANDS) == Unknown(word="helf", near="help")
    assert meaning("/zzz", COMMANDS) == Unknown(word="zzz", near="")


@given(st.text(alphabet="/help me\n"))
def test_a_message_is_typed_so_that_it_is_a_message_again(message: str) -> None:
    typed = escaped(message)
    assert meaning(typed, COMMANDS) is None
    assert unescaped(typed) == message


def test_the_beginning_of_a_name_is_better_than_its_middle_or_its_letters() -> None:
    assert [choice.label for choice in complete("/e", COMMANDS)[0]] == ["/model", "/system", "/help", "/retry"]
    assert [choice.label for choice in complete("/r", COMMANDS)[0]] == ["/retry"]
    assert [choice.label for choice in complete("/he", COMMANDS)[0]] == ["/help"]
    assert [choice.label for choice in complete("/mdl", COMMANDS)[0]] == ["/model"]
    assert complete("say /he", COMMANDS)[0] == []
    assert complete("/help\n/he", COMMANDS)[0] == []


async def test_the_list_opens_above_the_prompt_filters_and_runs_a_command(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press("/")
        await host.until(lambda: host.completion.display)
        await pilot.pause()
        assert host.completion.region.bottom == host.editor.region.y
        assert host.completion.region.height == 4
        assert "Switch to another model" in host.screen_text
        await pilot.press(*"he")
        assert "Switch to another model" not in host.screen_text
        await pilot.press("enter")
        await host.until(lambda: host.given == [("help", "")])
        assert host.prompt.text == ""
        assert not host.completion.is_open


async def test_a_command_with_an_argument_is_completed_then_its_argument(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"/mo", "tab")
        assert host.prompt.text == "/model "
        await host.until(lambda: host.completion.is_open)
        assert host.completion.chosen is None  # Enter gives the command without an argument
        assert host.status == "/model name · Switch to another model"
        await pilot.press(*"be", "down", "enter")
        await host.until(lambda: host.given == [("model", "betamax")])


async def test_what_is_typed_in_full_is_done_though_more_would_match(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("/model beta")
        await pilot.press("enter")
        host.prompt.insert("/model")
        await pilot.press("enter")
        await host.until(lambda: host.given == [("model", "beta"), ("model", "")])


async def test_esc_closes_the_list_and_it_stays_closed_for_this_word(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press("/", "escape", "h")
        assert not host.completion.is_open
        assert host.posted == []  # the Esc was for the list
        await pilot.press("backspace", "backspace", "x", "backspace", "/")
        await host.until(lambda: host.completion.is_open)


async def test_arrows_choose_round_and_round(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press("/", "up")
        chosen = host.completion.chosen
        assert chosen is not None
        assert chosen.label == "/retry"
        await pilot.press("down", "down", "tab")
        assert host.prompt.text == "/system "


async def test_a_click_chooses(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press("/")
        await pilot.pause()
        await pilot.click(host.completion, offset=(4, 2))
        await host.until(lambda: host.given == [("help", "")])
        assert host.editor.has_focus


async def test_an_unknown_word_is_sent_by_the_second_enter_only(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        host.prompt.insert("/helf me")
        await pilot.press("enter")
        assert host.status == "! no command /helf · did you mean /help? · Enter again sends it as a message"
        assert host.posted == []
        await pilot.press("!", "enter")
        assert host.posted == []  # it is another text
        await pilot.press("enter")
        await host.until(lambda: host.sent)
        assert host.sent[0].text == "/helf me!"


async def test_two_slashes_begin_a_message_with_one(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        for text in ("//help", "/usr/bin is full"):
            host.prompt.insert(text)
            await pilot.press("enter")
        await host.until(lambda: [message.text for message in host.sent] == ["/help", "/usr/bin is full"])


@pytest.mark.parametrize("erase", ["backspace", "ctrl+u"])
@pytest.mark.parametrize("word", ["/", "/mod", "@", "text @no"])
async def test_a_word_that_is_gone_keeps_no_list_closed(tmp_path: Path, word: str, erase: str) -> None:
    (tmp_path / "notes.md").write_text("x")
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*word)
        await host.until(lambda: host.completion.is_open)
        await pilot.press("escape")
        assert not host.completion.is_open
        await pilot.press(*[erase] * (len(word) if erase == "backspace" else 1))
        await pilot.press(*word)
        await host.until(lambda: host.completion.is_open)


async def test_an_argument_whose_list_was_closed_is_typed_in_peace(tmp_path: Path) -> None:
    async with running(tmp_path) as (host, pilot):
        await pilot.press(*"/model ")
        await host.until(lambda: host.completion.is_open)
        await pilot.press("escape", *"be", "backspace", "backspace")
        await pilot.pause()
        assert not host.completion.is_open
        await pilot.press("ctrl+u", *"/model b")
        await host.until(lambda: host.completion.is_open)
