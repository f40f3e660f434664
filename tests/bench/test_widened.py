"""The widened model says what the one it was made of says, as far as rounding lets it."""

from pathlib import Path

from gguf import GGUFReader

from tests.backends.llama_cpp.speculating import TIE
from tests.bench.widened import Width, parted, write_widened
from tests.tiny_models import EMBEDDING, HEADS, KV_HEADS, write_tiny_model

WIDE = Width("tiny", embedding=96, feed_forward=192, kv_heads=3)


def test_it_says_the_same(tmp_path: Path) -> None:
    tiny = write_tiny_model(tmp_path, "llama")
    wide = tmp_path / "wide.gguf"
    write_widened(wide, tiny, WIDE)
    for where, gap in parted(tiny, wide, ["What is kept in memory?", "Which window slides?"], 40):
        assert gap <= TIE, where
        assert where > 2
    reader = GGUFReader(wide)
    shapes = {tensor.name: tensor.shape.tolist() for tensor in reader.tensors}
    head = EMBEDDING // HEADS
    assert shapes["token_embd.weight"][0] == WIDE.embedding
    assert shapes["blk.0.attn_q.weight"] == [WIDE.embedding, WIDE.kv_heads * HEADS // KV_HEADS * head]
    assert shapes["blk.0.attn_output.weight"] == [WIDE.kv_heads * HEADS // KV_HEADS * head, WIDE.embedding]
    assert shapes["blk.0.ffn_down.weight"] == [WIDE.feed_forward, WIDE.embedding]
