"""Models some or all of whose layers keep a state of fixed size: Mamba, RWKV, short convolutions, delta nets."""

from tests.architectures.blocks import (
    attention,
    delta_net,
    experts,
    gated,
    head_norms,
    heads_metadata,
    mamba2,
    shared_expert,
    sizes,
    ssm_metadata,
    trunk,
)
from tests.architectures.writing import Shapes, Synthetic

NEMOTRON = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"  # * attends, M is Mamba, - is feed-forward


def _blocks(count: int) -> list[str]:
    return [f"blk.{index}" for index in range(count)]


def mamba() -> Synthetic:
    """Mamba 2.8B."""
    vocabulary, embedding, layers, inner, state, rank, kernel = 50_280, 2560, 64, 5120, 16, 160, 4
    shapes = trunk(embedding, vocabulary, tied=True)
    for at in _blocks(layers):
        shapes |= {
            f"{at}.attn_norm.weight": (embedding,),
            f"{at}.ssm_in.weight": (embedding, 2 * inner),
            f"{at}.ssm_conv1d.weight": (kernel, inner),
            f"{at}.ssm_conv1d.bias": (inner,),
            f"{at}.ssm_x.weight": (inner, rank + 2 * state),
            f"{at}.ssm_dt.weight": (rank, inner),
            f"{at}.ssm_dt.bias": (inner,),
            f"{at}.ssm_a": (state, inner),
            f"{at}.ssm_d": (inner,),
            f"{at}.ssm_out.weight": (inner, embedding),
        }
    metadata = sizes(1_048_576, embedding, layers, 0) | {"attention.head_count": 0}
    metadata |= ssm_metadata(inner=inner, state=state, heads=rank, groups=None)
    return Synthetic(architecture="mamba", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def mamba2_model() -> Synthetic:
    """Mamba-2 2.7B."""
    vocabulary, embedding, layers, inner, state, heads, groups = 50_288, 2560, 64, 5120, 128, 80, 1
    shapes = trunk(embedding, vocabulary, tied=True)
    for at in _blocks(layers):
        shapes |= {f"{at}.attn_norm.weight": (embedding,)}
        shapes |= mamba2(at, embedding, inner=inner, state=state, heads=heads, groups=groups)
    metadata = sizes(1_048_576, embedding, layers, 0) | {"attention.head_count": 0}
    metadata |= ssm_metadata(inner=inner, state=state, heads=heads, groups=groups)
    return Synthetic(architecture="mamba2", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def lfm2() -> Synthetic:
    """LFM2 1.2B: ten short convolutions and six attention layers."""
    vocabulary, embedding, layers, heads, kv_heads, width, kernel = 65_536, 2048, 16, 32, 8, 8192, 3
    attends = {2, 5, 8, 10, 12, 14}
    head = embedding // heads
    shapes = trunk(embedding, vocabulary, tied=True, norm="token_embd_norm")
    for index, at in enumerate(_blocks(layers)):
        shapes |= gated(at, embedding, width)
        if index in attends:
            shapes |= attention(at, embedding, heads, kv_heads, head) | head_norms(at, head)
        else:
            shapes |= {
                f"{at}.attn_norm.weight": (embedding,),
                f"{at}.shortconv.conv.weight": (kernel, embedding),
                f"{at}.shortconv.in_proj.weight": (embedding, 3 * embedding),
                f"{at}.shortconv.out_proj.weight": (embedding, embedding),
            }
    metadata = sizes(128_000, embedding, layers, width) | {
        "attention.head_count": heads,
        "attention.head_count_kv": [kv_heads if index in attends else 0 for index in range(layers)],
        "shortconv.l_cache": kernel,
    }
    return Synthetic(architecture="lfm2", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def falcon_h1() -> Synthetic:
    """Falcon-H1 1.5B: every layer attends and keeps a state."""
    vocabulary, embedding, layers, heads, kv_heads, head, width = 65_537, 2048, 24, 8, 2, 128, 4096
    inner, state, ssm_heads, groups = 3072, 256, 48, 1
    shapes = trunk(embedding, vocabulary, tied=False)
    for at in _blocks(layers):
        shapes |= attention(at, embedding, heads, kv_heads, head) | gated(at, embedding, width)
        shapes |= mamba2(at, embedding, inner=inner, state=state, heads=ssm_heads, groups=groups)
        shapes[f"{at}.ffn_norm"] = shapes.pop(f"{at}.ffn_norm.weight")
    metadata = sizes(131_072, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= ssm_metadata(inner=inner, state=state, heads=ssm_heads, groups=groups)
    return Synthetic(architecture="falcon-h1", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def granite_hybrid() -> Synthetic:
    """Granite 4.0 H Tiny: four of 40 layers attend, 6 of 64 experts."""
    vocabulary, embedding, layers, heads, kv_heads = 100_352, 1536, 40, 12, 4
    inner, state, ssm_heads, groups, width, shared, count = 3072, 128, 48, 1, 512, 1024, 64
    attends = {5, 15, 25, 35}
    shapes = trunk(embedding, vocabulary, tied=True)
    for index, at in enumerate(_blocks(layers)):
        if index in attends:
            shapes |= attention(at, embedding, heads, kv_heads, embedding // heads)
        else:
            shapes |= {f"{at}.attn_norm.weight": (embedding,)}
            shapes |= mamba2(at, embedding, inner=inner, state=state, heads=ssm_heads, groups=groups)
        shapes |= {f"{at}.ffn_norm.weight": (embedding,)} | experts(at, embedding, width, count)
        shapes |= shared_expert(at, embedding, shared)
    metadata = sizes(131_072, embedding, layers, width) | {
        "attention.head_count": heads,
        "attention.head_count_kv": [kv_heads if index in attends else 0 for index in range(layers)],
        "rope.dimension_count": embedding // heads,
        "expert_count": count,
        "expert_used_count": 6,
        "expert_shared_feed_forward_length": shared,
    }
    metadata |= ssm_metadata(inner=inner, state=state, heads=ssm_heads, groups=groups)
    return Synthetic(architecture="granitehybrid", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def _qwen_block(at: str, embedding: int, heads: int, kv_heads: int, head: int) -> Shapes:
    """Attention whose queries bring a gate along."""
    shapes = attention(at, embedding, heads, kv_heads, head) | head_norms(at, head)
    return shapes | {f"{at}.attn_q.weight": (embedding, 2 * heads * head)}


def qwen35() -> Synthetic:
    """Qwen3.5 9B: every fourth layer attends, the others are gated delta nets."""
    vocabulary, embedding, layers, heads, kv_heads, head, width = 248_320, 4096, 32, 16, 4, 256, 12_288
    state, key_heads, value_heads = 128, 16, 32
    shapes = trunk(embedding, vocabulary, tied=False)
    for index, at in enumerate(_blocks(layers)):
        if index % 4 == 3:
            shapes |= _qwen_block(at, embedding, heads, kv_heads, head)
        else:
            shapes |= {f"{at}.attn_norm.weight": (embedding,)}
            shapes |= delta_net(at, embedding, state=state, key_heads=key_heads, value_heads=value_heads)
            shapes |= {f"{at}.ssm_{name}.weight": (embedding, value_heads) for name in ("alpha", "beta")}
        shapes |= gated(at, embedding, width) | {f"{at}.post_attention_norm.weight": (embedding,)}
        del shapes[f"{at}.ffn_norm.weight"]
    metadata = sizes(262_144, embedding, layers, width) | heads_metadata(heads, kv_heads, head)
    metadata |= {
        "rope.dimension_count": 64,
        "rope.dimension_sections": [11, 11, 10, 0],
        "full_attention_interval": 4,
    }
    metadata |= ssm_metadata(inner=state * value_heads, state=state, heads=value_heads, groups=key_heads)
    return Synthetic(architecture="qwen35", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def qwen3next() -> Synthetic:
    """Qwen3-Next 80B-A3B: every fourth layer attends; 10 of 512 experts."""
    vocabulary, embedding, layers, heads, kv_heads, head, width, count = 151_936, 2048, 48, 16, 2, 256, 512, 512
    state, key_heads, value_heads = 128, 16, 32
    shapes = trunk(embedding, vocabulary, tied=False)
    for index, at in enumerate(_blocks(layers)):
        if index % 4 == 3:
            shapes |= _qwen_block(at, embedding, heads, kv_heads, head)
        else:
            shapes |= {f"{at}.attn_norm.weight": (embedding,), f"{at}.ssm_ba.weight": (embedding, 2 * value_heads)}
            shapes |= delta_net(at, embedding, state=state, key_heads=key_heads, value_heads=value_heads)
        shapes |= {f"{at}.post_attention_norm.weight": (embedding,), f"{at}.ffn_gate_inp_shexp.weight": (embedding,)}
        shapes |= experts(at, embedding, width, count) | shared_expert(at, embedding, width)
    metadata = sizes(262_144, embedding, layers, 5120) | heads_metadata(heads, kv_heads, head)
    metadata |= {
        "rope.dimension_count": 64,
        "full_attention_interval": 4,
        "expert_count": count,
        "expert_used_count": 10,
        "expert_feed_forward_length": width,
        "expert_shared_feed_forward_length": width,
    }
    metadata |= ssm_metadata(inner=state * value_heads, state=state, heads=value_heads, groups=key_heads)
    return Synthetic(architecture="qwen3next", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def nemotron_h() -> Synthetic:
    """Nemotron Nano 9B v2: a layer is attention, Mamba-2 or feed-forward."""
    vocabulary, embedding, heads, kv_heads, head, width = 131_072, 4480, 40, 8, 128, 15_680
    inner, state, ssm_heads, groups = 10_240, 128, 128, 8
    shapes = trunk(embedding, vocabulary, tied=False)
    for at, kind in zip(_blocks(len(NEMOTRON)), NEMOTRON, strict=True):
        shapes |= {f"{at}.attn_norm.weight": (embedding,)}
        if kind == "*":
            shapes |= attention(at, embedding, heads, kv_heads, head)
        elif kind == "M":
            shapes |= mamba2(at, embedding, inner=inner, state=state, heads=ssm_heads, groups=groups)
        else:
            shapes |= {f"{at}.ffn_up.weight": (embedding, width), f"{at}.ffn_down.weight": (width, embedding)}
    widths = [width if kind == "-" else 0 for kind in NEMOTRON]
    metadata = sizes(131_072, embedding, len(NEMOTRON), widths)
    metadata |= heads_metadata(heads, [kv_heads if kind == "*" else 0 for kind in NEMOTRON], head)
    metadata |= {"attention.layer_norm_epsilon": 1e-5}
    metadata |= ssm_metadata(inner=inner, state=state, heads=ssm_heads, groups=groups)
    return Synthetic(architecture="nemotron_h", vocabulary=vocabulary, metadata=metadata, shapes=shapes)


def rwkv7() -> Synthetic:
    """RWKV-7 2.9B."""
    vocabulary, embedding, layers, width, head = 65_536, 2560, 32, 10_240, 64
    decay, rate, residual, gate = 96, 96, 64, 320
    shapes = trunk(embedding, vocabulary, tied=False) | {
        "output_norm.bias": (embedding,),
        "token_embd_norm.weight": (embedding,),
        "token_embd_norm.bias": (embedding,),
    }
    for index, at in enumerate(_blocks(layers)):
        rank = residual if index else rate
        ranks = {"w": decay, "a": rate, "v": rank}
        shapes |= {
            f"{at}.{norm}.{part}": (embedding,)
            for norm in ("attn_norm", "attn_norm_2", "time_mix_ln")
            for part in ("weight", "bias")
        }
        shapes |= {f"{at}.time_mix_{name}0.weight": (embedding,) for name in ranks}
        shapes |= {f"{at}.time_mix_{name}1.weight": (embedding, size) for name, size in ranks.items()}
        shapes |= {f"{at}.time_mix_{name}2.weight": (size, embedding) for name, size in ranks.items()}
        shapes |= {f"{at}.time_mix_g1.weight": (embedding, gate), f"{at}.time_mix_g2.weight": (gate, embedding)}
        shapes |= {f"{at}.time_mix_{name}.weight": (embedding,) for name in ("k_k", "k_a", "r_k")}
        shapes |= {
            f"{at}.time_mix_{name}.weight": (embedding, embedding) for name in ("key", "value", "receptance", "output")
        }
        shapes |= {
            f"{at}.time_mix_lerp_fused.weight": (embedding, 1, 1, 6),
            f"{at}.channel_mix_lerp_k.weight": (embedding, 1, 1),
            f"{at}.channel_mix_key.weight": (embedding, width),
            f"{at}.channel_mix_value.weight": (width, embedding),
        }
    metadata = sizes(1_048_576, embedding, layers, width) | {
        "attention.head_count": 0,
        "attention.layer_norm_epsilon": 1e-5,
        "wkv.head_size": head,
        "token_shift_count": 2,
        "attention.decay_lora_rank": decay,
        "attention.iclr_lora_rank": rate,
        "attention.value_residual_mix_lora_rank": residual,
        "attention.gate_lora_rank": gate,
    }
    return Synthetic(architecture="rwkv7", vocabulary=vocabulary, metadata=metadata, shapes=shapes)
