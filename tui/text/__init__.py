"""Text from outside as lines of cells: made harmless, measured, wrapped, and Markdown that grows.

Knows strings, styles and widths; nothing of widgets, conversations or engines.
"""
