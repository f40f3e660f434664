"""A draft model for a target whose pass takes several of its own, beside plain decoding and beside llama-server with
the same two models.

The target is the starter in the shape of a 0.5B model with 32-bit weights, whose pass takes six of the starter's. Their
texts are almost the same, so that most drafts are right.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from localinfer.types import DraftModel, Speculation
from tests.bench.common import Row, at_least, median, noted, number, ratio_at_least, sheet
from tests.bench.edits import EDITS, QUESTIONS
from tests.bench.native import llama_server
from tests.bench.passes import Speed, backend, run, server_speed, tps
from tests.bench.widened import HALF, widened

CONTEXT = 2048
PROMPTS = ("bread", "town", "rename a function")
OURS = {"plain": Speculation("off"), "model": Speculation("model"), "auto": Speculation("auto")}
PLAIN = "llama-server plain"
PEERS: Mapping[str, Sequence[str]] = {
    "llama-server draft": (),
    "llama-server draft, 8 at most, p ≥ 0.8": ("--spec-draft-n-max", "8", "--spec-draft-p-min", "0.8"),
}

Speeds = Mapping[str, Mapping[str, Speed]]  # by side and then by prompt


def measure(folder: Path, draft: Path, *, rounds: int, tokens: int) -> tuple[list[Row], list[str]]:
    """The figures of the pair, and a table of details. The target is made in ``folder`` where it is missing."""
    target = widened(folder, draft, HALF, "F32")
    with backend(draft, context=CONTEXT) as loaded:
        prompts = {name: (EDITS | QUESTIONS)[name].tokens(loaded.tokenizer) for name in PROMPTS}
    taken: list[Speeds] = []
    for index in range(rounds):
        speeds: dict[str, Mapping[str, Speed]] = {}
        steps = [
            partial(_ours, target, draft),
            partial(_alone, draft),
            *(partial(_peer, target, draft, name) for name in (PLAIN, *PEERS)),
        ]
        for step in steps if index % 2 == 0 else reversed(steps):
            name = f"draft model, round {index + 1} of {rounds}"
            found: Speeds = noted(name, partial(step, prompts, tokens), _shown)
            speeds.update(found)
        taken.append(speeds)
    return _rows(taken), [_details(taken)]


def _shown(speeds: Speeds) -> str:
    return "; ".join(f"{side}: {tps(each)}" for side, each in speeds.items())


def _ours(target: Path, draft: Path, prompts: Mapping[str, Sequence[int]], tokens: int) -> Speeds:
    speeds: dict[str, dict[str, Speed]] = {name: {} for name in OURS}
    options = DraftModel(model=str(draft), name="starter")
    with backend(target, context=CONTEXT, draft=options) as loaded:
        if loaded.info.draft is None:
            raise SystemExit(f"The draft model was not loaded: {loaded.info.no_draft}")
        for prompt_name, prompt in prompts.items():
            for name, speculation in OURS.items():
                ((said,), _) = run(loaded, [prompt], speculation, tokens)
                speeds[name][prompt_name] = Speed.of(said)
    return speeds


def _alone(draft: Path, prompts: Mapping[str, Sequence[int]], tokens: int) -> Speeds:
    with backend(draft, context=CONTEXT) as loaded:
        return {
            "draft alone": {
                name: Speed.of(run(loaded, [prompt], OURS["plain"], tokens)[0][0]) for name, prompt in prompts.items()
            }
        }


def _peer(target: Path, draft: Path, name: str, prompts: Mapping[str, Sequence[int]], tokens: int) -> Speeds:
    arguments = () if name == PLAIN else ("-md", str(draft), "--spec-type", "draft-simple", *PEERS[name])
    with llama_server(target, slots=1, context=CONTEXT, arguments=arguments) as side:
        return {name: {prompt: server_speed(side, ids, tokens) for prompt, ids in prompts.items()}}


def _tps(taken: Sequence[Speeds], side: str) -> tuple[float, ...]:
    return tuple(Speed.all(each[side].values()).tps for each in taken)


def _rows(taken: Sequence[Speeds]) -> list[Row]:
    leader = max(PEERS, key=lambda name: median(_tps(taken, name)))
    ratio = tuple(
        draft / target for draft, target in zip(_tps(taken, "draft alone"), _tps(taken, "plain"), strict=True)
    )
    return [
        Row("draft model: a pass of the target ÷ one of the draft", at_least(4), ratio),
        Row("draft model ÷ plain, tok/s", ratio_at_least(1.3), _tps(taken, "model"), _tps(taken, "plain")),
        Row("lookup, then draft model ÷ plain, tok/s", ratio_at_least(1.3), _tps(taken, "auto"), _tps(taken, "plain")),
        Row(f"draft model against {leader}, tok/s", None, _tps(taken, "model"), _tps(taken, leader)),
    ]


def _details(taken: Sequence[Speeds]) -> str:
    sides = ("plain", "model", "auto", "draft alone", PLAIN, *PEERS)
    lines = []
    for side in sides:
        base = PLAIN if side.startswith("llama-server") else "plain"
        cells = []
        for prompt in PROMPTS:
            speed = Speed.all(each[side][prompt] for each in taken)
            gain = median([each[side][prompt].tps / each[base][prompt].tps for each in taken])
            cells.append(f"{number(speed.tps)} (× {gain:.2f}, {speed.acceptance} accepted)")
        lines.append((side, *cells))
    return sheet(("0.5B-class, 32-bit, with the starter as draft, tok/s", *PROMPTS), lines)
