"""Where Markdown is cut: the blocks are those that CommonMark finds in the whole, whatever the pieces."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tui.text.markdown.nodes import Block, Items, Paragraph, Placed, Quote
from tui.text.markdown.parse import parse
from tui.text.markdown.text import parsed
from tui.text.markdown.units import Cutter, Kind, Unit

LINES = (
    "word", "more *text*", "", "", "- a", "- b", "  - n", "  cont", "   three", "1. one", "2. two", "10. ten",
    "   - n3", "> q", "> - ql", "# H", "---", "```", "```py", "* x", "+ y", "-\tt",
)  # fmt: skip


def cut(lines: list[str]) -> list[Unit]:
    cutter = Cutter()
    for line in lines:
        cutter.feed(line)
    cutter.close()
    return cutter.closed


def outline(blocks: list[Block]) -> list[object]:
    """The blocks without what cutting may change: adjacent lists of one kind are one, blank lines do not count."""
    found: list[object] = []
    lists: list[tuple[bool, list[object]]] = []
    for block in blocks:
        match block:
            case Items():
                numbered = block.items[0].number is not None
                items: list[object] = [outline([placed.block for placed in item.blocks]) for item in block.items]
                if found and lists and found[-1] is lists[-1] and lists[-1][0] == numbered:
                    lists[-1][1].extend(items)
                else:
                    lists.append((numbered, items))
                    found.append(lists[-1])
            case Quote():
                found.append(("quote", outline([placed.block for placed in block.blocks])))
            case Paragraph():
                found.append(block.runs)
            case _:
                found.append(block)
    return found


def blocks_of(placed: list[Placed]) -> list[Block]:
    return [each.block for each in placed]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINES), max_size=12))
def test_units_are_the_blocks_of_the_whole(lines: list[str]) -> None:
    units = [placed for unit in cut(lines) for placed in parsed(unit)]
    whole = parse("".join(f"{line}\n" for line in lines))
    assert outline(blocks_of(units)) == outline(blocks_of(list(whole)))


def test_kinds() -> None:
    lines = [
        "# H",
        "text",
        "goes on",
        "- a",
        "  b",
        "",
        "  c",
        "- d",
        "",
        "text",
        "",
        "```py",
        "# code",
        "",
        "```",
        "end",
    ]
    assert [(unit.kind, unit.lines, unit.spaced) for unit in cut(lines)] == [
        (Kind.HEADING, ["# H"], False),
        (Kind.TEXT, ["text", "goes on"], False),
        (Kind.ITEM, ["- a", "  b", "", "  c"], False),
        (Kind.ITEM, ["- d"], False),
        (Kind.TEXT, ["text"], True),
        (Kind.FENCE, ["# code", ""], True),
        (Kind.TEXT, ["end"], False),
    ]


def test_code_is_cut_where_a_statement_ends() -> None:
    function = ["def f():", "    '''A", "", "    text.'''", *["    x += 1"] * 8, ""]
    (*first, _) = cut(["```py", *function * 9, "```"])
    assert all(unit.lines[0] == "def f():" for unit in first)
    assert max(len(unit.lines) for unit in first) < 60


def test_a_quoted_fence_is_quoted_and_an_indented_one_belongs_to_its_item() -> None:
    assert [unit.kind for unit in cut(["> ```", "> - x", "> ```"])] == [Kind.TEXT]
    assert [unit.kind for unit in cut(["- a", "  ```", "  - x", "", "  # y", "  ```", "- b"])] == [Kind.ITEM, Kind.ITEM]
