"""The tokenizer over real vocabularies: text to ids and back, control tokens only where they are allowed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.llama_cpp.native import NativeModel
from backends.llama_cpp.tokenizer import LlamaTokenizer

KINDS = ("starter", "tiny", "tiny_sentencepiece")
CONTROLS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<unk>", "<0x41>", "<")
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # how SentencePiece writes a space: that letter itself cannot come back

letters = st.characters(exclude_categories=["Cs"], exclude_characters=SPACE)
texts = st.lists(
    st.one_of(st.text(letters), st.sampled_from(CONTROLS), st.sampled_from((" ", "  ", "\n", "\r\n", "👩‍👩‍👧", "é")))
)


@pytest.fixture(scope="session", params=KINDS)
def model(request: pytest.FixtureRequest) -> NativeModel:
    loaded: NativeModel = request.getfixturevalue(request.param)
    return loaded


@pytest.fixture(scope="session")
def tokenizer(model: NativeModel) -> LlamaTokenizer:
    return LlamaTokenizer(model)


@pytest.fixture(scope="session")
def missing(model: NativeModel, tokenizer: LlamaTokenizer) -> bytes:
    """Bytes that no token of the vocabulary holds: a few that text has no use for, or none."""
    lone = {tokenizer.piece(token) for token in range(model.n_vocab)}
    return bytes(byte for byte in range(256) if bytes([byte]) not in lone)


def spelled(tokenizer: LlamaTokenizer, tokens: list[int]) -> bytes:
    return b"".join(tokenizer.piece(token) for token in tokens)


@given(texts.map("".join))
def test_pieces_of_the_ids_are_the_text(tokenizer: LlamaTokenizer, missing: bytes, text: str) -> None:
    """Whatever it looks like: with ``special`` off, no text is a control token."""
    tokens = tokenizer.encode(text, special=False)
    assert spelled(tokenizer, tokens) == text.encode().translate(None, missing)
    assert not any(tokenizer.is_end(token) for token in tokens)
    assert len(tokens) <= len(text.encode())


@given(st.text(letters).filter(lambda text: "<" not in text))
def test_special_makes_no_difference_to_ordinary_text(tokenizer: LlamaTokenizer, text: str) -> None:
    assert tokenizer.encode(text, special=True) == tokenizer.encode(text, special=False)


def test_every_control_text_is_one_token_without_bytes(tokenizer: LlamaTokenizer) -> None:
    controls = tokenizer.control_texts()
    assert {"<|im_start|>", "<|im_end|>"} <= set(controls)
    for text in controls:
        (token,) = tokenizer.encode(text, special=True)
        assert tokenizer.text(token) == text
        assert tokenizer.piece(token) == b""
        plain = tokenizer.encode(text, special=False)
        assert token not in plain
        assert spelled(tokenizer, plain) == text.encode()


def test_control_tokens_stand_between_ordinary_ones(tokenizer: LlamaTokenizer) -> None:
    start, end = (tokenizer.encode(text, special=True)[0] for text in ("<|im_start|>", "<|im_end|>"))
    tokens = tokenizer.encode("<|im_start|>user\nHi<|im_end|>", special=True)
    assert tokens == [start, *tokenizer.encode("user\nHi", special=False), end]
    assert spelled(tokenizer, tokens) == b"user\nHi"
    assert "".join(tokenizer.text(token) for token in (start, end)) == "<|im_start|><|im_end|>"


def test_only_control_tokens_have_no_bytes(model: NativeModel, tokenizer: LlamaTokenizer, missing: bytes) -> None:
    controls = set(tokenizer.control_texts())
    silent = {tokenizer.text(token) for token in range(model.n_vocab) if not tokenizer.piece(token)}
    assert silent == controls
    assert not set(missing) & {*range(32, 127), *b"\t\n\r", *range(0x80, 0xC0), *range(0xC2, 0xF1)}


def test_the_ends_of_an_answer(tokenizer: LlamaTokenizer) -> None:
    assert tokenizer.eos is not None
    assert tokenizer.is_end(tokenizer.eos)
    (turn_end,) = tokenizer.encode("<|im_end|>", special=True)
    (turn_start,) = tokenizer.encode("<|im_start|>", special=True)
    assert tokenizer.is_end(turn_end)
    assert not tokenizer.is_end(turn_start)


def test_what_the_files_say_of_themselves(
    starter: NativeModel, tiny: NativeModel, tiny_sentencepiece: NativeModel
) -> None:
    found = [LlamaTokenizer(model) for model in (starter, tiny, tiny_sentencepiece)]
    assert [(each.bos, each.eos, each.adds_bos) for each in found] == [(1, 2, False), (0, 2, False), (1, 2, True)]
    assert all("<|im_start|>" in (each.chat_template or "") for each in found)
    for each in found:
        assert each.bos not in each.encode("Hello", special=True), "the caller adds it"


def test_text_that_is_no_unicode_loses_only_what_is_none(tokenizer: LlamaTokenizer) -> None:
    assert spelled(tokenizer, tokenizer.encode("a\ud800b", special=False)) == b"a?b"
    assert spelled(tokenizer, tokenizer.encode("a\0b", special=False)) == b"a\0b"
    assert tokenizer.encode("", special=True) == []


def test_a_long_text_needs_no_more_than_its_length(tokenizer: LlamaTokenizer) -> None:
    text = "word ü 漢字 " * 4000
    assert spelled(tokenizer, tokenizer.encode(text, special=False)) == text.encode()


def test_any_thread_may_call_it(tokenizer: LlamaTokenizer) -> None:
    samples = [f"Sentence number {number} of <|im_end|> many.\n" * 20 for number in range(40)]
    expected = [tokenizer.encode(text, special=True) for text in samples]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda text: tokenizer.encode(text, special=True), samples)) == expected
        assert list(threads.map(lambda tokens: spelled(tokenizer, tokens), expected)) == [
            text.replace("<|im_end|>", "").encode() for text in samples
        ]
