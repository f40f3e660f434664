"""The commands and their arguments. Each imports what it needs when it runs, so that help is instant."""

from typing import TYPE_CHECKING, Annotated

import typer

from localinfer.cli import chats, measure, quality
from localinfer.cli import options as shared

if TYPE_CHECKING:
    from localinfer.models.plan import Ask

Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
Reference = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A name of the catalogue, owner/repo[:QUANT] of the hub, or a .gguf file."),
]
Slots = Annotated[int, typer.Option("--slots", min=1, max=256, help="Sequences at the same time.")]

app = typer.Typer(
    name="localinfer",
    no_args_is_help=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # drawing the help would take longer than everything else
)


def _version(asked: bool) -> None:
    if asked:
        from localinfer import __version__

        typer.echo(f"localinfer {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Chat line by line instead of the application.")] = False,
) -> None:
    """Run language models on your own machine, with honest figures.

    Without a command it opens the application, or, where that cannot be drawn, a chat line by line.
    """
    if context.invoked_subcommand is not None:
        return
    from localinfer.cli import in_a_terminal

    if plain or not in_a_terminal():
        open_chat()
    else:
        open_application()


@app.command("tui")
def open_application(
    model: Annotated[
        str | None, typer.Argument(help="A name of the catalogue, owner/repo[:QUANT] of the hub, or a .gguf file.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="System prompt.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", help="0 is greedy.")] = 0.8,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same text.")] = None,
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
    """Open the application with another model or other options."""
    from localinfer.cli import in_a_terminal
    from localinfer.cli.screen import open_screen
    from localinfer.errors import BadRequest
    from localinfer.generation import check as check_request
    from localinfer.types import GenerationRequest, Sampling
    from tui.start import Start

    if not in_a_terminal():
        raise BadRequest("The application needs a terminal to draw on.", "Use “localinfer chat” or “localinfer run”.")
    wanted = shared.drafting(draft)
    start = Start(
        reference=model,
        options=shared.load_options(
            backend=backend, device=device, threads=threads, kv=kv, context=context, require_gpu=require_gpu
        ),
        draft=wanted,
        speculation=shared.speculation(wanted),
        offline=_offline(offline),
        force=force,
        system=system or "",
        sampling=Sampling(temperature=temperature, seed=seed),
    )
    check_request(GenerationRequest(prompt="x", sampling=start.sampling))
    raise typer.Exit(open_screen(start))


@app.command("run")
def answer(
    words: Annotated[
        list[str], typer.Argument(metavar="[MODEL] PROMPT", help="What to answer, after the model if it is named.")
    ],
    system: Annotated[str | None, typer.Option("--system", help="System prompt.")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Stop after this many tokens.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", help="0 is greedy.")] = 0.8,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same text.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object of figures.")] = False,
    no_stats: Annotated[bool, typer.Option("--no-stats", help="No line of figures.")] = False,
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
    """Answer one prompt on standard output. What is piped in is appended to the prompt.

    MODEL is a name of the catalogue, owner/repo[:QUANT] of the hub, or the path of a .gguf file.
    """
    from localinfer.cli.run import run as run_prompt
    from localinfer.types import Sampling

    run_prompt(
        words,
        system=system,
        sampling=Sampling(temperature=temperature, seed=seed),
        max_tokens=max_tokens,
        options=shared.load_options(
            backend=backend, device=device, threads=threads, kv=kv, context=context, require_gpu=require_gpu
        ),
        draft=shared.drafting(draft),
        offline=_offline(offline),
        as_json=as_json,
        stats=not no_stats,
        force=force,
    )


@app.command("chat")
def open_chat(
    model: Annotated[
        str | None, typer.Argument(help="A name of the catalogue, owner/repo[:QUANT] of the hub, or a .gguf file.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", help="System prompt.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", help="0 is greedy.")] = 0.8,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same text.")] = None,
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
    """Talk with a model line by line, in any terminal."""
    from localinfer.cli.chat import chat as chat_lines
    from localinfer.types import Sampling

    chat_lines(
        model,
        system=system,
        sampling=Sampling(temperature=temperature, seed=seed),
        options=shared.load_options(
            backend=backend, device=device, threads=threads, kv=kv, context=context, require_gpu=require_gpu
        ),
        draft=shared.drafting(draft),
        offline=_offline(offline),
        force=force,
    )


@app.command("models")
def list_models(
    every: Annotated[bool, typer.Option("--all", help="Every quantization, and what does not fit.")] = False,
    fits: Annotated[bool, typer.Option("--fits", help="Only what fits.")] = False,
    as_json: Json = False,
    context: shared.Context = None,
    kv: shared.Kv = None,
) -> None:
    """List what is here and what else fits this machine."""
    from localinfer.cli.models import models

    models(_ask(context, kv, 1, None), every=every, fits=fits, as_json=as_json)


@app.command("search")
def search_hub(
    words: Annotated[list[str], typer.Argument(help="Words of the name.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="At most so many.")] = 20,
    as_json: Json = False,
    offline: shared.Offline = False,
) -> None:
    """Search the model hub."""
    from localinfer.cli.files import search

    search(" ".join(words), limit=limit, offline=_offline(offline), as_json=as_json)


@app.command("show")
def show_model(
    model: Reference,
    context: shared.Context = None,
    kv: shared.Kv = None,
    slots: Slots = 1,
    device: shared.Device = None,
    offline: shared.Offline = False,
) -> None:
    """Show what a model is, its quantizations and its memory."""
    from localinfer.cli.fit import show

    show(model, _ask(context, kv, slots, device), offline=_offline(offline))


@app.command("fit")
def fit_model(
    model: Reference,
    context: shared.Context = None,
    kv: shared.Kv = None,
    slots: Slots = 1,
    device: shared.Device = None,
    draft: Annotated[
        str | None, typer.Option("--draft", metavar="MODEL", help="A smaller model that is to draft for it.")
    ] = None,
    as_json: Json = False,
    offline: shared.Offline = False,
) -> None:
    """Say whether a model fits, with every part of its memory."""
    from localinfer.cli.fit import fit

    fit(model, _ask(context, kv, slots, device), draft=draft, offline=_offline(offline), as_json=as_json)


@app.command("pull")
def pull_model(model: Reference, offline: shared.Offline = False) -> None:
    """Fetch a model.

    If it is stopped, what has arrived from the hub is kept, and the next pull goes on from there.
    """
    from localinfer.cli.files import pull

    pull(model, offline=_offline(offline))


@app.command("rm")
def remove_model(
    model: Reference, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> None:
    """Delete a model that localinfer fetched."""
    from localinfer.cli.files import remove

    remove(model, yes=yes)


app.add_typer(chats.app)
measure.register(app)
quality.register(app)


@app.command("where")
def where_is(model: Annotated[str | None, typer.Argument(help="A model; without one, all folders.")] = None) -> None:
    """Say where a model's files are, or where everything is."""
    from localinfer.cli.files import where

    where(model)


@app.command("setup-gpu")
def set_up_gpu(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    source: Annotated[bool, typer.Option("--source", help="Build it even if there is a prebuilt wheel.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the CPU build.")] = False,
) -> None:
    """Install a llama.cpp for an NVIDIA card, and prove it.

    It goes beside the environment's own, which stays as it is, and is used only after it has computed on the card.
    """
    from localinfer.cli.setup_gpu import setup_gpu, undo_gpu

    raise typer.Exit(0 if (undo_gpu() if undo else setup_gpu(yes=yes, dry_run=dry_run, source=source)) else 1)


@app.command("doctor")
def check() -> None:
    """Check this installation, with the fix for what is wrong."""
    from localinfer.cli.doctor import doctor as check_all

    raise typer.Exit(0 if check_all() else 1)


def _ask(context: int | None, kv: str | None, slots: int, device: str | None) -> "Ask":
    from localinfer import settings
    from localinfer.errors import BadRequest
    from localinfer.models.plan import Ask

    mine = settings.load()
    if kv is not None and kv not in settings.KV_TYPES:
        raise BadRequest(
            f"There is no KV cache type “{kv}”.", f"Choose one of: {', '.join(settings.KV_TYPES)}.", param="kv"
        )
    return Ask(context=context or mine.context, kv_type=kv or mine.kv_type, slots=slots, device=device or mine.device)


def _offline(flag: bool) -> bool:
    from localinfer import settings

    return flag or settings.load().offline
