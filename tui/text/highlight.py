"""What the parts of a line of code are, by Pygments, which is imported when the first code is drawn.

A piece of code is judged by itself: a string or comment that began before it is not known here.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Kind = Literal["text", "comment", "keyword", "name", "string", "number", "added", "removed"]
Piece = tuple[str, Kind]

LONGEST_LINE = 1_000  # longer ones are data, and some lexers take quadratic time over them

_KINDS: dict[str, Kind] = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Operator.Word": "keyword",
    "Name.Builtin": "keyword",
    "Name.Tag": "keyword",
    "Name.Function": "name",
    "Name.Class": "name",
    "Name.Decorator": "name",
    "Name.Attribute": "name",
    "Name.Namespace": "text",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Literal.Date": "number",
    "Generic.Inserted": "added",
    "Generic.Deleted": "removed",
    "Generic.Heading": "keyword",
    "Generic.Subheading": "keyword",
    "Generic.Prompt": "comment",
    "Generic.Output": "text",
}


def highlight(text: str, language: str) -> list[list[Piece]]:
    """The lines of ``text`` in pieces of one kind; one piece a line where the language is not known."""
    lines = text.split("\n")
    lexer = _lexer(language.lower()) if language else None
    if lexer is not None and all(len(line) <= LONGEST_LINE for line in lines):
        found = _lexed(lexer, text)
        if ["".join(part for part, _ in pieces) for pieces in found] == lines:
            return found
    return [[(line, "text")] if line else [] for line in lines]


def _lexed(lexer: "Lexer", text: str) -> list[list[Piece]]:
    found: list[list[Piece]] = [[]]
    try:
        for token, value in lexer.get_tokens(text + "\n"):  # some know a line by its end
            kind = _kind(token)
            for index, part in enumerate(value.split("\n")):
                if index:
                    found.append([])
                line = found[-1]
                if line and line[-1][1] == kind:
                    line[-1] = (line[-1][0] + part, kind)
                elif part:
                    line.append((part, kind))
    except Exception:  # hundreds of lexers by as many authors: code of any kind is shown, coloured or not
        return []
    return found[:-1]


def warm() -> None:
    """Imports what the usual code blocks need."""
    for language in ("python", "bash", "json", "javascript"):
        highlight("x", language)


@cache
def _aliases() -> dict[str, str]:
    """Every name of a language of Pygments itself; asking it for an unknown one searches all installed packages."""
    from pygments.lexers import get_all_lexers

    return {alias.lower(): alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases}


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    alias = _aliases().get(language)
    if alias is None:
        return None
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(alias, stripnl=False, ensurenl=False)


@cache
def _kind(token: "_TokenType") -> Kind:
    parts = tuple(token)
    for length in range(len(parts), 0, -1):
        if kind := _KINDS.get(".".join(parts[:length])):
            return kind
    return "text"
