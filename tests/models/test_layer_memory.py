"""What each layer keeps, by the rules of its architecture. The oracle's own figures are in another file of tests."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import ModelFileInvalid
from localinfer.models.architectures import ARCHITECTURES
from localinfer.models.gguf import Header
from localinfer.models.layer_memory import LayerMemory, layer_memory
from tests.models.headers import attention, header


def layers(found: Header) -> tuple[LayerMemory, ...]:
    memories = layer_memory(found)
    assert memories is not None
    return memories


def windows(found: Header) -> list[int]:
    return [layer.window for layer in layers(found)]


class TestAttention:
    def test_grouped_heads(self) -> None:
        assert layers(attention("llama", 2, 8, 128)) == (LayerMemory(keys=1024, values=1024),) * 2

    def test_what_is_not_said_follows_from_the_embedding(self) -> None:
        found = header("llama", {"block_count": 1, "embedding_length": 4096, "attention.head_count": 32})
        assert layers(found) == (LayerMemory(keys=4096, values=4096),)

    def test_heads_of_each_layer(self) -> None:
        assert [layer.keys for layer in layers(attention("deci", 3, [8, 0, 1], 128))] == [1024, 0, 128]

    def test_keys_and_values_of_other_lengths(self) -> None:
        found = attention("qwen3", 1, 2, 192, attention__value_length=128)
        assert layers(found) == (LayerMemory(keys=384, values=256),)

    def test_a_latent_has_no_values(self) -> None:
        about = {"attention__key_length_mla": 256, "attention__value_length_mla": 256, "attention__value_length": 512}
        assert layers(attention("deepseek2", 2, 1, 576, **about)) == (LayerMemory(keys=576),) * 2

    def test_latents_spread_out_in_older_files(self) -> None:
        found = attention("deepseek2", 1, 16, 192, attention__value_length=128, attention__kv_lora_rank=512)
        assert layers(found) == (LayerMemory(keys=3072, values=2048),)

    def test_encoders_keep_nothing(self) -> None:
        assert layers(attention("bert", 2, 12, 64)) == (LayerMemory(),) * 2

    def test_blocks_for_multi_token_prediction_keep_nothing(self) -> None:
        assert len(layers(attention("glm4moe", 47, 8, 128, nextn_predict_layers=1))) == 46

    def test_loops_over_the_same_blocks_keep_their_own(self) -> None:
        assert len(layers(attention("nanbeige", 4, 8, 128, num_loops=3))) == 12

    def test_the_router_of_adapters(self) -> None:
        assert layers(attention("graniteswitch", 2, 8, 128))[2:] == (LayerMemory(keys=128, values=128),)

    def test_a_second_cache_of_keys(self) -> None:
        about = {
            "attention__indexer__key_length": 128,
            "attention__indexer__top_k": 2048,
            "attention__key_length_mla": 256,
            "attention__value_length_mla": 256,
        }
        assert layers(attention("deepseek32", 1, 1, 576, **about)) == (LayerMemory(keys=704),)
        found = attention("glm-dsa", 11, 1, 576, context_length=1 << 20, **about)
        assert [layer.keys - 576 for layer in layers(found)] == [128, 128, 128, 0, 0, 0, 128, 0, 0, 0, 128]
        found = attention("glm-dsa", 3, 1, 576, attention__indexer__types=[1, 0, 0], **about)
        assert [layer.keys - 576 for layer in layers(found)] == [128, 0, 0]

    def test_a_second_cache_of_keys_and_values(self) -> None:
        about = {"attention__indexer__key_length": 64, "attention__indexer__top_k": 16, "leading_dense_block_count": 1}
        assert layers(attention("minimax-m3", 2, 4, 128, **about)) == (
            LayerMemory(keys=512, values=512),
            LayerMemory(keys=576, values=640),
        )


class TestWindows:
    @pytest.mark.parametrize(
        ("architecture", "expected"),
        [
            ("gemma2", "wfwfwfwf"),
            ("gpt-oss", "wfwfwfwf"),
            ("gemma3", "wwwwwfww"),
            ("gemma3n", "wwwwfwww"),
            ("cohere2", "wwwfwwwf"),
            ("cohere2moe", "fwwwfwww"),
            ("laguna", "fwwwfwww"),
            ("plamo3", "wwwwwwwf"),
            ("phi3", "ffffffff"),
            ("exaone4", "ffffffff"),
        ],
    )
    def test_which_layers_have_one(self, architecture: str, expected: str) -> None:
        found = windows(attention(architecture, 8, 1, 64, attention__sliding_window=512))
        assert found == [512 if kind == "w" else 0 for kind in expected]

    def test_of_some_sizes_of_a_model_only(self) -> None:
        found = windows(attention("exaone4", 64, 1, 64, attention__sliding_window=1024))
        assert found == [1024, 1024, 1024, 0] * 16

    def test_none_is_said(self) -> None:
        assert windows(attention("gemma3", 6, 1, 64)) == [0] * 6
        assert windows(attention("gemma2", 2, 1, 64)) == [4096, 0]
        assert windows(attention("llama4", 4, 1, 64)) == [8192, 8192, 8192, 0]
        assert windows(attention("llama4", 4, 1, 64, attention__sliding_window=0)) == [0] * 4
        assert windows(attention("smallthinker", 4, 1, 64)) == [0] * 4

    def test_a_size_that_is_not_the_one_said(self) -> None:
        assert windows(attention("llama4", 4, 1, 64, attention__sliding_window=256))[0] == 8192
        assert windows(attention("smallthinker", 4, 1, 64, attention__sliding_window=256)) == [0, 4096, 4096, 4096]

    def test_another_pattern(self) -> None:
        about = {"attention__sliding_window": 512, "attention__sliding_window_pattern": 3}
        assert windows(attention("gemma3", 6, 1, 64, **about)) == [512, 512, 0, 512, 512, 0]
        about["attention__sliding_window_pattern"] = 0
        assert windows(attention("gemma3", 2, 1, 64, **about)) == [512, 512]

    def test_a_list(self) -> None:
        about: dict[str, Any] = {
            "attention__sliding_window": 512,
            "attention__sliding_window_pattern": [True, False, True],
        }
        assert windows(attention("gemma4", 4, 1, 64, **about)) == [512, 0, 512, 0]
        assert windows(attention("gemma3", 2, 1, 64, **about)) == [512, 0]

    def test_heads_of_another_size(self) -> None:
        about = {"attention__key_length_swa": 256, "attention__value_length_swa": 128, "attention__sliding_window": 512}
        found = layers(attention("gemma4", 2, 2, 512, attention__sliding_window_pattern=[1, 0], **about))
        assert found == (LayerMemory(keys=512, values=256, window=512), LayerMemory(keys=1024, values=1024))

    def test_layers_that_share_the_caches_of_earlier_ones(self) -> None:
        about: dict[str, Any] = {
            "attention__sliding_window": 512,
            "attention__sliding_window_pattern": [1, 1, 0, 1, 1, 0],
        }
        found = layers(attention("gemma4", 6, 1, 256, attention__shared_kv_layers=3, **about))
        assert [layer.keys for layer in found] == [256, 256, 256, 0, 0, 0]
        found = layers(attention("gemma3n", 30, 2, 256, attention__sliding_window=512, attention__shared_kv_layers=15))
        assert [layer.keys for layer in found] == [512] * 20 + [0] * 10


class TestRecurrent:
    def test_layers_without_heads(self) -> None:
        about = {"ssm__conv_kernel": 4, "ssm__inner_size": 8192, "ssm__state_size": 16}
        assert layers(attention("jamba", 2, [0, 8], 128, **about)) == (
            LayerMemory(state_bytes=(3 * 8192 + 16 * 8192) * 4),
            LayerMemory(keys=1024, values=1024),
        )

    def test_every_fourth_layer_attends(self) -> None:
        about = {"ssm__conv_kernel": 4, "ssm__inner_size": 4096, "ssm__state_size": 128, "ssm__group_count": 16}
        state = (3 * (4096 + 2 * 16 * 128) + 128 * 4096) * 4
        recurrent = LayerMemory(state_bytes=state)
        full = LayerMemory(keys=1024, values=1024)
        assert layers(attention("qwen35", 5, 4, 256, **about)) == (*(recurrent,) * 3, full, recurrent)
        assert layers(attention("qwen35", 2, 4, 256, full_attention_interval=2, **about)) == (recurrent, full)
        listed = attention("qwen35", 2, 4, 256, attention__recurrent_layers=[0, 1], **about)
        assert layers(listed) == (full, recurrent)
        predicting = attention("qwen35", 5, 4, 256, nextn_predict_layers=1, **about)
        assert layers(predicting) == (*(recurrent,) * 3, full)

    def test_layers_that_only_feed_forward(self) -> None:
        about = {"ssm__conv_kernel": 4, "ssm__inner_size": 1024, "ssm__state_size": 128, "ssm__group_count": 8}
        found = attention("nemotron_h", 4, [0, 0, 8, 0], 128, feed_forward_length=[0, 4096, 0, 4096], **about)
        state = (3 * (1024 + 2 * 8 * 128) + 128 * 1024) * 4
        assert layers(found) == (
            LayerMemory(state_bytes=state),
            LayerMemory(),
            LayerMemory(keys=1024, values=1024),
            LayerMemory(),
        )

    def test_the_other_kinds_of_state(self) -> None:
        (found,) = layers(attention("rwkv7", 1, 0, 0, heads=0, wkv__head_size=64))
        assert found == LayerMemory(state_bytes=4096 * (2 + 64) * 4)
        (found,) = layers(attention("arwkv7", 1, 0, 0, heads=0, wkv__head_size=64, token_shift_count=1))
        assert found == LayerMemory(state_bytes=4096 * (1 + 64) * 4)
        (found,) = layers(attention("lfm2", 1, [0], 64, shortconv__l_cache=3))
        assert found == LayerMemory(state_bytes=2 * 4096 * 4)
        (found,) = layers(attention("kimi-linear", 1, [0], 192, kda__head_dim=128, ssm__conv_kernel=4))
        assert found == LayerMemory(state_bytes=(3 * 3 * 32 * 128 + 32 * 128 * 128) * 4)
        found, *_ = layers(attention("minimax-01", 8, 8, 128, heads=64))
        assert found == LayerMemory(state_bytes=64 * 128 * 128 * 4)

    def test_windows_between_recurrent_layers(self) -> None:
        found = layers(attention("lfm2", 2, [0, 8], 64, shortconv__l_cache=3, attention__sliding_window=1024))
        assert found == (LayerMemory(state_bytes=2 * 4096 * 4), LayerMemory(keys=512, values=512, window=1024))


class TestNotUnderstood:
    @pytest.mark.parametrize("architecture", ["clip", "t5", "deepseek4", "tomorrow", ""])
    def test_architectures(self, architecture: str) -> None:
        assert layer_memory(attention(architecture, 2, 8, 128)) is None

    @pytest.mark.parametrize("blocks", [0, 513, 1 << 31])
    def test_depths(self, blocks: int) -> None:
        assert layer_memory(attention("llama", blocks, 8, 128)) is None

    def test_more_predicting_blocks_than_blocks(self) -> None:
        assert layer_memory(attention("llama", 2, 8, 128, nextn_predict_layers=3)) is None

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({"attention__head_count_kv": [8, 8, 8]}, "has 3 values for 2 layers"),
            ({"attention__head_count": -1}, "is not a count"),
            ({"attention__head_count": 1 << 32}, "is not a count"),
            ({"attention__head_count": 1.5}, "is not a count"),
            ({"attention__head_count": "many"}, "is not a count"),
            ({"attention__head_count_kv": [8, 0.5]}, "is not a count"),
        ],
    )
    def test_keys_that_contradict(self, more: dict[str, Any], said: str) -> None:
        with pytest.raises(ModelFileInvalid, match=said) as caught:
            layer_memory(attention("llama", 2, 8, 128, **more))
        assert caught.value.message.isprintable()

    def test_lists_that_are_too_long_to_be_kept(self) -> None:
        keys = {"block_count": 2, "attention.head_count": 8}
        with pytest.raises(ModelFileInvalid, match="has 5,000 values"):
            layer_memory(header("llama", keys, attention__head_count=5000))


@given(
    architecture=st.sampled_from(sorted(ARCHITECTURES)),
    blocks=st.integers(1, 20),
    keys=st.dictionaries(
        st.sampled_from(
            [
                "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.sliding_window",
                "attention.sliding_window_pattern", "attention.shared_kv_layers", "attention.indexer.top_k",
                "attention.indexer.key_length", "full_attention_interval", "nextn_predict_layers", "ssm.conv_kernel",
                "ssm.inner_size", "ssm.state_size", "kda.head_dim", "wkv.head_size", "num_loops", "embedding_length",
            ]
        ),
        st.integers(0, 70) | st.lists(st.integers(0, 9), max_size=20),
    ),
)  # fmt: skip
def test_any_counts_give_layers_or_a_reason(architecture: str, blocks: int, keys: dict[str, int | list[int]]) -> None:
    try:
        found = layer_memory(header(architecture, {"block_count": blocks, **keys}))
    except ModelFileInvalid:
        return
    assert found is None or all(number >= 0 for layer in found for number in layer)
