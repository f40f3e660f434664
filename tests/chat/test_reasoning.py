"""Reasoning and answer: one block at the very start, whatever the pieces it arrives in."""

import re
from itertools import groupby, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localinfer.chat.reasoning import TAGS, Part, ReasoningSplitter


def split(pieces: list[str], *, opened: bool) -> list[list[Part]]:
    splitter = ReasoningSplitter(opened)
    return [*map(splitter.push, pieces), splitter.finish()]


def joined(parts: list[list[Part]]) -> list[Part]:
    flat = [part for piece in parts for part in piece]
    assert all(text for _, text in flat)
    return [(kind, "".join(text for _, text in run)) for kind, run in groupby(flat, key=lambda part: part[0])]


def cut(text: str, places: set[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)]


def expected(reply: str, *, opened: bool) -> list[Part]:
    """What a whole reply comes to, said with regular expressions."""
    if opened:
        closing = "|".join(re.escape(closing) for _, closing in TAGS)
        heads = [("", closing)]
    else:
        heads = [(re.escape(opening), re.escape(closing)) for opening, closing in TAGS]
    for opening, closing in heads:
        if block := re.fullmatch(rf"(?s)\s*{opening}\s*(.*?)(?:(?:{closing})\s*(.*))?", reply):
            return [(kind, text) for kind, text in ((True, block[1]), (False, block[2])) if text]
    return [(False, reply)] if reply else []


words = ["<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "<", "</thi", "nk>", " ", "\n", "a"]
replies = st.lists(st.sampled_from(words), max_size=12).map("".join)


@given(replies, st.booleans(), st.sets(st.integers(0, 80)))
@example("<think>a</think>\n\nb</think>", False, {3, 9, 12})
def test_every_way_of_cutting_says_the_same(reply: str, opened: bool, places: set[int]) -> None:
    assert joined(split(cut(reply, places), opened=opened)) == expected(reply, opened=opened)


@given(replies, st.booleans())
def test_only_what_may_still_become_a_tag_is_held(reply: str, opened: bool) -> None:
    splitter = ReasoningSplitter(opened)
    said = ""
    for place, character in enumerate(reply):
        said += "".join(text for _, text in splitter.push(character))
        arrived = "".join(text for _, text in expected(reply[: place + 1], opened=opened))
        assert arrived.startswith(said)
        held = arrived[len(said) :].lstrip()
        assert not held or any(tag.startswith(held) for tags in TAGS for tag in tags)


def test_reasoning_flows_while_it_grows() -> None:
    pieces = ["<think>", "\nstep", " one <b", "r></thi", "nk>", "\n\n", "Answer", " it"]
    assert split(pieces, opened=False) == [
        [],
        [(True, "step")],
        [(True, " one <b")],
        [(True, "r>")],
        [],
        [],
        [(False, "Answer")],
        [(False, " it")],
        [],
    ]


def test_the_template_opened_the_block() -> None:
    assert split(["plan it</thi", "nk>", "Answer"], opened=True) == [[(True, "plan it")], [], [(False, "Answer")], []]


@pytest.mark.parametrize(("opening", "closing"), TAGS)
def test_every_kind_of_tag(opening: str, closing: str) -> None:
    assert joined(split([f" \n{opening}\nwhy{closing}\n\nso"], opened=False)) == [(True, "why"), (False, "so")]
    assert joined(split([f"why{closing}so"], opened=True)) == [(True, "why"), (False, "so")]


def test_tags_in_the_answer_are_text() -> None:
    answer = "In HTML `</think>` and <think>x</think> mean nothing."
    assert joined(split([f"<think>a</think>{answer}"], opened=False)) == [(True, "a"), (False, answer)]
    assert joined(split([f"a</think>{answer}"], opened=True)) == [(True, "a"), (False, answer)]
    assert joined(split([answer], opened=False)) == [(False, answer)]


def test_another_kind_of_closing_tag_is_thought() -> None:
    assert joined(split(["<think>a[/THINK]b</think>c"], opened=False)) == [(True, "a[/THINK]b"), (False, "c")]


def test_a_stream_cut_inside_the_block_is_all_reasoning() -> None:
    assert joined(split(["<think>on and on</th"], opened=False)) == [(True, "on and on</th")]
    assert joined(split(["on and on"], opened=True)) == [(True, "on and on")]


def test_an_empty_block_is_no_reasoning() -> None:
    assert joined(split(["<think>\n\n</think>\n\nHello"], opened=False)) == [(False, "Hello")]


def test_an_answer_that_begins_like_a_tag() -> None:
    assert split(["  <", "th", "e>"], opened=False) == [[], [], [(False, "  <the>")], []]
    assert split([" <thi"], opened=False) == [[], [(False, " <thi")]]
