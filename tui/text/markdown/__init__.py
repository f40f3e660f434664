"""Markdown that grows while a model writes it, drawn as lines of cells.

``units`` cuts the source where nothing can change any more, ``parse`` makes ``nodes`` of it, ``draw`` (with ``table``
and ``code``) lines in a ``look``; ``text`` keeps what was drawn.
"""

from tui.text.markdown.look import Look
from tui.text.markdown.text import CodeBlock, Lines, MarkdownText, warm

__all__ = ["CodeBlock", "Lines", "Look", "MarkdownText", "warm"]
