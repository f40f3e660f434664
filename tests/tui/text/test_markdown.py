"""What Markdown looks like, line by line."""

import pytest
from rich.style import Style

from tui.text.markdown import CodeBlock, Look, MarkdownText

LOOK = Look()


def drawn(source: str, width: int = 40) -> list[str]:
    return [strip.text.rstrip() for strip in MarkdownText(source).lines(width, LOOK)]


def styles(source: str, word: str) -> Style:
    """The style in which ``word`` is drawn."""
    for strip in MarkdownText(source).lines(80, LOOK):
        for segment in strip:
            if word in segment.text:
                return segment.style or Style()
    raise AssertionError(f"{word} is not drawn")


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("one\ntwo\n\nthree", ["one", "two", "", "three"]),
        ("# Title\ntext\n## Part\ntext", ["Title", "━━━━━", "text", "", "Part", "────", "text"]),
        ("Title\n===\n### Third\n\ntext", ["Title", "━━━━━", "Third", "text"]),
        ("a\n\n---\nb", ["a", "", "─" * 40, "", "b"]),
        ("- a\n- b\n\n- c", ["• a", "• b", "", "• c"]),
        ("- a\n  - b\n    - c\n- d", ["• a", "  ◦ b", "    ▪ c", "• d"]),
        ("list:\n* a\n\n\ntext", ["list:", "• a", "", "text"]),
        ("9. a\n9. b\n\n   more\n1. c", ["9. a", "10. b", "", "    more", "11. c"]),
        ("1) a\n1. b", ["1. a", "1. b"]),
        ("1. a\n\n```\nx\n```\n\n2. b", ["1. a", "", " x", "", "2. b"]),
        ("> a\nlazy\n>\n> > b", ["▎ a", "▎ lazy", "▎", "▎ ▎ b"]),
        ("[r]: /url\n[t][r]", ["[r]: /url", "[t][r]"]),
        ("[t](http://a.b) <http://c.d> [http://e.f](http://e.f)", ["t (http://a.b) http://c.d http://e.f"]),
        ("[t](javascript:x)", ["[t](javascript:x)"]),
        ("![alt](x.png) ![](y.png)", ["alt (x.png) image (y.png)"]),
        ("<b>x</b> &amp; &lt;", ["<b>x</b> & <"]),
        ("<div>\n\n*x*", ["<div>", "", "x"]),
        ("a\\\nb  \nc", ["a", "b", "c"]),
        (r"\(a_1 * b*c\) $x_1$ \[\frac{1}{2}\]", [r"\(a_1 * b*c\) $x_1$ \[\frac{1}{2}\]"]),
        ("costs $5 *or* $6 and **$7**", ["costs $5 or $6 and $7"]),
        ("&#x202e;evil &#10; &#27;", ["�evil   �"]),
        ("    indented\n\n    code", [" indented", "", " code"]),
        ("", []),
        ("\n\n", []),
        ("-", ["•"]),
        (">", ["▎"]),
        ("#", [""]),
    ],
)  # fmt: skip
def test_blocks(source: str, lines: list[str]) -> None:
    assert drawn(source) == lines


def test_hanging_indentation() -> None:
    assert drawn("1. a long item that wraps\n   - and a nested one too", 16) == [
        "1. a long item",
        "   that wraps",
        "   ◦ and a",
        "     nested one",
        "     too",
    ]


def test_where_there_is_no_room_indentation_gives_way() -> None:
    assert drawn("- a\n  - bcdefgh\n\n> q", 7) == ["•", "a", "◦", "bcdefgh", "", "q"]


def test_code_is_a_panel_with_its_language() -> None:
    source = "Run:\n```py title=x\nif x:\n\treturn 'a long line that is wrapped'\n```"
    assert drawn(source, 30) == [
        "Run:",
        "",
        " py",
        " if x:",
        "     return 'a long line that",
        " ↳  is wrapped'",
    ]
    panel = list(MarkdownText(source).lines(30, LOOK))[2:]
    assert all(strip.cell_length == 30 for strip in panel)


def test_code_is_coloured_by_what_it_is() -> None:
    look = Look(keyword=Style(color="red"), string=Style(color="green"), removed=Style(color="blue"))
    source = '```python\nreturn "x"\n```\n\n```diff\n-gone\n```\n\n```unheard-of\nreturn\n```'
    found = {
        segment.text: segment.style.color.name
        for strip in MarkdownText(source).lines(40, look)
        for segment in strip
        if segment.style and segment.style.color
    }
    assert found == {"return": "red", '"x"': "green", "-gone": "blue"}


def test_code_blocks_can_be_told() -> None:
    source = "a\n```py\nx = 1\n\ty\n```\n\n- b\n  ~~~\n  z\n  ~~~\n```\nopen"
    grown = MarkdownText(source)
    lines = grown.lines(40, LOOK)
    assert grown.blocks() == (
        CodeBlock(language="py", text="x = 1\n\ty", first_line=2, last_line=4),
        CodeBlock(language="", text="z", first_line=8, last_line=8),
        CodeBlock(language="", text="open", first_line=10, last_line=10),
    )
    assert [lines[block.last_line].text.strip() for block in grown.blocks()] == ["y", "z", "open"]


def test_a_long_code_block_is_one_block_with_its_exact_text() -> None:
    code = "\n".join(f"line {number}" + "x" * (5_000 if number == 50 else 0) for number in range(500))
    grown = MarkdownText(f"```\n{code}\n```\nend")
    lines = grown.lines(100, LOOK)
    (block,) = grown.blocks()
    assert block.text == code
    assert lines[block.first_line].text.strip() == "line 0"
    assert lines[block.last_line].text.strip() == "line 499"
    assert len(lines) == block.last_line + 3


def test_tables_are_boxes() -> None:
    source = "| a | long name | c |\n|--:|:--|:-:|\n| 1 | `x` | 日本 |\n| 22 | y |"
    assert drawn(source) == [
        "╭────┬───────────┬──────╮",
        "│  a │ long name │  c   │",
        "├────┼───────────┼──────┤",
        "│  1 │ x         │ 日本 │",
        "│ 22 │ y         │      │",
        "╰────┴───────────┴──────╯",
    ]


def test_the_widest_columns_of_a_table_give_way() -> None:
    source = "| a | b |\n|---|---|\n| one | two three four |\n| five | six |"
    assert drawn(source, 20) == [
        "╭──────┬───────────╮",
        "│ a    │ b         │",
        "├──────┼───────────┤",
        "│ one  │ two three │",
        "│      │ four      │",
        "├──────┼───────────┤",
        "│ five │ six       │",
        "╰──────┴───────────╯",
    ]


def test_a_table_without_room_is_a_list() -> None:
    source = "| name | size | speed |\n|---|---|---|\n| small model | 98 megabytes | fast |"
    assert drawn(source, 16) == ["name: small", "model", "size: 98", "megabytes", "speed: fast"]


def test_a_long_table_and_a_long_list_go_on_without_a_gap() -> None:
    rows = "\n".join(f"| {number} | x |" for number in range(200))
    lines = drawn(f"| n | m |\n|---|---|\n{rows}")
    assert next(line for line in lines if line[0] == "│") == "│ n  │ m │"
    assert "" not in lines
    assert "│ 199 │ x │" in lines
    items = "1. first\n" + "".join(f"   - item {number}\n" for number in range(200))
    assert drawn(items)[1:] == [f"   ◦ item {number}" for number in range(200)]


def test_models_close_code_in_a_list_too_far_left() -> None:
    assert drawn("1. Run\n   ```\n   x\n```\n2. Next") == ["1. Run", "", "    x", "", "2. Next"]


def test_headings_differ_without_colour() -> None:
    def look(level: int) -> tuple[object, ...]:
        style = styles(f"{'#' * level} Title", "Title")
        return drawn(f"{'#' * level} Title")[1:], style.bold, style.italic, style.underline

    looks = [look(level) for level in range(1, 7)]
    assert len(set(map(str, looks))) == 6
    assert all(looks[level] != ([], None, None, None) for level in range(6))


def test_marks_within_text() -> None:
    assert styles("a **bold** b", "bold").bold
    assert styles("a *slanted* b", "slanted").italic
    assert styles("a ~~gone~~ b", "gone").strike
    assert styles("a [link](x)", "link").underline
    assert styles("a `code`", "code") == LOOK.code


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_a_look_comes_from_every_theme(theme: str) -> None:
    from textual.app import App

    app: App[None] = App()
    async with app.run_test() as pilot:
        app.theme = theme
        await pilot.pause()
        look = Look.of(app.theme_variables)
    assert look is Look.of(app.theme_variables)
    assert look.keyword.color
    assert look.link.underline
