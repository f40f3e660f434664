"""``localinfer quantize``: another quantization of a model."""

import shlex
from pathlib import Path

from localinfer import quantizing
from localinfer.acquire import acquire
from localinfer.cli import console, words
from localinfer.cli.steps import steps
from localinfer.models.conversion import Tensors


def quantize(
    reference: str, quantization: str, out: Path | None, *, threads: int | None, force: bool, offline: bool
) -> None:
    """Make it and say what it is. Raises ``LocalInferError``."""
    with console.fetching(reference) as progress:
        source = acquire(reference, offline=offline, progress=progress)
    with steps() as bar:

        def show(state: Tensors) -> None:
            bar.show(f"Quantizing {source.path.name}", state.done, state.total)

        made = quantizing.quantize(source, quantization, out, progress=show, threads=threads, force=force)
    before, after = words.download_size(made.before_bytes), words.download_size(made.after_bytes)
    console.write(f"{_shown(made.path)}\n")
    console.write(
        f"{made.quantization}, {made.bits_per_weight:.1f} bits per weight: {before} → {after}, {made.took_s:.1f} s\n"
    )
    for notice in made.notices:
        console.note(notice)
    console.note(f"See what it costs: localinfer compare {shlex.quote(reference)} {shlex.quote(_shown(made.path))}")


def _shown(path: Path) -> str:
    """As short as it can be typed here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
