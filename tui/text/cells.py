"""How wide text is on a terminal, and where it may be cut: never inside what a reader sees as one character.

Rich counts the cells; here is what it leaves open: joiners that join nothing, flags, syllables of Indic scripts.
"""

import re

from rich.cells import cell_len, split_graphemes

_EMOJI = "\u203c-\u3299\U0001f000-\U0001faff"
_TONES = "\U0001f3fb-\U0001f3ff"
_NARROW_HANDS = "☝⛹✌✍\U0001f3cb\U0001f3cc\U0001f575\U0001f590"

# Rich gives what follows a joiner no cells, whatever it is; a terminal joins emoji only.
# These are compiled at their first use: that takes longer than everything else here.
_STRAY = (
    f"(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])|(?<![0-9#*\xa9\xae{_EMOJI}])\ufe0f|(?<![{_EMOJI}])[{_TONES}]"
)
_NARROW_TONED = f"(?<=[{_NARROW_HANDS}])[{_TONES}]"
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_FLAG_LETTER = re.compile("[\U0001f1e6-\U0001f1ff]")
_LINKING = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
_INDIC = re.compile("[\u0900-\u0d7f]")
_SPACING_MARKS = frozenset("\u0e33\u0eb3")
# One character each, of two cells but for ASCII: what nearly all text of East Asia is made of.
_UNCOMBINED = "[\x20-\x7e\u3001-\u3029\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60]*"
LEFT_TO_RIGHT_MARK = "\u200e"

Cluster = tuple[int, int, int]


def steady(text: str) -> str:
    """``text`` in which Rich and terminals count the same cells: joiners and skin tones only where they act."""
    if text.isascii():
        return text
    return re.sub(_STRAY, "", re.sub(_NARROW_TONED, "\ufe0f", text))


def clusters(text: str) -> list[Cluster]:
    """The characters a reader sees, as (start, end, cells); together they cover ``text``."""
    if re.fullmatch(_UNCOMBINED, text):
        return [(index, index + 1, 1 if character < "\u3000" else 2) for index, character in enumerate(text)]
    found: list[Cluster] = []
    flag_open = False
    for start, end, cells in split_graphemes(text)[0]:
        character = text[start]
        flag = _FLAG_LETTER.match(character) is not None
        joined = bool(found) and (
            (flag and flag_open)
            or character in _SPACING_MARKS
            or (text[start - 1] in _LINKING and _INDIC.match(character) is not None)
        )
        if joined:
            first, _, before = found[-1]
            found[-1] = (first, end, before + cells)
        else:
            found.append((start, end, cells))
        flag_open = flag and not joined
    return found


def is_right_to_left(text: str) -> bool:
    """Whether a terminal that orders right-to-left scripts would move something in ``text``."""
    return not text.isascii() and re.search(_RIGHT_TO_LEFT, text) is not None


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` cells, ``…`` at its end where something was left out."""
    if cell_len(text) <= width:
        return text
    kept, used = 0, 0
    for _, end, cells in clusters(text):
        if used + cells > width - 1:
            break
        kept, used = end, used + cells
    return text[:kept] + "…" if width > 0 else ""
