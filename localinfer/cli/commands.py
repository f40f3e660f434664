"""The commands and their arguments. Each imports what it needs when it runs, so that help is instant."""

from typing import Annotated

import typer

from localinfer.cli import options as shared

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
) -> None:
    """Run language models on your own machine, with honest figures.

    Without a command it opens a chat with your default model.
    """
    if context.invoked_subcommand is None:
        open_chat()


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
    offline: shared.Offline = False,
    require_gpu: shared.RequireGpu = False,
) -> None:
    """Answer one prompt on standard output. What is piped in is appended to the prompt.

    MODEL is a name of the catalogue or the path of a .gguf file.
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
        offline=_offline(offline),
        as_json=as_json,
        stats=not no_stats,
    )


@app.command("chat")
def open_chat(
    model: Annotated[str | None, typer.Argument(help="A name of the catalogue or the path of a .gguf file.")] = None,
    system: Annotated[str | None, typer.Option("--system", help="System prompt.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", help="0 is greedy.")] = 0.8,
    seed: Annotated[int | None, typer.Option("--seed", help="Same seed, same text.")] = None,
    context: shared.Context = None,
    backend: shared.Backend = None,
    device: shared.Device = None,
    threads: shared.Threads = None,
    kv: shared.Kv = None,
    offline: shared.Offline = False,
    require_gpu: shared.RequireGpu = False,
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
        offline=_offline(offline),
    )


@app.command("doctor")
def check() -> None:
    """Check what this installation can do on this machine, with the fix for what is wrong."""
    from localinfer.cli.doctor import doctor as check_all

    raise typer.Exit(0 if check_all() else 1)


def _offline(flag: bool) -> bool:
    from localinfer import settings

    return flag or settings.load().offline
