"""What the catalogue says about the memory of a model before anybody has its file."""

from pathlib import Path

import msgspec
import pytest

from localinfer.models import catalog, gguf
from localinfer.models.catalog import Mlx, ModelSpec, Quantization
from localinfer.models.shape import ModelShape, from_gguf

VARIANTS = [
    pytest.param(model, variant, id=f"{model.id}-{variant.name}-{'mlx' if isinstance(variant, Mlx) else 'gguf'}")
    for model in catalog.catalog().models
    for variant in model.variants
]


def shape_of(name: str) -> ModelShape:
    model = catalog.catalog().find(name)
    return catalog.shape(model, model.quantizations[0])


def kept_bytes(shape: ModelShape) -> int:
    """Bytes per token, at 16 bits, of the layers that keep all tokens."""
    return sum(2 * (layer.keys + layer.values) for layer in shape.layers if not layer.window)


@pytest.mark.parametrize(("model", "variant"), VARIANTS)
def test_every_shape_adds_up(model: ModelSpec, variant: Quantization | Mlx) -> None:
    shape = catalog.shape(model, variant)
    assert shape.weights_bytes == variant.size_bytes
    assert shape.format == ("mlx" if isinstance(variant, Mlx) else "gguf")
    assert shape.embedding_bytes > 0
    assert (shape.output_bytes == 0) is shape.tied
    assert all(0 <= layer.expert_bytes < layer.weights_bytes for layer in shape.layers)
    assert any(layer.expert_bytes for layer in shape.layers) is bool(shape.experts)
    assert any(layer.keys for layer in shape.layers)
    if model.active_parameters and shape.experts:
        experts = sum(layer.expert_bytes for layer in shape.layers) / shape.weights_bytes
        read = 1 - experts * (1 - shape.experts_used / shape.experts)
        stated = model.active_parameters / model.parameters
        assert read == pytest.approx(stated, rel=0.45), "the experts' share is not that of the stated active parameters"


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("qwen3.5-4b", 32),
        ("qwen3-4b-2507", 144),
        ("ministral-3-8b", 136),
        ("qwen3.5-9b", 32),
        ("qwen3-14b", 160),
        ("qwen3.8-27b", 64),
        ("qwen3-coder-30b-a3b", 96),
        ("nemotron-3.5-30b-a3b", 6),
        ("qwen3.6-35b-a3b", 20),
        ("llama-3.3-70b", 320),
    ],
)
def test_published_bytes_per_token(name: str, kib: int) -> None:
    assert kept_bytes(shape_of(name)) == kib * 1024


def test_published_recurrent_state() -> None:
    assert sum(layer.state_bytes for layer in shape_of("qwen3.5-9b").layers) == 50.25 * 2**20


def test_the_pattern_is_repeated_in_order() -> None:
    shape = shape_of("gemma-3-270m")
    assert [layer.window for layer in shape.layers] == [512, 512, 512, 512, 512, 0] * 3
    sharing = shape_of("gemma-4-e2b").layers
    assert [bool(layer.keys) for layer in sharing] == [True] * 15 + [False] * 20
    assert sum(bool(layer.keys) for layer in shape_of("nemotron-3.5-30b-a3b").layers) == 6


def test_embeddings_of_every_layer_are_embeddings() -> None:
    """Gemma's small models look up more than half of their weights by token; they need no fast memory."""
    shape = shape_of("gemma-4-e2b")
    assert 0.5 < shape.embedding_bytes / shape.weights_bytes < 0.75


def test_nothing_but_weights_without_a_geometry() -> None:
    model = catalog.catalog().find("qwen3-14b")
    shape = catalog.shape(msgspec.structs.replace(model, geometry=None), model.quantizations[0])
    assert shape.layers == ()
    assert shape.weights_bytes == model.quantizations[0].size_bytes


def test_an_unusual_name_shares_weights_by_their_number() -> None:
    model = catalog.catalog().find("qwen3-14b")
    odd = msgspec.structs.replace(model.quantizations[0], name="XYZ")
    shape = catalog.shape(model, odd)
    assert model.geometry is not None
    assert shape.embedding_bytes == pytest.approx(
        odd.size_bytes * model.geometry.head_parameters / model.parameters, rel=0.01
    )


def test_the_real_starter(starter_model: Path) -> None:
    """The catalogue's geometry against the header of the file itself."""
    real, told = from_gguf([gguf.check(starter_model)]), shape_of("smollm2-135m")
    assert (told.architecture, told.parameters, told.context, told.vocabulary) == (
        real.architecture,
        real.parameters,
        real.context,
        real.vocabulary,
    )
    assert (told.embedding, told.heads, told.tied) == (real.embedding, real.heads, real.tied)
    for ours, theirs in zip(told.layers, real.layers, strict=True):
        assert (ours.keys, ours.values, ours.window, ours.state_bytes) == (
            theirs.keys,
            theirs.values,
            theirs.window,
            theirs.state_bytes,
        )
    assert told.embedding_bytes == pytest.approx(real.embedding_bytes, rel=0.25)


def test_every_assumption_is_about_a_model_with_a_relative() -> None:
    """A geometry that was taken over says so; most were not."""
    built = [model.geometry for model in catalog.catalog().models if model.geometry]
    assert 0 < sum(one.assumed for one in built) < len(built) / 3
