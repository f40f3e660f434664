"""Shapes of GGUF models: where their bytes lie, and figures published for models people run."""

from pathlib import Path

import pytest

from localinfer.models import gguf
from localinfer.models.gguf import Header
from localinfer.models.memory_forms import kv_bytes, state_bytes
from localinfer.models.shape import Layer, ModelShape, from_gguf
from tests.models.headers import attention, header, tensor

KIB, MIB = 2**10, 2**20


def shape(found: Header) -> ModelShape:
    return from_gguf([found])


class TestWhereTheBytesLie:
    def test_blocks_embeddings_and_output(self) -> None:
        tensors = [
            tensor("token_embd.weight", 1000, 10, 100),
            tensor("output.weight", 2000),
            tensor("output_norm.weight", 10),
            tensor("rope_freqs.weight", 3),
            tensor("blk.0.attn_q.weight", 50),
            tensor("blk.1.attn_q.weight", 60),
            tensor("blk.1.ffn_up.weight", 7),
        ]
        found = shape(header("llama", {"block_count": 2, "context_length": 8192, "embedding_length": 10}, tensors))
        assert found == ModelShape(
            architecture="llama",
            format="gguf",
            parameters=3130,
            context=8192,
            vocabulary=100,
            embedding=10,
            heads=0,
            layers=(Layer(weights_bytes=50), Layer(weights_bytes=67)),
            embedding_bytes=1000,
            output_bytes=2013,
        )
        assert found.weights_bytes == 3130

    def test_the_head_may_be_the_embeddings(self) -> None:
        found = shape(header("gemma3", {"block_count": 1}, [tensor("token_embd.weight", 9, 3, 3)]))
        assert found.tied
        assert (found.embedding_bytes, found.output_bytes) == (9, 0)

    def test_embeddings_of_every_layer_stay_with_the_embeddings(self) -> None:
        tensors = [tensor("token_embd.weight", 9, 3, 3), tensor("per_layer_token_embd.weight", 90)]
        assert shape(header("gemma4", {"block_count": 1}, tensors)).embedding_bytes == 99

    @pytest.mark.parametrize(
        "name", ["ffn_up_exps.weight", "ffn_gate_up_exps.weight", "ffn_down_exps.bias", "ffn_gate.7.weight"]
    )
    def test_routed_experts(self, name: str) -> None:
        about = {"block_count": 1, "expert_count": 8, "expert_used_count": 2}
        tensors = [
            tensor(f"blk.0.{name}", 80),
            tensor("blk.0.ffn_gate_inp.weight", 5),
            tensor("blk.0.ffn_up_shexp.w", 7),
        ]
        found = shape(header("llama", about, tensors))
        assert (found.experts, found.experts_used) == (8, 2)
        assert found.layers == (Layer(weights_bytes=92, expert_bytes=80),)

    def test_another_number_of_experts_in_each_layer(self) -> None:
        assert shape(header("llama", {"block_count": 2, "expert_used_count": [2, 6]})).experts_used == 6

    def test_blocks_that_are_not_loaded_have_no_bytes(self) -> None:
        tensors = [tensor("blk.0.attn_q.weight", 5), tensor("blk.1.attn_q.weight", 50)]
        found = shape(header("glm4moe", {"block_count": 2, "nextn_predict_layers": 1}, tensors))
        assert found.layers == (Layer(weights_bytes=5),)
        assert found.weights_bytes == 5

    def test_some_of_them_keep_a_cache_nevertheless(self) -> None:
        tensors = [tensor("blk.0.attn_q.weight", 5), tensor("blk.1.ffn_up_exps.weight", 50)]
        about = {"block_count": 2, "nextn_predict_layers": 1, "embedding_length": 64, "attention.head_count": 1}
        found = shape(header("bailingmoe3", about, tensors))
        assert found.layers == (Layer(keys=64, values=64, weights_bytes=5), Layer(keys=64, values=64))

    def test_all_parts_of_a_split_model(self) -> None:
        first = header("llama", {"block_count": 2}, [tensor("blk.0.attn_q.weight", 5)])
        second = header("", {}, [tensor("blk.1.attn_q.weight", 6), tensor("output.weight", 7)])
        found = from_gguf([first, second])
        assert [layer.weights_bytes for layer in found.layers] == [5, 6]
        assert (found.output_bytes, found.parameters) == (7, 18)

    def test_of_what_is_not_understood_the_weights_are_known(self) -> None:
        tensors = [tensor("token_embd.weight", 9, 3, 3), tensor("blk.0.x.weight", 5), tensor("v.blk.1.weight", 3)]
        found = shape(header("tomorrow", {"block_count": 1}, tensors))
        assert found.layers == ()
        assert found.weights_bytes == 17
        assert kv_bytes(found, context=4096, slots=1, kv_type="f16") == 0

    def test_the_starter(self, starter_model: Path) -> None:
        found = shape(gguf.check(starter_model))
        assert found.weights_bytes == gguf.check(starter_model).weights_bytes
        assert (found.vocabulary, found.context, found.heads, found.tied) == (49_152, 8192, 9, True)
        assert kv_bytes(found, context=8192, slots=1, kv_type="f16") == 8192 * 30 * 2 * 3 * 64 * 2


QWEN_STATE = {"ssm__conv_kernel": 4, "ssm__state_size": 128, "ssm__group_count": 16}
PUBLISHED_KIB_PER_TOKEN = {
    "qwen3-4b": (attention("qwen3", 36, 8, 128), 144),
    "qwen3-14b": (attention("qwen3", 40, 8, 128, heads=40), 160),
    "qwen3-coder-30b-a3b": (attention("qwen3moe", 48, 4, 128), 96),
    "ministral-3-8b": (attention("mistral3", 34, 8, 128), 136),
    "llama-3.3-70b": (attention("llama", 80, 8, 128, heads=64), 320),
    "qwen3.5-9b": (attention("qwen35", 32, 4, 256, ssm__inner_size=4096, **QWEN_STATE), 32),
    "qwen3.8-27b": (attention("qwen35", 64, 4, 256, ssm__inner_size=6144, **QWEN_STATE), 64),
    "qwen3.6-35b-a3b": (attention("qwen35moe", 40, 2, 256, ssm__inner_size=4096, **QWEN_STATE), 20),
    "nemotron-3.5-30b-a3b": (
        attention(
            "nemotron_h_moe",
            52,
            [2 if layer in (5, 12, 19, 26, 33, 42) else 0 for layer in range(52)],
            128,
            feed_forward_length=[1856 if layer % 2 and layer not in (5, 19, 33) else 0 for layer in range(52)],
        ),
        6,
    ),
    "glm-4.7-flash": (
        attention("deepseek2", 47, 1, 576, attention__key_length_mla=256, attention__value_length_mla=256),
        52.875,  # published as about 54 KB
    ),
}


@pytest.mark.parametrize("model", PUBLISHED_KIB_PER_TOKEN)
def test_published_cache_sizes(model: str) -> None:
    found, expected = PUBLISHED_KIB_PER_TOKEN[model]
    assert kv_bytes(shape(found), context=256, slots=1, kv_type="f16") == 256 * expected * KIB


def test_the_published_state_of_qwen35() -> None:
    found = shape(PUBLISHED_KIB_PER_TOKEN["qwen3.5-9b"][0])
    assert state_bytes(found, slots=1) == 50.25 * MIB
    assert state_bytes(found, slots=4) == 201 * MIB


def test_the_measured_cache_of_gemma3_12b() -> None:
    found = shape(attention("gemma3", 48, 8, 256, heads=16, attention__sliding_window=1024))
    assert kv_bytes(found, context=32_768, slots=1, kv_type="f16") == 2528 * MIB
