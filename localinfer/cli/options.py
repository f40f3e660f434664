"""The options all commands share, defined once."""

from typing import Annotated

import typer

from localinfer.types import LoadOptions

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
Offline = Annotated[bool, typer.Option("--offline", help="Never use the network.", rich_help_panel=_GROUP)]
RequireGpu = Annotated[
    bool, typer.Option("--require-gpu", help="Fail rather than run on the CPU.", rich_help_panel=_GROUP)
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Load even what does not fit by the memory plan.", rich_help_panel=_GROUP),
]


def load_options(
    *,
    backend: str | None,
    device: str | None,
    threads: int | None,
    kv: str | None,
    context: int | None,
    require_gpu: bool,
    slots: int = 1,
) -> LoadOptions:
    """Options from the command line over those from the settings."""
    from localinfer import settings

    mine = settings.load()
    return LoadOptions(
        backend=backend or "llama.cpp",
        model="",
        name="",
        context=context or mine.context,
        slots=slots,
        threads=threads or mine.threads,
        kv_type=kv or mine.kv_type,
        device=device or mine.device,
        require_gpu=require_gpu,
    )
