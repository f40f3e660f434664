"""The options all commands share, defined once."""

from typing import Annotated

import typer

from localinfer.cli.loading import drafting, load_options, speculation

_GROUP = "Engine"

Backend = Annotated[
    str | None, typer.Option("--backend", help="Engine to run with: llama.cpp or scripted.", rich_help_panel=_GROUP)
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="Device to run on, as “doctor” lists them, or cpu.", rich_help_panel=_GROUP),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, max=4096, help="CPU threads. Default: follows the free cores.", rich_help_panel=_GROUP
    ),
]
Kv = Annotated[
    str | None, typer.Option("--kv", help="Type of the KV cache: f16, q8_0 or q4_0.", rich_help_panel=_GROUP)
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context", min=16, max=2**31 - 1, help="Context in tokens. Default: up to 8,192.", rich_help_panel=_GROUP
    ),
]
Draft = Annotated[
    str | None,
    typer.Option(
        "--draft",
        metavar="MODEL|lookup|auto|off",
        help="What drafts tokens for the model to check: a smaller model, the text so far, what pays, or nothing.",
        rich_help_panel=_GROUP,
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never use the network.", rich_help_panel=_GROUP)]
RequireGpu = Annotated[
    bool, typer.Option("--require-gpu", help="Fail rather than run on the CPU.", rich_help_panel=_GROUP)
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Load even what does not fit by the memory plan.", rich_help_panel=_GROUP),
]

__all__ = [
    "Backend",
    "Context",
    "Device",
    "Draft",
    "Force",
    "Kv",
    "Offline",
    "RequireGpu",
    "Threads",
    "drafting",
    "load_options",
    "speculation",
]
