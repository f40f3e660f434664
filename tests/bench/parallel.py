"""Several sequences at once, with and without drafts: all tokens ÷ the seconds of all of them together.

Their prompts are in the cache: what is compared is decoding.
"""

from collections.abc import Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from backends.llama_cpp import LlamaCppBackend
from localinfer.bench.texts import BUILT_IN
from localinfer.types import Speculation
from tests.bench.common import Pairs, Row, noted, ratio_at_least
from tests.bench.edits import EDITS, Asked
from tests.bench.passes import backend, run

CONTEXT = 1536
SEQUENCES = (4, 8)
QUESTIONS = [Asked((question,)) for question in BUILT_IN["chat"]]
OFF, AUTO = Speculation("off"), Speculation("auto")


def measure(model: Path, label: str, *, rounds: int, tokens: int) -> list[Row]:
    """The figures of one model."""
    rows = []
    for sequences in SEQUENCES:
        with backend(model, slots=sequences, context=CONTEXT) as loaded:
            for kind, asked, least in (("questions", QUESTIONS, 0.98), ("edits", list(EDITS.values()), 1.2)):
                prompts = [
                    [*loaded.tokenizer.encode(f"{index}\n", special=False), *each.tokens(loaded.tokenizer)]
                    for index, each in enumerate(islice(cycle(asked), sequences))
                ]
                run(loaded, prompts, OFF, 2)
                taken: Pairs[float] = Pairs([], [])
                for index in range(rounds):
                    sides = [(taken.ours, AUTO), (taken.peer, OFF)]
                    for speeds, speculation in sides if index % 2 == 0 else reversed(sides):
                        name = f"{label}, {sequences} sequences, {kind}, {speculation.drafter}"
                        speeds.append(noted(name, partial(_total_tps, loaded, prompts, speculation, tokens)))
                figure = f"{label}, {sequences} {kind} at once: auto ÷ off, tok/s"
                rows.append(Row(figure, ratio_at_least(least), tuple(taken.ours), tuple(taken.peer)))
    return rows


def _total_tps(
    loaded: LlamaCppBackend, prompts: Sequence[Sequence[int]], speculation: Speculation, tokens: int
) -> float:
    said, seconds = run(loaded, prompts, speculation, tokens)
    return sum(len(each.tokens) for each in said) / seconds
