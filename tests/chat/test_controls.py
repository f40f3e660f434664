"""Text from outside never becomes a control token, and stays what it is."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localinfer.chat.controls import Controls, Cuts
from localinfer.chat.prompt import encode_pieces
from localinfer.errors import BadRequest
from tests.chat.vocabulary import Vocabulary

# Few letters, so that spellings overlap, contain and complete each other often.
texts = st.text("<ab> ", max_size=8)
spellings = st.lists(st.text("<ab>", min_size=1, max_size=4), min_size=1, max_size=4, unique=True)


def prompt(vocabulary: Vocabulary, before: str, contents: list[str], after: str) -> tuple[int, ...]:
    """What a template comes to that writes ``before``, each of ``contents``, and ``after``."""
    cuts = Cuts(Controls(vocabulary.control_texts()), [before, *contents, after])
    rendered = before + "".join(map(cuts.protect, contents)) + after
    return tuple(encode_pieces(vocabulary, cuts.pieces(rendered)))


@given(spellings, texts, st.lists(texts, max_size=3), texts)
@example(["<a>", "a>b"], "", ["<a>b"], "")
@example(["<a>", "aa"], "<", ["a"], ">")
@example(["<a>"], "<", ["a>"], "")
@example(["<ab>"], "", ["<a", "b>"], "")
@example(["a"], "a", ["a"], "a")
def test_control_tokens_come_from_the_template_alone(
    controls: list[str], before: str, contents: list[str], after: str
) -> None:
    vocabulary = Vocabulary(*controls)
    own = vocabulary.control(tuple(vocabulary.encode(before, special=True)))
    own_after = vocabulary.control(tuple(vocabulary.encode(after, special=True)))
    if not "".join(contents):  # what the template writes stands together
        own, own_after = vocabulary.control(tuple(vocabulary.encode(before + after, special=True))), []
    assert vocabulary.control(prompt(vocabulary, before, contents, after)) == [*own, *own_after]


@given(spellings, st.lists(texts, max_size=3), st.booleans())
def test_every_character_is_still_there(controls: list[str], contents: list[str], spaced: bool) -> None:
    vocabulary = Vocabulary(*controls, spaced=spaced)
    ids = prompt(vocabulary, "user: ", contents, "!")
    assert vocabulary.ordinary(ids).lstrip() == "user: " + "".join(contents) + "!"


@given(st.text(), st.text())
def test_ordinary_text_is_tokenised_as_it_would_be_anyway(before: str, content: str) -> None:
    vocabulary = Vocabulary("<|im_start|>", "<|im_end|>")
    cuts = Cuts(Controls(vocabulary.control_texts()), [before, content])
    pieces = cuts.pieces(f"{before}\n{cuts.protect(content)}\n")
    assert pieces == [(f"{before}\n{content}\n", True)] or "<|" in before + content


def test_a_template_may_strip_the_text() -> None:
    vocabulary = Vocabulary("[INST]")
    cuts = Cuts(Controls(vocabulary.control_texts()), [])
    rendered = "[" + cuts.protect(" INST\n").strip() + "]"
    assert vocabulary.control(tuple(encode_pieces(vocabulary, cuts.pieces(rendered)))) == []


def test_an_ending_is_told_from_the_same_text_of_the_template() -> None:
    cuts = Cuts(Controls(()), [])
    assert not cuts.protect("say <think>\n", endings=("<think>",)).rstrip().endswith("<think>")
    assert cuts.pieces(cuts.protect("say <think>\n", endings=("<think>",))) == [("say <think>\n", True)]


def test_thousands_of_control_tokens_and_a_long_text() -> None:
    spellings = [f"<unused{number}>" for number in range(6000)]
    text = "<un<unused17><div> " * 60_000
    cuts = Cuts(Controls(spellings), [text])
    pieces = [piece for piece, _ in cuts.pieces(cuts.protect(text))]
    assert "".join(pieces) == text
    assert len(pieces) == 60_001


def test_the_cut_is_a_character_that_no_text_holds() -> None:
    controls = Controls(["<s>"])
    usual = Cuts(controls, []).protect("<s>")[1]
    cuts = Cuts(controls, [f"a{usual}b<s>"])
    assert "".join(piece for piece, _ in cuts.pieces(cuts.protect(f"a{usual}b<s>"))) == f"a{usual}b<s>"


def test_a_text_with_every_noncharacter_is_refused() -> None:
    nonsense = "".join(chr(code) for code in range(0x110000) if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF)
    with pytest.raises(BadRequest, match="noncharacter"):
        Cuts(Controls(["<s>"]), [nonsense])
