"""Speculation: every comparison of it, in tables.

    LOCALINFER_NATIVE_TOOLS=FOLDER uv run python -m tests.bench.speculation MODELS

MODELS is a folder for the models that it makes, the starter and the starter in the shape of a larger one: 3.5 GB
while they are made, 2.5 GB in the end. It takes about a quarter of an hour on two cores, on which nothing else should
run meanwhile.

All texts are generated greedily from the same token ids on both sides. The speed of several prompts is that of all of
them together: tokens after the first ÷ seconds after the first.
"""

import argparse
from pathlib import Path

from tests.bench import drafters, lookup, parallel
from tests.bench.common import Row, table
from tests.bench.models import download_starter
from tests.bench.native import tool
from tests.bench.widened import HALF, widened

SECTIONS = ("lookup", "starter", "parallel", "drafters")
ROUNDS, TOKENS = 2, 224
LEAST = 2 * lookup.BEGINNING  # tokens, so that something comes after the beginning


def main() -> None:
    arguments = argparse.ArgumentParser(description="Compare speculation with plain decoding and with llama-server.")
    arguments.add_argument("models", type=Path, help="folder of the models, made where they are missing")
    arguments.add_argument("--starter", type=Path, help="the starter model's GGUF, if it is here already")
    arguments.add_argument("--only", choices=SECTIONS, action="append", help="a section; may be given several times")
    arguments.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    arguments.add_argument(
        "--tokens", type=int, default=TOKENS, help=f"of each reply, {LEAST} at least, default {TOKENS}"
    )
    given = arguments.parse_args()
    if given.rounds < 1 or given.tokens < LEAST:
        arguments.error(f"it takes a round, and {LEAST} tokens")
    if {"lookup", "starter", "drafters"} & set(given.only or SECTIONS):
        tool("llama-server")  # found now, or not worth beginning
    sections, rounds, tokens = given.only or SECTIONS, given.rounds, given.tokens
    starter = given.starter or download_starter(given.models)
    half = widened(given.models, starter, HALF, "Q4_K_M")
    rows: list[Row] = []
    details: list[str] = []
    if "lookup" in sections:
        found, more = lookup.measure(half, "0.5B-class", rounds=rounds, tokens=tokens, gain=1.9)
        rows += found
        details += more
    if "starter" in sections:
        found, more = lookup.measure(starter, "starter", rounds=rounds, tokens=tokens, gain=None)
        rows += found
        details += more
    if "parallel" in sections:
        rows += parallel.measure(half, "0.5B-class", rounds=rounds, tokens=tokens // 2)
    if "drafters" in sections:
        found, more = drafters.measure(given.models, starter, rounds=rounds, tokens=tokens // 2)
        rows += found
        details += more
    print("\n\n".join([table(rows), *details]))


if __name__ == "__main__":
    main()
