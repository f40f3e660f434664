"""The parts of which most models are made, as tensor names and shapes. The length of a row stands first."""

from tests.architectures.writing import Shapes


def trunk(embedding: int, vocabulary: int, *, tied: bool, norm: str = "output_norm") -> Shapes:
    """Token embeddings, the last norm and the output head."""
    shapes: Shapes = {"token_embd.weight": (embedding, vocabulary), f"{norm}.weight": (embedding,)}
    if not tied:
        shapes["output.weight"] = (embedding, vocabulary)
    return shapes


def attention(at: str, embedding: int, heads: int, kv_heads: int, head: int, value: int | None = None) -> Shapes:
    """Norm, queries, keys, values and output."""
    value = value or head
    return {
        f"{at}.attn_norm.weight": (embedding,),
        f"{at}.attn_q.weight": (embedding, heads * head),
        f"{at}.attn_k.weight": (embedding, kv_heads * head),
        f"{at}.attn_v.weight": (embedding, kv_heads * value),
        f"{at}.attn_output.weight": (heads * value, embedding),
    }


def head_norms(at: str, head: int) -> Shapes:
    """Norms of queries and keys."""
    return {f"{at}.attn_q_norm.weight": (head,), f"{at}.attn_k_norm.weight": (head,)}


def gated(at: str, embedding: int, width: int) -> Shapes:
    """A gated feed-forward network and its norm."""
    return {
        f"{at}.ffn_norm.weight": (embedding,),
        f"{at}.ffn_gate.weight": (embedding, width),
        f"{at}.ffn_up.weight": (embedding, width),
        f"{at}.ffn_down.weight": (width, embedding),
    }


def experts(at: str, embedding: int, width: int, count: int) -> Shapes:
    """A router and its experts, without a norm."""
    return {
        f"{at}.ffn_gate_inp.weight": (embedding, count),
        f"{at}.ffn_gate_exps.weight": (embedding, width, count),
        f"{at}.ffn_up_exps.weight": (embedding, width, count),
        f"{at}.ffn_down_exps.weight": (width, embedding, count),
    }


def shared_expert(at: str, embedding: int, width: int) -> Shapes:
    """The expert that computes every token."""
    return {
        f"{at}.ffn_gate_shexp.weight": (embedding, width),
        f"{at}.ffn_up_shexp.weight": (embedding, width),
        f"{at}.ffn_down_shexp.weight": (width, embedding),
    }


def mamba2(at: str, embedding: int, *, inner: int, state: int, heads: int, groups: int, kernel: int = 4) -> Shapes:
    """A Mamba-2 mixer, without a norm."""
    convolved = inner + 2 * groups * state
    return {
        f"{at}.ssm_in.weight": (embedding, inner + convolved + heads),
        f"{at}.ssm_conv1d.weight": (kernel, convolved),
        f"{at}.ssm_conv1d.bias": (convolved,),
        f"{at}.ssm_dt.bias": (heads,),
        f"{at}.ssm_a": (1, heads),
        f"{at}.ssm_d": (1, heads),
        f"{at}.ssm_norm.weight": (inner // groups, groups),
        f"{at}.ssm_out.weight": (inner, embedding),
    }


def delta_net(at: str, embedding: int, *, state: int, key_heads: int, value_heads: int, kernel: int = 4) -> Shapes:
    """A gated delta net, without norms and without what decides on decay and writing."""
    keys, values = state * key_heads, state * value_heads
    return {
        f"{at}.attn_qkv.weight": (embedding, 2 * keys + values),
        f"{at}.attn_gate.weight": (embedding, values),
        f"{at}.ssm_conv1d.weight": (kernel, 2 * keys + values),
        f"{at}.ssm_dt.bias": (value_heads,),
        f"{at}.ssm_a": (value_heads,),
        f"{at}.ssm_norm.weight": (state,),
        f"{at}.ssm_out.weight": (values, embedding),
    }


def ssm_metadata(*, inner: int, state: int, heads: int, groups: int | None, kernel: int = 4) -> dict[str, object]:
    """Metadata of a Mamba layer or delta net; ``heads`` is called the rank of the time step."""
    known: dict[str, object] = {
        "ssm.conv_kernel": kernel,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": heads,
    }
    return known if groups is None else known | {"ssm.group_count": groups}


def sizes(context: int, embedding: int, layers: int, width: int | list[int]) -> dict[str, object]:
    """Metadata every model has."""
    return {
        "context_length": context,
        "embedding_length": embedding,
        "block_count": layers,
        "feed_forward_length": width,
        "attention.layer_norm_rms_epsilon": 1e-6,
    }


def heads_metadata(heads: int | list[int], kv_heads: int | list[int], head: int, value: int = 0) -> dict[str, object]:
    """Metadata of attention, with the head sizes spelled out."""
    return {
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": value or head,
        "rope.dimension_count": head,
    }
