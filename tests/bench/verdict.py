"""How long it takes to say whether a model of the hub fits: requests, bytes and seconds on a slow line.

    uv run python -m tests.bench.verdict [HEADER_MB]

A hub on this machine answers after 50 ms and sends 200 Mbit/s; the model is a header of HEADER_MB in front of a file of
several gigabytes that is never sent.
"""

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import gguf
import numpy as np

from localinfer.advice import Advice
from localinfer.lookup import look_up
from localinfer.models.hub import Hub
from localinfer.models.plan import Ask
from tests.models.hub_server import HubServer, serving

REPO, FILE = "owner/model-GGUF", "model-Q4_K_M.gguf"
LATENCY_S, RATE = 0.05, 25e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("header_mb", nargs="?", type=float, default=6.0, help="size of the header in MB")
    given = arguments.parse_args()
    with TemporaryDirectory() as folder, serving(HubServer()) as hub:
        os.environ["HF_ENDPOINT"] = hub.url
        hub.offer(REPO, {FILE: model(Path(folder), given.header_mb)})
        hub.latency_s, hub.rate = LATENCY_S, RATE
        advice = Advice()
        _ = advice.machine  # asked for once in a session, as the hub's library is loaded once
        Hub().repo(REPO)  # the hub here takes the hash of its files when it is first asked
        hub.requests.clear()
        begin = time.perf_counter()
        looked = look_up(f"{REPO}:Q4_K_M", advice, Ask(), offline=False)
        seconds = time.perf_counter() - begin
    ranges = [request for request in hub.requests if request.place == "cdn"]
    print(f"header of {given.header_mb:.1f} MB: {looked.plan.verdict} after {seconds:.2f} s")
    print(f"  {len(hub.requests)} requests in all, {len(ranges)} for the header, {hub.served_bytes / 1e6:.1f} MB")


def model(folder: Path, header_mb: float) -> bytes:
    """A llama of one block whose vocabulary makes the header as long as asked for."""
    writer = gguf.GGUFWriter(folder / FILE, "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(256)
    writer.add_block_count(1)
    writer.add_feed_forward_length(512)
    writer.add_head_count(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    tokens = int(header_mb * 1e6 / 29)
    writer.add_token_list([f"token {number:08d}!!!" for number in range(tokens)])
    for name, shape in (("token_embd.weight", (tokens, 256)), ("output_norm.weight", (256,))):
        writer.add_tensor(name, np.zeros(shape, np.float16 if len(shape) == 2 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (folder / FILE).read_bytes()


if __name__ == "__main__":
    main()
