"""``localinfer chats``: its commands and their arguments. The work is in ``conversations.py``, loaded when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from localinfer.models.names import printable

_MOST_DIGITS = 18  # as many as every number of SQLite has


def _id(text: str) -> int:
    """The number of a conversation. Raises ``BadParameter``."""
    if text.isascii() and text.isdecimal() and 0 < len(text) <= _MOST_DIGITS and int(text):
        return int(text)
    raise typer.BadParameter(
        f"“{printable(text, 40)}” is not the number of a conversation; “localinfer chats list” shows them."
    )


Id = Annotated[int, typer.Argument(metavar="ID", parser=_id, help="The number that “chats list” shows.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]

app = typer.Typer(name="chats", invoke_without_command=True)


@app.callback()
def _root(context: typer.Context) -> None:
    """List, search, show, export and delete conversations. Without a command: list them."""
    if context.invoked_subcommand is None:
        list_chats()


@app.command("list")
def list_chats(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20, as_json: Json = False
) -> None:
    """List conversations: pinned ones first, then the newest."""
    from localinfer.cli import conversations

    conversations.listed(limit, as_json=as_json)


@app.command("search")
def search_chats(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words, or a phrase in quotes: '\"so it is\"'.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 20,
    as_json: Json = False,
) -> None:
    """Find conversations by words of their titles and messages.

    All words have to be in one message, or in the title. The last may be the beginning of a word.
    """
    from localinfer.cli import conversations

    conversations.search(" ".join(words), limit, as_json=as_json)


@app.command("show")
def show_chat(id: Id, as_json: Json = False) -> None:
    """Show a conversation."""
    from localinfer.cli import conversations

    conversations.show(id, as_json=as_json)


@app.command("export")
def export_chat(
    id: Id,
    form: Annotated[
        Literal["markdown", "json"],
        typer.Option("--format", help="markdown: the branch in view. json: every branch."),
    ] = "markdown",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, or a folder. Without it: standard output.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
) -> None:
    """Write a conversation out, as Markdown or JSON."""
    from localinfer.cli import conversations

    conversations.export(id, form, output, force=force)


@app.command("rm")
def remove_chats(
    ids: Annotated[list[int], typer.Argument(metavar="ID...", parser=_id, help="The numbers that “chats list” shows.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Bring back what was deleted within a day.")] = False,
) -> None:
    """Delete conversations. For a day they can be brought back."""
    from localinfer.cli import conversations

    if undo:
        conversations.bring_back(ids)
    else:
        conversations.remove(ids, yes=yes)
