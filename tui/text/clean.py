"""Text of models, files, hubs and metadata made harmless for a terminal, character by character.

Each character is judged by itself, so a stream may be cut anywhere. `clean` and `in_place` are for what is drawn only:
what is stored, sent and saved stays as it was written. `typed` is for what comes in.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

REPLACEMENT = "\ufffd"
INKLESS = "\u200c"  # one character without cells, which joins nothing


def joins_clusters(environment: Mapping[str, str]) -> bool:
    """Whether this terminal is known to draw a family, a skin tone or ``❤️`` as one character of two cells.

    Others (xterm, screen, older tmux and VTE) add the cells of the parts up, and everything right of it moves.
    """
    return (
        environment.get("TERM_PROGRAM") in {"ghostty", "iTerm.app", "WezTerm"}
        or environment.get("TERM") in {"foot", "xterm-ghostty", "xterm-kitty", "wezterm"}
        or ("WT_SESSION" in environment and "TMUX" not in environment)
    )


Range = tuple[int, int]

# Controls and everything that turns the direction of the rest of the line around: shown, because it was meant to act.
_SHOWN: tuple[Range, ...] = (
    (0x80, 0x84), (0x86, 0x9F), (0x202A, 0x202E), (0x2066, 0x2069), (0xD800, 0xDFFF), (0xFDD0, 0xFDEF),
    (0xFFF9, 0xFFFB), *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0, 0x110000, 0x10000)),
)  # fmt: skip

# Characters without ink that terminals give different widths, or that carry hidden text: they show nothing anyway.
_DROPPED: tuple[Range, ...] = (
    (0x0D, 0x0D), (0xAD, 0xAD), (0x34F, 0x34F), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200B), (0x2060, 0x2065),
    (0x206A, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0E), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip

# Joiner, emoji presentation, skin tones: what makes one character out of several.
_JOINING: tuple[Range, ...] = ((0x200D, 0x200D), (0xFE0F, 0xFE0F), (0x1F3FB, 0x1F3FF))

_LINE_ENDS: tuple[Range, ...] = ((0x85, 0x85), (0x2028, 0x2029))
_PICTURED: tuple[Range, ...] = ((0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F))


class Cleaner:
    """What a terminal must not be sent, and what stands in its place. ``joins``: see `joins_clusters`.

    With ``in_place`` one character stands for each, `INKLESS` where there is nothing to see: the text stays as long.
    """

    def __init__(self, *, joins: bool, in_place: bool = False) -> None:
        dropped = _DROPPED if joins else (*_DROPPED, *_JOINING)
        self._table: dict[int, str | None] = {point: chr(0x2400 + point) for point in _points(_PICTURED)}
        self._table[0x7F] = "␡"
        self._table |= dict.fromkeys(_points(_SHOWN), REPLACEMENT) | dict.fromkeys(
            _points(_LINE_ENDS), "␤" if in_place else "\n"
        )
        self._table |= dict.fromkeys(_points(dropped), INKLESS if in_place else None)
        basic = [part for part in (*_SHOWN, *dropped, *_LINE_ENDS, *_PICTURED, (0x7F, 0x7F)) if part[1] < 0x10000]
        self._basic = re.compile("[{}]".format("".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in basic)))
        self._beyond = re.compile("[\U00010000-\U0010ffff]")  # one set of both is a hundred times slower

    def __call__(self, text: str) -> str:
        harmless = not self._basic.search(text) and (text.isascii() or not self._beyond.search(text))
        return text if harmless else text.translate(self._table)


def _points(ranges: Iterable[Range]) -> Iterator[int]:
    return (point for first, last in ranges for point in range(first, last + 1))


_cleaner = Cleaner(joins=joins_clusters(os.environ))


def clean(text: str) -> str:
    """``text`` with nothing in it that a terminal obeys; ``\\n`` and ``\\t`` stay.

    Control characters become their pictures (``␛``) or ``�``, carriage returns and invisible characters go, Unicode's
    other line ends become ``\\n``.
    """
    return _cleaner(text)


def in_place(text: str) -> str:
    """`clean` for what is edited: the same character stands at each index, one that shows nothing included. Joiners,
    emoji presentation and skin tones stay."""
    return text if text.isascii() and text.isprintable() else _cleaner_in_place()(text)


def typed(text: str) -> str:
    """``text`` from a clipboard or a file as if it had been typed: its lines end in ``\\n``, nothing in it acts."""
    return _harmless()(text.replace("\r\n", "\n").replace("\r", "\n"))


# These two are made at their first use: that takes longer than what else is made here.


@cache
def _cleaner_in_place() -> Cleaner:
    return Cleaner(joins=True, in_place=True)


@cache
def _harmless() -> Cleaner:
    return Cleaner(joins=True)  # what is sent keeps its joiners, whatever this terminal makes of them
