"""Markdown as a model, or an enemy, may write it: strategies that tests share."""

from hypothesis import strategies as st

MARKS = (
    " ", "  ", "    ", "\n", "\n\n", "\n\n\n", "\t", "# ", "## ", "###### ", "- ", "* ", "+ ", "1. ", "10) ",
    "   - ", "> ", ">> ", "```", "```py\n", "~~~", "````", "`", "``", "*", "**", "_", "__", "~~", "|",
    "| a | b |\n|---|:-:|\n", "| c |", "|-|\n", "---\n", "===\n", "***", "[", "](", ")", "![", "[a](http://x.y)",
    "<http://e.f>", "<b>", "&amp;", "&#x202e;", "&#10;", "\\", "\\(", "\\)", "$x_1$", "$$", ":", "[r]: /url\n",
    "[r]", "'''", "{", "}", "def f(x):\n    return 'y'\n",
)  # fmt: skip
SCRIPTS = (
    "word", "another", "https://example.com/a/very/long/address/that/folds", "日本語、「文」", "한국어",
    "नमस्ते", "क्ष", "مرحبا", "e\u0301", "\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "❤\ufe0f", "👍🏽", "\u200d", "\ufe0f",
)  # fmt: skip
CONTROLS = ("\x1b[31m", "\x1b]52;c;AA\x07", "\x9b", "\r\n", "\u202e", "\u2028")
FRAGMENTS = MARKS + SCRIPTS + CONTROLS

soups = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6)), max_size=40).map("".join)


@st.composite
def cut_soups(draw: st.DrawFn) -> list[str]:
    """A soup in pieces, cut anywhere."""
    soup = draw(soups)
    cuts = sorted(draw(st.sets(st.integers(0, len(soup)), max_size=8)))
    return [soup[start:end] for start, end in zip([0, *cuts], [*cuts, len(soup)], strict=True)]
