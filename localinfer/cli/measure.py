"""The arguments of ``localinfer bench``; what it does is imported when it runs, so that help is instant."""

from pathlib import Path
from typing import Annotated

import typer

from localinfer.cli import options as shared


def register(app: typer.Typer) -> None:
    """Give ``app`` the command."""
    app.command("bench")(_bench)


def _bench(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...", help="Names of the catalogue, owner/repo[:QUANT] of the hub, or .gguf files."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Half a minute: rough figures.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Many minutes: long prompts, many repetitions.")] = False,
    concurrency: Annotated[
        str, typer.Option("--concurrency", metavar="N,N", help="Clients at the same time, at each level.")
    ] = "1,4",
    workload: Annotated[
        str | None, typer.Option("--workload", help="chat, code, summary, extraction, or mixed: all in turn.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", help='Prompts of your own: one per line, or JSONL with {"prompt": …} or {"messages": […]}.'
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="What arrivals and tokens are drawn from.")] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="URL", help="Ask an OpenAI-compatible server the same, as well or only."),
    ] = None,
    against_model: Annotated[
        str | None, typer.Option("--against-model", help="The server's model. Default: the first it lists.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", metavar="OLD.json", help="Say what is faster or slower than then.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs and for --compare.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Write the schema of that JSON and end.")] = False,
    context: shared.Context = None,
    backend: shared.Backend = None,
    device: shared.Device = None,
    threads: shared.Threads = None,
    kv: shared.Kv = None,
    draft: shared.Draft = None,
    offline: shared.Offline = False,
    require_gpu: shared.RequireGpu = False,
    force: shared.Force = False,
) -> None:
    """Measure models on this machine: prefill, decode, several clients, drafts, memory, energy.

    About two minutes for a small model. With --against and no MODEL the server alone is measured; its key, if it needs
    one, is taken from LOCALINFER_AGAINST_KEY.
    """
    from localinfer import settings
    from localinfer.cli import bench as running

    if schema:
        running.write_schema()
        return
    running.bench(
        models or [],
        shared.load_options(
            backend=backend, device=device, threads=threads, kv=kv, context=context, require_gpu=require_gpu
        ),
        quick=quick,
        full=full,
        concurrency=concurrency,
        workload=workload,
        file=file,
        seed=seed,
        against=against,
        against_model=against_model,
        older=compare,
        draft=shared.drafting(draft),
        offline=offline or settings.load().offline,
        force=force,
        as_json=as_json,
    )
