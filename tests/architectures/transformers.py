"""Models whose every layer attends: dense, with experts, with sliding windows, with latent or shared keys."""

from tests.architectures.blocks import (
    attention,
    experts,
    gated,
    head_norms,
    heads_metadata,
    shared_expert,
    sizes,
    trunk,
)
from tests.architectures.writing import Shapes, Synthetic


def _blocks(count: int) -> list[str]:
    return [f"blk.{index}" for index in range(count)]


def llama(embedding: int, layers: int, heads: int, width: int) -> Synthetic:
    """Llama 3.1: grouped queries; head sizes are not spelled out."""
    vocabulary, kv_heads = 128_256, 8
    shapes = trunk(embedding, vocabulary, tied=False) | {"rope_freqs.weight": (embedding // heads // 2,)}
    for at in _blocks(layers):
        shapes |= attention(at, embedding, heads, kv_heads, embedding // heads) | gated(at, embedding, width)
    metadata = sizes(131_072, embedding, layers, width) | {
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
    }
    return Synthetic(architecture="llama", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def qwen3() -> Synthetic:
    """Qwen3 4B: heads larger than their share of the embedding, a tied head."""
    vocabulary, embedding, layers, heads, kv_heads, head, width = 151_936, 2560, 36, 32, 8, 128, 9728
    shapes = trunk(embedding, vocabulary, tied=True)
    for at in _blocks(layers):
        shapes |= attention(at, embedding, heads, kv_heads, head) | head_norms(at, head) | gated(at, embedding, width)
    metadata = sizes(40_960, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    return Synthetic(architecture="qwen3", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def qwen3moe() -> Synthetic:
    """Qwen3 30B-A3B: 8 of 128 experts."""
    vocabulary, embedding, layers, heads, kv_heads, head = 151_936, 2048, 48, 32, 4, 128
    shapes = trunk(embedding, vocabulary, tied=False)
    for at in _blocks(layers):
        shapes |= attention(at, embedding, heads, kv_heads, head) | head_norms(at, head)
        shapes |= {f"{at}.ffn_norm.weight": (embedding,)} | experts(at, embedding, 768, 128)
    metadata = sizes(40_960, embedding, layers, 6144) | heads_metadata(heads, kv_heads, head)
    metadata |= {"expert_count": 128, "expert_used_count": 8, "expert_feed_forward_length": 768}
    return Synthetic(architecture="qwen3moe", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def gpt_oss() -> Synthetic:
    """gpt-oss 20B: every other layer has a window of 128 tokens, experts in 4-bit floats with biases, sinks."""
    vocabulary, embedding, layers, heads, kv_heads, head, width, count = 201_088, 2880, 24, 64, 8, 64, 2880, 32
    shapes = trunk(embedding, vocabulary, tied=False)
    for at in _blocks(layers):
        shapes |= attention(at, embedding, heads, kv_heads, head) | experts(at, embedding, width, count)
        shapes |= {
            f"{at}.attn_q.bias": (heads * head,),
            f"{at}.attn_k.bias": (kv_heads * head,),
            f"{at}.attn_v.bias": (kv_heads * head,),
            f"{at}.attn_output.bias": (embedding,),
            f"{at}.attn_sinks.weight": (heads,),
            f"{at}.post_attention_norm.weight": (embedding,),
            f"{at}.ffn_gate_inp.bias": (count,),
            f"{at}.ffn_gate_exps.bias": (width, count),
            f"{at}.ffn_up_exps.bias": (width, count),
            f"{at}.ffn_down_exps.bias": (embedding, count),
        }
    metadata = sizes(131_072, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= {"expert_count": count, "expert_used_count": 4, "expert_feed_forward_length": width}
    metadata |= {"attention.sliding_window": 128}
    return Synthetic(
        architecture="gpt-oss", vocabulary=vocabulary, metadata=metadata, shapes=shapes, quantization="MXFP4"
    )


def _gemma_block(at: str, embedding: int, heads: int, kv_heads: int, head: int, width: int) -> Shapes:
    norms: Shapes = {
        f"{at}.post_attention_norm.weight": (embedding,),
        f"{at}.post_ffw_norm.weight": (embedding,),
    }
    return attention(at, embedding, heads, kv_heads, head) | norms | gated(at, embedding, width)


def gemma2() -> Synthetic:
    """Gemma 2 9B: every other layer has a window of 4,096 tokens."""
    vocabulary, embedding, layers, heads, kv_heads, head, width = 256_000, 3584, 42, 16, 8, 256, 14_336
    shapes = trunk(embedding, vocabulary, tied=True)
    for at in _blocks(layers):
        shapes |= _gemma_block(at, embedding, heads, kv_heads, head, width)
    metadata = sizes(8192, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= {
        "attention.sliding_window": 4096,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    }
    return Synthetic(architecture="gemma2", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def gemma3() -> Synthetic:
    """Gemma 3 12B: five layers of six have a window of 1,024 tokens."""
    vocabulary, embedding, layers, heads, kv_heads, head, width = 262_208, 3840, 48, 16, 8, 256, 15_360
    shapes = trunk(embedding, vocabulary, tied=True)
    for at in _blocks(layers):
        shapes |= _gemma_block(at, embedding, heads, kv_heads, head, width) | head_norms(at, head)
    metadata = sizes(131_072, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= {"attention.sliding_window": 1024}
    return Synthetic(architecture="gemma3", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def gemma3n() -> Synthetic:
    """Gemma 3n E4B: four layers of five have a window of 512 tokens; the last 15 use the keys of earlier ones."""
    vocabulary, embedding, layers, heads, kv_heads, head, width = 262_144, 2048, 35, 8, 2, 256, 16_384
    inputs, per_layer, rank = 4, 256, 64
    shapes = trunk(embedding, vocabulary, tied=True) | {
        "altup_proj.weight": (embedding, embedding, inputs - 1),
        "altup_unembd_proj.weight": (embedding, embedding, inputs - 1),
        "per_layer_token_embd.weight": (per_layer * layers, vocabulary),
        "per_layer_model_proj.weight": (embedding, per_layer * layers),
        "per_layer_proj_norm.weight": (per_layer,),
    }
    for at in _blocks(layers):
        shapes |= _gemma_block(at, embedding, heads, kv_heads, head, width) | head_norms(at, head)
        shapes |= {
            f"{at}.inp_gate.weight": (embedding, per_layer),
            f"{at}.proj.weight": (per_layer, embedding),
            f"{at}.post_norm.weight": (embedding,),
            f"{at}.altup_correct_coef.weight": (inputs, inputs),
            f"{at}.altup_correct_scale.weight": (embedding,),
            f"{at}.altup_predict_coef.weight": (inputs, inputs * inputs),
            f"{at}.altup_router.weight": (embedding, inputs),
            f"{at}.altup_router_norm.weight": (embedding,),
            f"{at}.laurel_l.weight": (embedding, rank),
            f"{at}.laurel_r.weight": (rank, embedding),
            f"{at}.laurel_post_norm.weight": (embedding,),
        }
    metadata = sizes(32_768, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= {
        "attention.sliding_window": 512,
        "attention.sliding_window_pattern": [index % 5 != 4 for index in range(layers)],
        "attention.shared_kv_layers": 15,
        "embedding_length_per_layer_input": per_layer,
        "altup.num_inputs": inputs,
        "altup.active_idx": 0,
    }
    return Synthetic(architecture="gemma3n", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def gemma4() -> Synthetic:
    """Gemma 4 E4B: windowed layers have heads of 256 elements, the others of 512; the last 18 share keys."""
    vocabulary, embedding, layers, heads, kv_heads, width = 262_144, 2560, 42, 8, 2, 10_240
    head, windowed_head, per_layer = 512, 256, 256
    windowed = [index % 6 != 5 for index in range(layers)]
    shapes = trunk(embedding, vocabulary, tied=True) | {
        "per_layer_token_embd.weight": (per_layer * layers, vocabulary),
        "per_layer_model_proj.weight": (embedding, per_layer * layers),
        "per_layer_proj_norm.weight": (per_layer,),
        "rope_freqs.weight": (head // 2,),
    }
    for at, here in zip(_blocks(layers), windowed, strict=True):
        size = windowed_head if here else head
        shapes |= _gemma_block(at, embedding, heads, kv_heads, size, width) | head_norms(at, size)
        shapes |= {
            f"{at}.layer_output_scale.weight": (1,),
            f"{at}.inp_gate.weight": (embedding, per_layer),
            f"{at}.proj.weight": (per_layer, embedding),
            f"{at}.post_norm.weight": (embedding,),
        }
    metadata = sizes(131_072, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= {
        "attention.key_length_swa": windowed_head,
        "attention.value_length_swa": windowed_head,
        "rope.dimension_count_swa": windowed_head,
        "attention.sliding_window": 512,
        "attention.sliding_window_pattern": windowed,
        "attention.shared_kv_layers": 18,
        "embedding_length_per_layer_input": per_layer,
        "final_logit_softcapping": 30.0,
    }
    return Synthetic(architecture="gemma4", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def deepseek2() -> Synthetic:
    """DeepSeek V2 Lite: latent attention, which keeps one key of 576 elements per token and layer."""
    vocabulary, embedding, layers, heads, latent, rope, key, value = 102_400, 2048, 27, 16, 512, 64, 192, 128
    width, expert_width, count, shared = 10_944, 1408, 64, 2
    shapes = trunk(embedding, vocabulary, tied=False)
    for index, at in enumerate(_blocks(layers)):
        shapes |= {
            f"{at}.attn_norm.weight": (embedding,),
            f"{at}.attn_q.weight": (embedding, heads * key),
            f"{at}.attn_kv_a_mqa.weight": (embedding, latent + rope),
            f"{at}.attn_kv_a_norm.weight": (latent,),
            f"{at}.attn_k_b.weight": (key - rope, latent, heads),
            f"{at}.attn_v_b.weight": (latent, value, heads),
            f"{at}.attn_output.weight": (heads * value, embedding),
        }
        if index == 0:
            shapes |= gated(at, embedding, width)
        else:
            shapes |= {f"{at}.ffn_norm.weight": (embedding,)} | experts(at, embedding, expert_width, count)
            shapes |= shared_expert(at, embedding, shared * expert_width)
    metadata = sizes(163_840, embedding, layers, width) | heads_metadata(heads, 1, latent + rope, latent)
    metadata |= {
        "rope.dimension_count": rope,
        "attention.kv_lora_rank": latent,
        "attention.key_length_mla": key,
        "attention.value_length_mla": value,
        "leading_dense_block_count": 1,
        "expert_count": count,
        "expert_used_count": 6,
        "expert_shared_count": shared,
        "expert_feed_forward_length": expert_width,
        "expert_weights_scale": 1.0,
    }
    return Synthetic(architecture="deepseek2", vocabulary=vocabulary, metadata=metadata, shapes=shapes)
