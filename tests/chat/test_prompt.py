"""Pieces of text to token ids, and conversations as templates expect them."""

import pytest

from localinfer.chat.prompt import as_turns, encode_pieces, without_system
from localinfer.types import Message
from tests.chat.vocabulary import MISTRAL, Vocabulary


def test_messages_become_dictionaries() -> None:
    messages = [Message(role="user", content="a"), Message(role="assistant", content="", reasoning="b")]
    assert as_turns(messages) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "reasoning_content": "b"},
    ]


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ("u", [("user", "0")]),
        ("su", [("user", "0\n\n1")]),
        ("s", [("user", "0")]),
        ("sa", [("user", "0"), ("assistant", "1")]),
        ("usau", [("user", "1\n\n0"), ("assistant", "2"), ("user", "3")]),
        ("susu", [("user", "0\n\n2\n\n1"), ("user", "3")]),
    ],
)
def test_system_messages_move_into_the_first_user_message(roles: str, expected: list[tuple[str, str]]) -> None:
    names = {"u": "user", "s": "system", "a": "assistant"}
    conversation = [{"role": names[role], "content": str(place)} for place, role in enumerate(roles)]
    assert [(turn["role"], turn["content"]) for turn in without_system(conversation)] == expected


def test_a_space_before_every_text_is_put_before_the_first_piece_only() -> None:
    ids = encode_pieces(MISTRAL, [("[INST] x<", True), ("s>\n", True), ("</s>", False), ("[/INST]", True)])
    assert MISTRAL.ordinary(tuple(ids)) == "  x<s>\n</s>"
    assert MISTRAL.control(tuple(ids)) == ["<s>", "[INST]", "[/INST]"]


def test_a_line_break_may_be_one_token_with_what_follows() -> None:
    class Merging(Vocabulary):
        def encode(self, text: str, *, special: bool) -> list[int]:
            return super().encode(text.replace("\n\n", "\r"), special=special)

        def piece(self, token: int) -> bytes:
            return b"\n\n" if token == ord("\r") else super().piece(token)

    vocabulary = Merging()
    assert vocabulary.ordinary(tuple(encode_pieces(vocabulary, [("a", True), ("\nb", True)]))) == "a\nb"
