"""Shapes of MLX folders from their configuration and the sizes of their tensors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import ModelFileInvalid
from localinfer.models.memory_forms import kv_bytes, state_bytes
from localinfer.models.mlx_memory import MLX_ARCHITECTURES
from localinfer.models.shape import Layer, from_mlx

KIB = 2**10


def config(model_type: str, layers: int = 4, **more: object) -> dict[str, object]:
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "vocab_size": 1000,
        **more,
    }


def layers(model_type: str, count: int = 4, **more: Any) -> tuple[Layer, ...]:
    return from_mlx(config(model_type, count, **more), {}).layers


class TestWhereTheBytesLie:
    def test_a_quantized_model(self) -> None:
        tensors = {
            "model.embed_tokens.weight": 400,
            "model.embed_tokens.scales": 20,
            "model.embed_tokens.biases": 20,
            "model.layers.0.self_attn.q_proj.weight": 80,
            "model.layers.0.self_attn.q_proj.scales": 4,
            "model.layers.1.input_layernorm.weight": 6,
            "model.layers.1.mlp.switch_mlp.up_proj.weight": 160,
            "model.layers.1.mlp.switch_mlp.up_proj.scales": 10,
            "model.norm.weight": 8,
            "lm_head.weight": 400,
            "lm_head.scales": 20,
        }
        widths = {"group_size": 64, "bits": 4, "lm_head": {"group_size": 64, "bits": 8}}
        about = config("qwen3_moe", 2, quantization=widths, num_experts=8, num_experts_per_tok=2)
        found = from_mlx(about, tensors)
        assert (found.format, found.architecture) == ("mlx", "qwen3_moe")
        assert (found.context, found.vocabulary, found.embedding, found.heads) == (131_072, 1000, 4096, 32)
        assert (found.embedding_bytes, found.output_bytes, found.tied) == (440, 428, False)
        assert [layer.weights_bytes for layer in found.layers] == [84, 176]
        assert [layer.expert_bytes for layer in found.layers] == [0, 170]
        assert (found.experts, found.experts_used) == (8, 2)
        assert found.weights_bytes == sum(tensors.values())
        assert found.parameters == 2 * (400 + 80 + 160) + (6 + 8) // 2 + 400

    def test_what_is_not_loaded_does_not_count(self) -> None:
        tensors = {
            "language_model.model.layers.0.mlp.up_proj.weight": 5,
            "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight": 70,
            "model.visual.blocks.0.norm1.weight": 70,
            "multi_modal_projector.linear.weight": 70,
            "audio_tower.layers.0.weight": 70,
            "mtp.layers.0.weight": 70,
        }
        about = {"model_type": "gemma3", "text_config": config("gemma3_text", 1), "vision_config": {}}
        found = from_mlx(about, tensors)
        assert found.weights_bytes == 5
        assert found.tied

    def test_of_what_is_not_understood_the_weights_are_known(self) -> None:
        found = from_mlx(config("tomorrow"), {"model.layers.0.weight": 5, "lm_head.weight": 6})
        assert (found.layers, found.weights_bytes) == ((), 11)


class TestWhatLayersKeep:
    def test_grouped_heads(self) -> None:
        assert layers("qwen3", 2) == (Layer(keys=1024, values=1024),) * 2
        assert layers("qwen3", 1, head_dim=64) == (Layer(keys=512, values=512),)
        assert layers("qwen3", 1, num_key_value_heads=None) == (Layer(keys=4096, values=4096),)

    def test_latents(self) -> None:
        about = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256}
        assert layers("glm4_moe_lite", 1, **about) == (Layer(keys=576),)
        assert layers("deepseek_v2", 1, **about) == (Layer(keys=32 * 256, values=32 * 256),)

    @pytest.mark.parametrize(
        ("model_type", "more", "expected"),
        [
            ("gemma2", {}, "ffffff"),
            ("gemma3_text", {}, "wwwwwf"),
            ("cohere2", {}, "wwwfww"),
            ("gpt_oss", {}, "wfwfwf"),
            ("gpt_oss", {"layer_types": ["full_attention"] * 6}, "ffffff"),
            ("gemma4_text", {"sliding_window_pattern": 3}, "wwfwwf"),
            ("llama", {}, "ffffff"),
            ("llama", {"layer_types": ["sliding_attention", "full_attention"] * 3}, "wfwfwf"),
            ("qwen2", {"layer_types": ["sliding_attention"] * 6}, "ffffff"),
        ],
    )
    def test_windows(self, model_type: str, more: dict[str, Any], expected: str) -> None:
        found = layers(model_type, 6, sliding_window=512, **more)
        assert [layer.window for layer in found] == [512 if kind == "w" else 0 for kind in expected]

    def test_chunks(self) -> None:
        assert [layer.window for layer in layers("llama4_text", attention_chunk_size=8192)] == [8192] * 3 + [0]

    def test_full_layers_of_another_size(self) -> None:
        about = {"head_dim": 256, "global_head_dim": 512, "attention_k_eq_v": True, "num_global_key_value_heads": 2}
        kinds = ["sliding_attention", "full_attention", "full_attention"]
        found = layers("gemma4_text", 3, layer_types=kinds, sliding_window=512, num_kv_shared_layers=1, **about)
        assert found == (Layer(keys=2048, values=2048, window=512), Layer(keys=1024, values=1024), Layer())

    def test_layers_that_only_feed_forward(self) -> None:
        about = {"mamba_num_heads": 8, "mamba_head_dim": 64, "n_groups": 2, "ssm_state_size": 128, "conv_kernel": 4}
        found = layers("nemotron_h", hybrid_override_pattern="M-*E", **about)
        state = Layer(state_bytes=3 * (512 + 2 * 2 * 128) * 2 + 512 * 128 * 4)
        assert found == (state, Layer(), Layer(keys=1024, values=1024), Layer())

    def test_both_at_once(self) -> None:
        about = {"mamba_d_ssm": 512, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4}
        state = 3 * (512 + 2 * 128) * 2 + 512 * 128 * 4
        assert layers("falcon_h1", 1, **about) == (Layer(keys=1024, values=1024, state_bytes=state),)

    def test_convolutions(self) -> None:
        found = layers("lfm2", 2, conv_L_cache=3, layer_types=["conv", "full_attention"])
        assert found == (Layer(state_bytes=2 * 4096 * 2), Layer(keys=1024, values=1024))
        assert layers("lfm2", 1, layer_types=["conv"]) == (Layer(),)

    def test_qwen35(self) -> None:
        """The published 32 KiB per token; the state is smaller than llama.cpp's, whose convolutions keep 32 bits."""
        about = config(
            "qwen3_5_text",
            32,
            num_attention_heads=16,
            num_key_value_heads=4,
            head_dim=256,
            linear_num_key_heads=16,
            linear_num_value_heads=32,
            linear_key_head_dim=128,
            linear_value_head_dim=128,
            linear_conv_kernel_dim=4,
        )
        found = from_mlx({"model_type": "qwen3_5", "text_config": about}, {})
        assert kv_bytes(found, context=256, slots=1, kv_type="f16") == 256 * 32 * KIB
        assert state_bytes(found, slots=1) == 24 * (3 * 8192 * 2 + 32 * 128 * 128 * 4)


@pytest.mark.parametrize("value", ["many", -1, 1.5, True, [], 1 << 40])
def test_counts_that_are_none(value: object) -> None:
    with pytest.raises(ModelFileInvalid, match="is not a count"):
        from_mlx(config("llama", num_key_value_heads=value), {})


def test_absurd_depths_are_not_understood() -> None:
    assert from_mlx(config("llama", 1 << 31), {}).layers == ()
    assert from_mlx(config("nemotron_h", 4, hybrid_override_pattern="*" * 10_000), {}).layers == ()


def test_unknown_kinds_of_layers_are_not_understood() -> None:
    assert from_mlx(config("llama", 2, layer_types=["full_attention", "holographic"]), {}).layers == ()


json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 600) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(
    model_type=st.sampled_from(sorted(MLX_ARCHITECTURES)),
    values=st.dictionaries(
        st.sampled_from([*config(""), "text_config", "layer_types", "quantization", "sliding_window"]), json
    ),
)
def test_any_configuration_gives_a_shape_or_a_reason(model_type: str, values: dict[str, object]) -> None:
    try:
        found = from_mlx({"model_type": model_type, **values}, {"a.layers.1.weight": 5, "a.layers.1.scales": 5})
    except ModelFileInvalid:
        return
    assert len(found.layers) <= 512
