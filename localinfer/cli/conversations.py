"""The work of ``localinfer chats``: what is written for people and for programs."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from localinfer.cli import console
from localinfer.errors import BadRequest, ConversationNotFound, StorageUnavailable
from localinfer.history import export as exporting
from localinfer.history import tree
from localinfer.history.store import History
from localinfer.history.values import Conversation, Hit, Turn

_GAP = "  "
_MARK = "1"  # bold


def listed(limit: int, *, as_json: bool) -> None:
    """Write the list. Raises ``LocalInferError``."""
    with _history() as history:
        found = history.conversations(limit + 1)
    if as_json:
        _write_json([_object(one) for one in found[:limit]])
        return
    if not found:
        console.note("There are no conversations yet.")
        return
    _write_table(found[:limit])
    if len(found) > limit:
        console.note("\nThere are more: --limit, or localinfer chats search WORDS")


def search(query: str, limit: int, *, as_json: bool) -> None:
    """Write what is found. Raises ``LocalInferError``."""
    if not any(map(str.isalnum, query)):
        raise BadRequest("There is nothing to search for.", "Give words: localinfer chats search python decorator")
    with _history() as history:
        hits = history.search(query, limit)
    if as_json:
        _write_json([{**_object(hit.conversation), "turn": hit.turn, "excerpt": hit.excerpt} for hit in hits])
        return
    if not hits:
        raise ConversationNotFound(f"No conversation has all of “{console.safe(query)}”.", "Try fewer words.")
    for hit in hits:
        _write_hit(hit)


def show(id: int, *, as_json: bool) -> None:
    """Write the branch in view, or every branch as JSON. Raises ``LocalInferError``."""
    with _history() as history:
        conversation, turns = history.conversation(id), history.turns(id)
    if as_json:
        console.write(exporting.to_json(conversation, turns))
        return
    path = tree.branch(turns, conversation.head)
    console.write(f"{conversation.title or exporting.UNTITLED}\n", _MARK)
    for turn in path:
        _write_turn(turn, len(tree.siblings(turns, turn)))


def export(id: int, form: Literal["markdown", "json"], output: Path | None, *, force: bool) -> None:
    """Write a conversation to ``output``, to a file in it if it is a folder, or to standard output. Raises
    ``LocalInferError``."""
    with _history() as history:
        conversation, turns = history.conversation(id), history.turns(id)
    text = (exporting.to_json if form == "json" else exporting.to_markdown)(conversation, turns)
    if output is None:
        console.write(text)
        return
    path = output
    if output.is_dir():
        path = output / exporting.file_name(conversation.title, ".json" if form == "json" else ".md")
    try:
        with path.open("w" if force else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError as error:
        raise BadRequest(f"{path} is there already.", "Add --force to replace it.", param="output") from error
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}.", "Choose another --output.") from error
    console.note(f"Written to {path}")


def remove(ids: Sequence[int], *, yes: bool) -> None:
    """Delete, after asking. Raises ``LocalInferError`` before anything is deleted."""
    with _history() as history:
        doomed = [history.conversation(id) for id in dict.fromkeys(ids)]
        if not yes and not sys.stdin.isatty():
            raise BadRequest("Deleting has to be agreed to.", "Add --yes.", param="yes")
        _write_table(doomed)
        if not yes and not _agreed(len(doomed)):
            console.write("Nothing was deleted.\n")
            return
        for one in doomed:
            history.delete(one.id)
    numbers = " ".join(str(one.id) for one in doomed)
    console.write(f"Deleted. For a day this brings back what was deleted: localinfer chats rm --undo {numbers}\n")


def bring_back(ids: Sequence[int]) -> None:
    """Undo a deletion. Raises ``LocalInferError``."""
    with _history() as history:
        _write_table([history.restore(id) for id in dict.fromkeys(ids)])
    console.write("Back again.\n")


@contextmanager
def _history() -> Iterator[History]:
    with History() as history:
        for notice in history.notices:
            console.warn(notice)
        yield history


def _object(conversation: Conversation) -> dict[str, object]:
    """A conversation as the JSON lists have it."""
    return {
        "id": conversation.id,
        "title": conversation.title,
        "created_s": conversation.created_s,
        "changed_s": conversation.changed_s,
        "pinned": conversation.pinned,
        "model": conversation.model,
    }


def _write_json(value: object) -> None:
    console.write(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=1) + "\n")


def _write_table(found: Sequence[Conversation]) -> None:
    """Numbers, instants and titles; the titles come last, as their width in cells is anybody's guess."""
    size = max(2, *(len(str(one.id)) for one in found))
    console.write(f"{'ID':>{size}}{_GAP}{'CHANGED':<16}{_GAP}TITLE", console.DIM)
    console.write("\n")
    for one in found:
        head = f"{one.id:>{size}}{_GAP}{exporting.day(one.changed_s):<16}{_GAP}"
        title = f"{one.title or exporting.UNTITLED}{' (pinned)' if one.pinned else ''}"
        console.write(f"{head}{_fitted(title, _width() - len(head))}\n")


def _write_hit(hit: Hit) -> None:
    conversation = hit.conversation
    console.write(f"{conversation.id}{_GAP}{exporting.day(conversation.changed_s)}{_GAP}", console.DIM)
    _write_marked(conversation.title or exporting.UNTITLED, hit.marks if hit.turn is None else ())
    if hit.turn is not None:
        console.write("   ")
        _write_marked(hit.excerpt, hit.marks)


def _write_marked(text: str, marks: Sequence[tuple[int, int]]) -> None:
    done = 0
    for start, end in marks:
        console.write(text[done:start])
        console.write(text[start:end], _MARK)
        done = end
    console.write(f"{text[done:]}\n")


def _write_turn(turn: Turn, versions: int) -> None:
    facts = [exporting.speaker(turn), exporting.day(turn.created_s)]
    if versions > 1:
        facts.append(f"one of {versions} versions")
    if turn.state != "whole":
        facts.append(exporting.state_line(turn))
    console.write(f"\n{' · '.join(facts)}", console.DIM)
    console.write("\n")
    if turn.reasoning.strip():
        console.write(f"[{exporting.thought_line(turn)}]", console.DIM)
        console.write("\n")
    for one in turn.attachments:
        console.write(f"[{one.name}, {one.size_bytes:,} bytes]", console.DIM)
        console.write("\n")
    if turn.content.strip():
        console.write(turn.content.strip("\n") + "\n")


def _agreed(count: int) -> bool:
    console.ask(f"Delete {'it' if count == 1 else f'these {count}'}? [y/N] ")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _width() -> int:
    return max(40, min(120, shutil.get_terminal_size().columns))


def _fitted(text: str, cells: int) -> str:
    """``text`` cut to ``cells`` cells of the terminal."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + "…"
