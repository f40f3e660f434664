"""``localinfer compare``: what a quantization costs, as tables for people and as one object for programs."""

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

import msgspec

from localinfer import comparing
from localinfer.advice import Advice
from localinfer.cli import console, words
from localinfer.cli.loading import load_options
from localinfer.cli.steps import steps
from localinfer.comparing import Compared, Comparison, Step
from localinfer.errors import BadRequest

_QUALITY = ("QUALITY", "PERPLEXITY", "KL MEAN", "P50", "P90", "P99", "MAX", "SAME TOP")
_COST = ("COST", "TYPE", "SIZE", "MEMORY", "PREFILL TOK/S", "DECODE TOK/S", "ON")
_LEAST_NAME = 12
_OWN_TEXT = "the text that comes with localinfer"


def compare(
    references: Sequence[str],
    *,
    text: Path | None,
    context: int,
    chunks: int | None,
    as_json: bool,
    device: str | None,
    threads: int | None,
    offline: bool,
    force: bool,
) -> None:
    """Write the comparison. Raises ``LocalInferError``."""
    if len(references) < 2:
        raise BadRequest("There is nothing to compare with.", "Name two models: localinfer compare A B")
    sample = comparing.read_text(text)
    options = load_options(context=context, device=device, threads=threads, kv="f16")
    advice = Advice(measure=False)
    subjects = []
    for reference in references:
        with console.fetching(reference) as progress:
            subjects.append(
                comparing.subject(reference, options, advice, offline=offline, progress=progress, force=force)
            )
    with steps() as bar:

        def show(step: Step) -> None:
            bar.show(f"Reading with {step.name}", step.done, step.total)

        found = comparing.compare(
            subjects, sample, name=str(text or _OWN_TEXT), context=context, chunks=chunks, progress=show
        )
    if as_json:
        console.write(msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n")
    else:
        _write(found)


def _write(found: Comparison) -> None:
    width = max(60, min(120, shutil.get_terminal_size().columns))
    for head, figures, right in (
        (_QUALITY, [_quality(one) for one in found.models], range(1, 8)),
        (_COST, [_cost(one) for one in found.models], range(2, 6)),
    ):
        room = width - sum(max(map(len, column)) + len(words.GAP) for column in zip(head[1:], *figures, strict=True))
        rows = [(_fitted(one.name, room), *cells) for one, cells in zip(found.models, figures, strict=True)]
        words.table(head, rows, right=right, width=width)
        console.write("\n")
    explanation = (
        f"Read {found.text}: {found.chunks} × {found.context:,} tokens, {found.scored_tokens:,} of them predicted. "
        "Perplexity: among how many tokens the model wavers, ± its standard error; lower is better. "
        f"KL: how far its predictions are from those of {found.models[0].name}, in nats; 0 is the same. "
        f"Same top: how often both would say the same next. Memory is planned, with {found.context:,} tokens of "
        "context; speeds are measured once, and what else the machine does lowers them."
    )
    for line in textwrap.wrap(explanation, width):
        console.write(line + "\n", console.DIM)


def _fitted(name: str, width: int) -> str:
    """``name`` with its middle left out where it is too long: quantizations of one model differ at the end."""
    name, width = console.safe(name), max(width, _LEAST_NAME)
    return name if len(name) <= width else f"{name[: width // 3]}…{name[len(name) - (width - width // 3 - 1) :]}"


def _quality(one: Compared) -> tuple[str, ...]:
    digits = 2 if one.perplexity.value < 1000 else 0
    perplexity = f"{one.perplexity.value:,.{digits}f} ± {one.perplexity.error:,.{digits}f}"
    if (far := one.divergence) is None:
        return (perplexity, *[words.DASH] * 6)
    return (
        perplexity,
        *map(_nats, (far.mean, far.p50, far.p90, far.p99, far.largest)),
        f"{far.same_top:.1%}",
    )


def _cost(one: Compared) -> tuple[str, ...]:
    where = f"{one.placement} ×{one.threads}" if one.placement == "CPU" else one.placement
    return (
        one.quantization or words.DASH,
        words.download_size(one.size_bytes),
        words.gib(one.memory_bytes),
        _tps(one.prefill_tps),
        _tps(one.decode_tps),
        where,
    )


def _nats(value: float) -> str:
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _tps(value: float | None) -> str:
    return words.DASH if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
