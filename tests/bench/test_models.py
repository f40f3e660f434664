"""The benchmark model has the shape it claims and the tokenizer it took over."""

from math import prod
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFWriter, TokenType

from tests.bench import models
from tests.tiny_models import write_tensors, write_tiny_model


def test_it_has_as_many_parameters_as_the_real_one() -> None:
    assert sum(prod(shape) for shape in models.shapes().values()) == models.PARAMETERS


def test_the_tokenizer_is_taken_over_and_filled_up(tmp_path: Path) -> None:
    source = GGUFReader(write_tiny_model(tmp_path, "llama"))
    path = tmp_path / "filled.gguf"
    writer = GGUFWriter(path, "qwen2")
    used = models._take_over_tokenizer(writer, source)
    write_tensors(writer, {}, np.float16, lambda name, shape: np.ones(shape))
    copy = GGUFReader(path)
    tokens, types = (copy.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type"))
    assert len(set(tokens)) == len(types) == models.VOCABULARY
    assert set(types[used:]) == {TokenType.UNUSED}
    for name, field in source.fields.items():
        if name.startswith("tokenizer."):
            was, is_now = field.contents(), copy.fields[name].contents()
            assert is_now[:used] == was if name.endswith((".tokens", ".token_type")) else is_now == was
            assert copy.fields[name].types == field.types


def test_unused_tokens_have_no_embedding_and_the_others_do() -> None:
    weights = models._weights(np.random.default_rng(1), "token_embd.weight", (50, 8), used=30)
    assert not weights[30:].any()
    assert weights[:30].all()
