"""What a request becomes and what its tokens become, over a tokenizer whose tokens are bytes and a few controls."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.base import Backend, Logprob, Sampled
from localinfer.errors import BadRequest, ContextOverflow
from localinfer.reply import Encoder, Reply
from localinfer.types import GenerationRequest, Message, Reasoning, Text

CONTROLS = ("<end>", "[THINK]", "[/THINK]")


class Bytes:
    """Ids below 256 are bytes; the others are control tokens. Without a chat template."""

    bos = None
    eos = 256
    adds_bos = False
    chat_template: str | None = None

    def encode(self, text: str, *, special: bool) -> list[int]:
        if special and text in CONTROLS:
            return [256 + CONTROLS.index(text)]
        return list(text.encode())

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""

    def text(self, token: int) -> str:
        return chr(token) if token < 256 else CONTROLS[token - 256]

    def control_texts(self) -> tuple[str, ...]:
        return CONTROLS

    def is_end(self, token: int) -> bool:
        return token == 256


def encoder(context: int = 1000) -> Encoder:
    info = SimpleNamespace(context=context, vocabulary=259)
    return Encoder(cast(Backend, SimpleNamespace(info=info, tokenizer=Bytes())))


def chat(text: str = "Hi", **fields: Any) -> GenerationRequest:
    return GenerationRequest(messages=(Message(role="user", content=text),), **fields)


def said(reply: Reply, *tokens: int) -> tuple[str, str]:
    """Reasoning and answer after these tokens, one a step."""
    pieces = [piece for token in tokens for piece in reply.sampled(Sampled(1, (token,)), 0)]
    pieces += reply.flush(0)
    assert sum(piece.tokens for piece in pieces) == len(tokens)
    thought = "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
    return thought, "".join(piece.text for piece in pieces if isinstance(piece, Text))


def test_a_model_without_a_template_stops_at_the_next_turn_of_the_plain_one() -> None:
    reply, job = encoder().encode(1, chat())
    assert bytes(job.tokens).decode().startswith("User: Hi")
    pieces = [piece for token in b"Hello\nUser: more" for piece in reply.sampled(Sampled(1, (token,)), 0)]
    assert "".join(piece.text for piece in pieces) == "Hello"
    assert reply.stopped


def test_a_raw_prompt_is_taken_as_it_is() -> None:
    reply, job = encoder().encode(1, GenerationRequest(prompt="Once"))
    assert bytes(job.tokens) == b"Once"
    assert said(reply, *b"<think>a</think>\nUser: b") == ("", "<think>a</think>\nUser: b")


def test_tags_that_are_control_tokens_are_seen() -> None:
    reply, _ = encoder().encode(1, chat())
    assert said(reply, 257, *b"hm", 258, *b"yes") == ("hm", "yes")


def test_the_end_token_counts_but_says_nothing() -> None:
    reply, _ = encoder().encode(1, chat())
    assert said(reply, *b"yes", 256) == ("", "yes")


def test_a_stop_string_in_the_middle_of_accepted_drafts_counts_the_tokens_up_to_it() -> None:
    reply, _ = encoder().encode(1, chat(stop=("b",)))
    (piece,) = reply.sampled(Sampled(1, tuple(b"abcd"), drafted=3, accepted=3), 0)
    assert (piece.text, piece.tokens, piece.accepted) == ("a", 2, 2)


def test_logprobs_come_with_their_tokens() -> None:
    reply, _ = encoder().encode(1, chat())
    event = Sampled(1, (0xF0,), logprobs=(Logprob(-0.5, ((0xF0, -0.5), (65, -1.0))),))
    (piece,) = reply.sampled(event, 0)
    assert piece.text == ""
    assert piece.logprobs[0].token_bytes == b"\xf0"
    assert piece.logprobs[0].top[1] == (65, b"A", -1.0)


def test_prompts_that_cannot_be_taken() -> None:
    with pytest.raises(ContextOverflow) as caught:
        encoder(10).encode(1, chat("a long text"))
    assert caught.value.context == 10
    with pytest.raises(BadRequest):
        encoder().encode(1, GenerationRequest(prompt=""))
    with pytest.raises(BadRequest):
        encoder().encode(1, GenerationRequest(token_ids=(259,)))
