"""Whether the tokens of two models are the same ones: read from headers as they lie in files, and compared."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import ModelFileInvalid
from localinfer.models import gguf
from localinfer.models.gguf import Vocabulary, difference
from tests.models import gguf_files
from tests.models.gguf_files import ARRAY, LLAMA, STRING, U32, pair, text
from tests.tiny_models import write_tiny_model

I32 = 5
NORMAL, CONTROL, UNUSED = 1, 3, 5

texts = st.lists(st.text(max_size=12), max_size=40)


def vocabulary(
    tokens: Sequence[str],
    types: Sequence[int] | None = None,
    *,
    model: str = "gpt2",
    bos: int | None = None,
    eos: int | None = None,
) -> Vocabulary:
    """The vocabulary of a file with these tokens."""
    kinds = [NORMAL] * len(tokens) if types is None else types
    pairs = [
        LLAMA,
        pair("tokenizer.ggml.model", STRING, text(model)),
        pair("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, len(tokens)) + b"".join(map(text, tokens))),
        pair("tokenizer.ggml.token_type", ARRAY, struct.pack(f"<IQ{len(kinds)}i", I32, len(kinds), *kinds)),
    ]
    for name, value in (("bos", bos), ("eos", eos)):
        if value is not None:
            pairs.append(pair(f"tokenizer.ggml.{name}_token_id", U32, struct.pack("<I", value)))
    return gguf.vocabulary(gguf.Start(gguf_files.file(pairs), "x.gguf"))


@given(texts, texts)
def test_lists_are_the_same_exactly_where_their_tokens_are(one: list[str], other: list[str]) -> None:
    said = difference(vocabulary(one), vocabulary(other))
    if one == other and one:
        assert said == ""
    elif len(one) == len(other) and one:
        number = next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        assert f"token {number:,} is" in said
    if not one or not other:
        assert "does not list its tokens" in said


@given(texts.filter(bool), st.integers(1, 20), st.booleans())
def test_one_may_be_padded_at_its_end(tokens: list[str], more: int, unused: bool) -> None:
    names = [f"filler {at}" if unused else f"[PAD{len(tokens) + at}]" for at in range(more)]
    kinds = [NORMAL] * len(tokens) + [UNUSED if unused else NORMAL] * more
    plain, padded = vocabulary(tokens), vocabulary([*tokens, *names], kinds)

    assert difference(plain, padded) == difference(padded, plain) == ""
    longer = vocabulary([*tokens, *names, "word"], [*kinds, NORMAL])
    assert "“word”" in difference(plain, longer)
    assert difference(padded, longer) != ""


def test_reserved_tokens_are_padding() -> None:
    names = ["<unused7>", "<|reserved_special_token_3|>", "[PAD151665]", "<|dummy_12|>"]
    assert difference(vocabulary(["a"]), vocabulary(["a", *names])) == ""


@pytest.mark.parametrize(
    ("other", "word"),
    [
        (vocabulary(["a", "b"], model="llama"), "kind"),
        (vocabulary(["a", "b"], [NORMAL, CONTROL]), "control"),
        (vocabulary(["a", "b"], bos=1), "begins"),
        (vocabulary(["a", "b"], eos=0), "ends"),
        (vocabulary(["b", "a"]), "token 0"),
    ],
    ids=["tokenizer", "types", "beginning", "end", "order"],
)
def test_each_difference_is_named(other: Vocabulary, word: str) -> None:
    assert word in difference(vocabulary(["a", "b"], bos=0, eos=1), other)


def test_what_one_of_them_does_not_say_is_no_difference() -> None:
    assert difference(vocabulary(["a", "b"], bos=0, eos=1), vocabulary(["a", "b"])) == ""
    assert difference(vocabulary(["a", "b"], [CONTROL, NORMAL]), vocabulary(["a", "b"], [])) == ""


def test_real_files(tmp_path: Path) -> None:
    llama, hybrid, other = (
        gguf.vocabulary_of(write_tiny_model(tmp_path, name)) for name in ("llama", "lfm2", "gemma3")
    )
    assert llama.count > 400
    assert (llama.bos, llama.eos) == (0, 2)
    assert difference(llama, hybrid) == ""
    assert difference(llama, other) != ""


def test_a_long_vocabulary_needs_no_number_of_it_to_be_kept() -> None:
    tokens = [f"token {number}" for number in range(20_000)]
    found = vocabulary(tokens, [NORMAL] * 19_999 + [UNUSED])
    assert (found.count, len(found.types)) == (20_000, 80_000)
    assert difference(found, vocabulary(tokens[:-1])) == ""


@pytest.mark.parametrize("end", [30, 60, 90])
def test_a_header_that_is_cut_off_is_refused(end: int, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path, "llama")
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(ModelFileInvalid):
        gguf.vocabulary_of(path)


def test_names_of_tokens_cannot_command_the_terminal() -> None:
    said = difference(vocabulary(["\x1b[31m"]), vocabulary(["b"]))
    assert "\x1b" not in said
