"""``localinfer compare`` and ``quantize``: their arguments. The work is loaded when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from localinfer.cli import options as shared

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command("compare")(compare_models)
    app.command("quantize")(quantize_model)


def compare_models(
    models: Annotated[
        list[str],
        typer.Argument(metavar="A B...", help="Models as elsewhere; the others are held against the first."),
    ],
    text: Annotated[
        Path | None, typer.Option("--text", help="A text file to read. Default: a text that comes with localinfer.")
    ] = None,
    context: Annotated[
        int, typer.Option("--context", min=16, max=2**20, help="Tokens read at a time; the second half is scored.")
    ] = 512,
    chunks: Annotated[int | None, typer.Option("--chunks", min=1, help="Read at most so many of these.")] = None,
    as_json: Json = False,
    device: shared.Device = None,
    threads: shared.Threads = None,
    offline: shared.Offline = False,
    force: shared.Force = False,
) -> None:
    """Show what a quantization costs: quality, size, memory and speed, side by side.

    For each model the perplexity of a text, and how far its predictions are from those of the first model, usually
    the F16 file.
    """
    from localinfer.cli.comparing import compare

    compare(
        models,
        text=text,
        context=context,
        chunks=chunks,
        as_json=as_json,
        device=device,
        threads=threads,
        offline=offline,
        force=force,
    )


def quantize_model(
    model: Annotated[
        str, typer.Argument(metavar="IN", help="A .gguf file, best in F16 or BF16, or a model as elsewhere.")
    ],
    quantization: Annotated[str, typer.Argument(metavar="TYPE", help="As in Q8_0, Q4_K_M, F16.")],
    out: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="The file to write. Default: IN's name with TYPE in it, beside IN."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, max=4096, help="CPU threads. Default: all cores.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file, and make what cannot be better than IN.")
    ] = False,
    offline: shared.Offline = False,
) -> None:
    """Make another quantization of a model, checked before it takes its place."""
    from localinfer.cli.quantizing import quantize

    quantize(model, quantization, out, threads=threads, force=force, offline=offline)
