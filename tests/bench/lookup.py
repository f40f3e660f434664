"""Prompt lookup: its speed beside plain decoding, beside llama-server with each of its own lookups, and beside the best
that was possible.

On edits of code it should gain, on questions it should cost nothing. A round is one load of each side; llama-server is
started anew for each of its modes, because one of them remembers what it has said before. The first round tries all of
its modes, further ones the best of them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from backends.llama_cpp import LlamaCppBackend
from localinfer.types import Speculation
from tests.bench.common import Row, at_least, median, noted, number, ratio_at_least, sheet
from tests.bench.edits import EDITS, QUESTIONS, Asked
from tests.bench.hindsight import agreeing, best
from tests.bench.native import llama_server
from tests.bench.passes import Run, Speed, backend, run, server_speed, tps

CONTEXT = 2048
BEGINNING = 64  # tokens within which it may still find out
MODES = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")
PLAIN = "plain"
OFF, LOOKUP = Speculation("off"), Speculation("lookup")

Prompts = Mapping[str, Sequence[int]]


class Replay(msgspec.Struct, frozen=True):
    """The passes of one text by the costs that were measured: plain, as they were made, and the best with hindsight.

    Lengths are the drafted tokens of each pass.
    """

    plain_s: float
    made_s: float
    best_s: float
    made: tuple[int, ...]
    best: tuple[int, ...]

    @classmethod
    def of(cls, curve_s: Sequence[float], prompt: Sequence[int], said: Run) -> "Replay":
        """That of a run; ``curve_s[n]`` are the seconds of a pass over n rows."""
        made = tuple(each.drafted for each in said.passes[1:])
        possible = best(curve_s, agreeing(prompt, said.tokens, len(curve_s) - 2))
        return cls(
            plain_s=curve_s[1] * (len(said.tokens) - 1),
            made_s=sum(curve_s[1 + length] for length in made),
            best_s=possible.seconds,
            made=made,
            best=possible.lengths,
        )


class Ours(NamedTuple):
    """One prompt, in one round."""

    plain: Speed
    drafted: Speed
    plain_late: Speed  # after the first ``BEGINNING`` tokens
    drafted_late: Speed
    replay: Replay
    curve_s: Sequence[float]
    alike: int  # tokens before the two texts part at a tie, if they do


class Round(NamedTuple):
    """What was measured of each prompt by name; of llama-server by its mode and then by prompt."""

    ours: Mapping[str, Ours]
    peer: Mapping[str, Mapping[str, Speed]]


def measure(model: Path, label: str, *, rounds: int, tokens: int, gain: float | None) -> tuple[list[Row], list[str]]:
    """The figures of one model, and tables of details. ``gain`` is what is promised on edits of code."""
    prompts = _tokenised(model, EDITS | QUESTIONS)
    edits = {name: prompts[name] for name in EDITS}
    taken: list[Round] = []
    for index in range(rounds):
        begun = f"{label}, round {index + 1} of {rounds}"
        ours: Mapping[str, Ours] = {}
        peer: dict[str, Mapping[str, Speed]] = {}
        steps = [None, PLAIN, *([_leader(taken)] if taken else MODES)]
        for mode in steps if index % 2 == 0 else reversed(steps):
            if mode is None:
                ours = noted(f"{begun}, localinfer", partial(_ours, model, prompts, tokens, first=index % 2), _gains)
            else:
                name = f"{begun}, llama-server {mode}"
                peer[mode] = noted(name, partial(_peer, model, edits, tokens, mode), tps)
        taken.append(Round(ours, peer))
    return _rows(taken, label, gain), [_speeds(taken, label), _replays(taken, label)]


def _leader(taken: Sequence[Round]) -> str:
    """llama-server's best mode in the first round."""
    peer = taken[0].peer
    return max(MODES, key=lambda mode: Speed.all(peer[mode].values()).tps)


def _tokenised(model: Path, asked: Mapping[str, Asked]) -> Prompts:
    with backend(model, context=CONTEXT) as loaded:
        return {name: each.tokens(loaded.tokenizer) for name, each in asked.items()}


def _ours(model: Path, prompts: Prompts, tokens: int, *, first: int) -> dict[str, Ours]:
    with backend(model, context=CONTEXT) as loaded:
        run(loaded, [next(iter(prompts.values()))[:64]], OFF, 8)
        return {name: _alternate(loaded, prompt, tokens, first) for name, prompt in prompts.items()}


def _alternate(loaded: LlamaCppBackend, prompt: Sequence[int], tokens: int, first: int) -> Ours:
    said: dict[Speculation, Run] = {}
    for speculation in (OFF, LOOKUP) if first == 0 else (LOOKUP, OFF):
        ((said[speculation],), _) = run(loaded, [prompt], speculation, tokens)
    curve_s = loaded.speculator.costs.curve()
    plain, drafted = said[OFF], said[LOOKUP]
    return Ours(
        Speed.of(plain),
        Speed.of(drafted),
        Speed.of(plain, BEGINNING),
        Speed.of(drafted, BEGINNING),
        Replay.of(curve_s, prompt, drafted),
        curve_s,
        sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(plain.tokens, drafted.tokens, strict=False))),
    )


def _gains(seen: Mapping[str, Ours]) -> str:
    return ", ".join(f"{name} {each.plain.tps:.1f} → {each.drafted.tps:.1f}" for name, each in seen.items())


def _peer(model: Path, prompts: Prompts, tokens: int, mode: str) -> dict[str, Speed]:
    arguments = () if mode == PLAIN else ("--spec-type", mode)
    with llama_server(model, slots=1, context=CONTEXT, arguments=arguments) as side:
        return {name: server_speed(side, prompt, tokens) for name, prompt in prompts.items()}


def _rows(taken: Sequence[Round], label: str, gain: float | None) -> list[Row]:
    def ours(names: Sequence[str], which: str) -> tuple[float, ...]:
        return tuple(Speed.all(getattr(each.ours[name], which) for name in names).tps for each in taken)

    def peer(mode: str) -> tuple[float, ...]:
        return tuple(Speed.all(each.peer[mode].values()).tps for each in taken)

    def reached(names: Sequence[str]) -> tuple[float, ...]:
        return tuple(
            sum(each.ours[name].replay.best_s for name in names) / sum(each.ours[name].replay.made_s for name in names)
            for each in taken
        )

    edits, questions = tuple(EDITS), tuple(QUESTIONS)
    leader = _leader(taken)
    worst = min((*edits, *questions), key=lambda name: median(reached([name])))
    much, more = (ratio_at_least(gain), ratio_at_least(1.2)) if gain else (None, None)
    return [
        Row(f"{label}, edits: lookup ÷ plain, tok/s", much, ours(edits, "drafted"), ours(edits, "plain")),
        Row(f"{label}, edits: lookup ÷ llama-server {leader}, tok/s", more, ours(edits, "drafted"), peer(leader)),
        Row(f"{label}, edits: llama-server {leader} ÷ its plain, tok/s", None, peer(leader), peer(PLAIN)),
        Row(f"{label}, edits: of the best with hindsight", at_least(0.85), reached(edits)),
        Row(f"{label}, {worst}: of the best with hindsight (the least)", at_least(0.85), reached([worst])),
        Row(
            f"{label}, questions: lookup ÷ plain, tok/s",
            ratio_at_least(0.95),
            ours(questions, "drafted"),
            ours(questions, "plain"),
        ),
        Row(
            f"{label}, questions after {BEGINNING} tokens: lookup ÷ plain, tok/s",
            ratio_at_least(0.98),
            ours(questions, "drafted_late"),
            ours(questions, "plain_late"),
        ),
    ]


def _speeds(taken: Sequence[Round], label: str) -> str:
    """Each prompt: plain speeds, and what each way of drafting makes of its own side's."""

    def gain(plain: Sequence[Speed], drafted: Sequence[Speed]) -> str:
        return f"× {median([b.tps / a.tps for a, b in zip(plain, drafted, strict=False)]):.2f}"

    lines = []
    for name in (*EDITS, *QUESTIONS):
        ours = [each.ours[name] for each in taken]
        cells = [
            number(median([each.plain.tps for each in ours])),
            gain([each.plain for each in ours], [each.drafted for each in ours]),
            Speed.all(each.drafted for each in ours).acceptance,
            number(median([each.alike for each in ours])),
        ]
        if name in EDITS:
            peer = {mode: [each.peer[mode][name] for each in taken if mode in each.peer] for mode in (PLAIN, *MODES)}
            cells.append(number(median([speed.tps for speed in peer[PLAIN]])))
            cells += [f"{gain(peer[PLAIN], peer[mode])} ({Speed.all(peer[mode]).acceptance})" for mode in MODES]
        else:
            cells += ["–"] * (1 + len(MODES))
        lines.append((name, *cells))
    head = (f"{label}, decode", "plain, tok/s", "lookup", "accepted", "tokens alike", "llama-server, tok/s", *MODES)
    return sheet(head, lines)


def _replays(taken: Sequence[Round], label: str) -> str:
    """Each prompt: gains by the measured costs, and how many passes drafted how many tokens."""
    lines = []
    for name in (*EDITS, *QUESTIONS):
        replays = [each.ours[name].replay for each in taken]
        lines.append(
            (
                name,
                f"× {median([each.plain_s / each.made_s for each in replays]):.2f}",
                f"× {median([each.plain_s / each.best_s for each in replays]):.2f}",
                f"{median([each.best_s / each.made_s for each in replays]):.2f}",
                _lengths(replays[-1].made),
                _lengths(replays[-1].best),
            )
        )
    curve_s = list(taken[-1].ours.values())[-1].curve_s
    rows = [size for size in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) if size < len(curve_s)]
    costs = "A pass over n rows, in passes over one: " + ", ".join(
        f"{size}: {curve_s[size] / curve_s[1]:.2f}" for size in rows
    )
    head = (f"{label}, by the costs", "made", "with hindsight", "made ÷ possible", "lengths made", "lengths possible")
    return f"{sheet(head, lines)}\n\n{costs} (one takes {curve_s[1] * 1e3:.1f} ms)."


def _lengths(lengths: Sequence[int]) -> str:
    return ", ".join(f"{length}×{count}" for length, count in sorted(Counter(lengths).items()))
