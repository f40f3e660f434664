"""``localinfer models``: what is here, what of the catalogue fits, and how fast it would be."""

import json
import shutil
import textwrap
from collections.abc import Iterable

from localinfer.advice import Advice, Planned
from localinfer.cli import console, words
from localinfer.cli.fit import plan_object
from localinfer.models.plan import Ask

_HEAD = ("MODEL", "QUANT", "SIZE", "RUNS", "TOK/S", "CONTEXT")
_RIGHT = (2, 4, 5)
SLOW_TPS = 5.0  # about as fast as people read


def models(ask: Ask, *, every: bool, fits: bool, as_json: bool) -> None:
    """Write the list. Raises ``LocalInferError``."""
    advice = Advice()
    here = list(advice.planned(advice.here(), ask))
    offered = list(advice.planned(advice.offered(every=every), ask))
    if fits:
        here, offered = _fitting(here), _fitting(offered)
    if as_json:
        listed = [model_object(item) for item in (*here, *offered)]
        console.write(json.dumps(listed, ensure_ascii=False, indent=1) + "\n")
        return
    shown = offered if every else [item for item in offered if _worthwhile(item)]
    width = max(60, min(110, shutil.get_terminal_size().columns))
    console.write("On this machine\n")
    if here:
        words.table(_HEAD, [_row(item) for item in here], right=_RIGHT, width=width)
    else:
        console.write("  nothing yet\n")
    if shown:
        console.write("\nIn the catalogue, best first. Get one: localinfer pull MODEL\n")
        words.table(_HEAD, [_row(item) for item in shown], right=_RIGHT, width=width)
    if hidden := len(offered) - len(shown):
        console.write(f"\n{hidden} more would not fit, or be slower than {SLOW_TPS:.0f} tokens per second: --all.\n")
    for notice in (*advice.survey.notices, *_advised(advice, width)):
        console.note(notice)


def model_object(item: Planned) -> dict[str, object]:
    """One model as the JSON lists have it."""
    entry = item.entry
    return {
        "name": entry.name,
        "title": entry.title,
        "quantization": entry.quantization,
        "format": entry.format,
        "size_bytes": entry.size_bytes,
        "approximate": entry.approximate,
        "here": entry.here,
        "origin": entry.origin,
        "paths": [str(path) for path in entry.paths],
        "error": item.error or None,
        "plan": plan_object(item.plan) if item.plan else None,
    }


def _fitting(items: Iterable[Planned]) -> list[Planned]:
    return [item for item in items if item.plan is None or item.plan.fits]


def _worthwhile(item: Planned) -> bool:
    """Whether it can be used here with some patience."""
    plan = item.plan
    return plan is not None and plan.fits and (plan.decode_tps is None or plan.decode_tps.middle >= SLOW_TPS)


def _row(item: Planned) -> tuple[str, ...]:
    entry, plan = item.entry, item.plan
    return (
        entry.name.removesuffix(f":{entry.quantization}"),
        entry.quantization or words.DASH,
        words.download_size(entry.size_bytes, approximate=entry.approximate),
        words.verdict(plan),
        words.speed(plan.decode_tps) if plan else words.DASH,
        words.tokens(plan.context) if plan and plan.fits else words.DASH,
    )


def _advised(advice: Advice, width: int) -> list[str]:
    """A word on the best model for this machine, if it is not here yet."""
    pick = advice.recommended()
    if pick is None or any(entry.spec == pick.spec for entry in advice.here()):
        return []
    return ["", *textwrap.wrap(pick.sentence, width), f"Get it: localinfer pull {pick.spec.id}"]
