"""Parsed Markdown as values: blocks that hold runs of marked text. Nothing here knows a width or a colour."""

from typing import Literal

from localinfer.types import Value

Align = Literal["left", "center", "right"]


# What a run of text is, several at once; plain numbers, because they are combined for every run of every frame.
EMPHASIS, STRONG, STRUCK, CODE, LINK, ADDRESS = 1, 2, 4, 8, 16, 32
Marks = int

Inline = tuple[tuple[str, Marks], ...]


class Paragraph(Value, frozen=True):
    runs: Inline


class Heading(Value, frozen=True):
    level: int
    runs: Inline


class Code(Value, frozen=True):
    """A code block; ``language`` is what stands after the fence, empty where nothing does.

    ``continued``: a further part of the block before; ``glued``: its first line goes on with the last one there.
    """

    language: str
    text: str
    continued: bool = False
    glued: bool = False


class Rule(Value, frozen=True):
    pass


class Quote(Value, frozen=True):
    blocks: tuple["Placed", ...]


class Item(Value, frozen=True):
    """One list item; ``number`` None is a bullet."""

    number: int | None
    blocks: tuple["Placed", ...]


class Items(Value, frozen=True):
    """A list. ``spaced[i]``: a blank line stands before item i."""

    items: tuple[Item, ...]
    spaced: tuple[bool, ...]


class Table(Value, frozen=True):
    """``continued``: its first rows stand in a table before, and its header with them."""

    align: tuple[Align, ...]
    header: tuple[Inline, ...]
    rows: tuple[tuple[Inline, ...], ...]
    continued: bool = False


Block = Paragraph | Heading | Code | Rule | Quote | Items | Table


class Placed(Value, frozen=True):
    """A block where it stands; ``spaced``: after a blank line."""

    block: Block
    spaced: bool
