"""The tiny models load in llama.cpp, have the kind of memory they are for, and depend on what they have read."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.tiny_models import WINDOW, Architecture, write_tiny_model

# Loads a model, says what it is, tokenises each text, and follows it greedily. One JSON line per text on stdout.
CHILD = """
import ctypes, json, sys
import llama_cpp as llama
path, steps, texts = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
silent = llama.llama_log_callback(lambda level, text, data: None)
llama.llama_log_set(silent, None)
params = llama.llama_model_default_params()
params.n_gpu_layers = 0
model = llama.llama_model_load_from_file(path.encode(), params)
assert model, "not loaded"
vocab = llama.llama_model_get_vocab(model)
options = llama.llama_context_default_params()
options.n_ctx, options.n_threads, options.n_threads_batch = 512, 1, 1
for text in texts:
    context = llama.llama_init_from_model(model, options)
    assert context, "no context"
    data = text.encode()
    ids = (llama.llama_token * 512)()
    count = llama.llama_tokenize(vocab, data, len(data), ids, len(ids), llama.llama_vocab_get_add_bos(vocab), True)
    prompt = list(ids[:count])
    pieces = b""
    for token in prompt:
        buffer = ctypes.create_string_buffer(64)
        length = llama.llama_token_to_piece(vocab, token, buffer, 64, 0, True)
        pieces += buffer.raw[:length]
    feed, said = prompt, []
    for _ in range(steps):
        tokens = (llama.llama_token * len(feed))(*feed)  # the batch points into it
        assert llama.llama_decode(context, llama.llama_batch_get_one(tokens, len(feed))) == 0
        logits = llama.llama_get_logits_ith(context, -1)[: llama.llama_vocab_n_tokens(vocab)]
        feed = [max(range(len(logits)), key=logits.__getitem__)]
        said += feed
    print(json.dumps({
        "recurrent": bool(llama.llama_model_is_recurrent(model)), "hybrid": bool(llama.llama_model_is_hybrid(model)),
        "window": llama.llama_model_n_swa(model), "text": pieces.decode(), "prompt": prompt, "said": said,
    }))
    llama.llama_free(context)
llama.llama_model_free(model)
"""
TEXTS = (
    "The model reads the prompt, and then: héllo 世界!",
    "<|im_start|>user\nHi<|im_end|>\n",
    "the the the the " * 12 + "answer",
    "a the the the the " + "the the the the " * 11 + "answer",
)


def run(path: Path, steps: int, *texts: str) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(steps), *texts], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_it_loads_and_speaks(architecture: Architecture, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path, architecture)
    results = run(path, 16, *TEXTS)
    for text, result in zip(TEXTS, results, strict=True):
        assert result["text"].removeprefix("<s>") == text
        assert len(set(result["said"])) > 4, "a model that repeats itself proves nothing"
    assert results[0]["recurrent"] == (architecture == "mamba")
    assert results[0]["hybrid"] == (architecture == "lfm2")
    assert results[0]["window"] == (WINDOW if architecture == "gemma3" else 0)
    assert len(results[1]["prompt"]) < len(TEXTS[1]), "control tokens and merges are one token each"
    assert results[2]["said"] != results[3]["said"], "what was read long ago still matters"


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    first = write_tiny_model(tmp_path, "llama").read_bytes()
    assert write_tiny_model(tmp_path, "llama").read_bytes() == first
