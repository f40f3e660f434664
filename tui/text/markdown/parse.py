"""Markdown source to blocks, by markdown-it: CommonMark with tables and strikethrough.

Of CommonMark it leaves out what a reply read in a terminal is better without: HTML is text, a single line break is a
line break, and link references and their definitions stay where they were written, as text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from tui.text.cells import steady
from tui.text.clean import clean
from tui.text.markdown import nodes
from tui.text.markdown.nodes import ADDRESS, EMPHASIS, LINK, STRONG, STRUCK, Align, Block, Inline, Item, Marks, Placed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    BlockRule = Callable[[StateBlock, int, int, bool], bool]

DEEPEST = 12  # quotes and lists nested deeper are text: markdown-it would leave their content out
MOST_BRACKETS = 100  # in one paragraph; with more of them, none is a link: looking for their ends takes quadratic time

_OPENING = {"em_open": EMPHASIS, "strong_open": STRONG, "s_open": STRUCK, "link_open": LINK}
_CLOSING = {"em_close": EMPHASIS, "strong_close": STRONG, "s_close": STRUCK, "link_close": LINK}
# Dollars as Pandoc takes them, so that prices are none.
_FORMULA = re.compile(
    r"\\\(.{1,600}?\\\)|\\\[.{1,600}?\\\]|\$\$.{1,600}?\$\$|\$(?![\s$])[^$\n]{,600}(?<![\s\\])\$(?!\d)", re.DOTALL
)
_ALIGN: dict[str, Align] = {"text-align:center": "center", "text-align:right": "right"}


@cache
def parser(*, links: bool = True) -> "MarkdownIt":
    """The parser; imported and built at its first use."""
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import blockquote, list_block

    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 4 * DEEPEST})
    made.enable(["table", "strikethrough"]).disable(["reference", "html_block", "html_inline"])
    made.inline.ruler.before("escape", "math", _math)
    made.block.ruler.at("blockquote", _bounded(blockquote), {"alt": ["paragraph", "reference", "blockquote", "list"]})
    made.block.ruler.at("list", _bounded(list_block), {"alt": ["paragraph", "reference", "blockquote"]})
    if not links:
        made.disable(["link", "image"])
    return made


def _bounded(rule: "BlockRule") -> "BlockRule":
    def bounded(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
        return state.level < 2 * DEEPEST and rule(state, start, end, silent)

    return bounded


def _math(state: "StateInline", silent: bool) -> bool:
    """TeX is text as it was written: its ``_``, ``*`` and ``\\`` mark nothing."""
    found = _FORMULA.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("math", "", 0).content = found[0]
    state.pos = found.end()
    return True


def parse(source: str) -> tuple[Placed, ...]:
    """The blocks of ``source``; never raises, whatever it is."""
    tokens: list[Token] = []
    parser().block.parse(source, parser(), {}, tokens)
    return tuple(_blocks(source.split("\n"), tokens))


@lru_cache(maxsize=512)  # while a block grows, most of it is what it was
def inline(text: str) -> Inline:
    """Marks within one paragraph or table cell."""
    tokens: list[Token] = []
    made = parser(links=text.count("[") <= MOST_BRACKETS)
    made.inline.parse(text, made, {}, tokens)
    return _merged(_runs(tokens))


def _runs(tokens: "Sequence[Token]") -> Iterator[tuple[str, Marks]]:
    marks = 0
    address, shown = "", ""
    for token in tokens:
        if token.type == "link_open":
            address, shown = str(token.attrs.get("href", "")), ""
        if token.type in _OPENING:
            marks |= _OPENING[token.type]
        elif token.type in _CLOSING:
            marks &= ~_CLOSING[token.type]
            if token.type == "link_close" and _tells(address, shown):
                yield f" ({_visible(address)})", marks | ADDRESS
        elif token.type in {"softbreak", "hardbreak"}:
            yield "\n", marks
        elif token.type == "image":
            yield _visible(token.content) or "image", marks | LINK
            yield f" ({_visible(str(token.attrs.get('src', '')))})", marks | ADDRESS
        else:
            text = _visible(token.content)
            shown += text
            yield text, marks | nodes.CODE if token.type == "code_inline" else marks


def _tells(address: str, shown: str) -> bool:
    """Whether an address says more than the text of its link."""
    return bool(address) and shown not in {address, address.removeprefix("mailto:"), _visible(address)}


def _visible(text: str) -> str:
    """Leaf text made harmless (entities may have become anything) and one line."""
    return steady(clean(text)).replace("\n", " ").replace("\t", " ")


def _merged(runs: Iterator[tuple[str, Marks]]) -> Inline:
    merged: list[tuple[str, Marks]] = []
    for text, marks in runs:
        if merged and merged[-1][1] == marks:
            merged[-1] = (merged[-1][0] + text, marks)
        elif text:
            merged.append((text, marks))
    return tuple(merged)


def _blocks(lines: Sequence[str], tokens: "Sequence[Token]") -> Iterator[Placed]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        end = _end(tokens, at)
        block = _block(lines, token, tokens[at + 1 : end])
        if block is not None:
            yield Placed(block=block, spaced=_spaced(lines, token))
        at = end + 1


def _block(lines: Sequence[str], token: "Token", inside: "Sequence[Token]") -> Block | None:
    match token.type:
        case "paragraph_open":
            return nodes.Paragraph(runs=inline(inside[0].content))
        case "heading_open":
            return nodes.Heading(level=int(token.tag[1]), runs=inline(inside[0].content))
        case "fence" | "code_block":
            return nodes.Code(language=language(token.info), text=token.content.removesuffix("\n"))
        case "hr":
            return nodes.Rule()
        case "blockquote_open":
            return nodes.Quote(blocks=tuple(_blocks(lines, inside)))
        case "bullet_list_open" | "ordered_list_open":
            return _items(lines, token, inside)
        case "table_open":
            return _table(inside)
    return None


def _spaced(lines: Sequence[str], token: "Token") -> bool:
    first = token.map[0] if token.map else 0
    return first > 0 and not lines[first - 1].strip(" \t>")


def _end(tokens: "Sequence[Token]", at: int) -> int:
    """Where the token that closes the one at ``at`` stands: itself if it opens nothing."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += tokens[index].nesting
        if depth == 0:
            return index
    return len(tokens)


def _items(lines: Sequence[str], opening: "Token", tokens: "Sequence[Token]") -> nodes.Items:
    number = int(opening.attrs.get("start", 1)) if opening.type == "ordered_list_open" else None
    items: list[Item] = []
    spaced: list[bool] = []
    at = 0
    while at < len(tokens):
        end = _end(tokens, at)
        items.append(Item(number=number, blocks=tuple(_blocks(lines, tokens[at + 1 : end]))))
        spaced.append(_spaced(lines, tokens[at]))
        number = None if number is None else number + 1
        at = end + 1
    return nodes.Items(items=tuple(items), spaced=tuple(spaced))


def _table(tokens: "Sequence[Token]") -> nodes.Table:
    align: list[Align] = []
    rows: list[tuple[Inline, ...]] = []
    row: list[Inline] = []
    for token in tokens:
        if token.type == "tr_open":
            row = []
        elif token.type == "th_open":
            align.append(_ALIGN.get(str(token.attrs.get("style", "")), "left"))
        elif token.type == "inline":
            row.append(inline(token.content))
        elif token.type == "tr_close":
            rows.append(tuple(row))
    return nodes.Table(align=tuple(align), header=rows[0], rows=tuple(rows[1:]))


def language(info: str) -> str:
    """The language that stands after a fence."""
    return clean(info).strip().split(maxsplit=1)[0].strip("{}.") if info.strip() else ""
