"""Names that come from outside: which of them may name a file of ours, and how they are shown.

Knows nothing of catalogues or folders.
"""

_RESERVED = {
    *("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"),
    *(device + number for device in ("COM", "LPT") for number in "0123456789¹²³"),
}
_FORBIDDEN = frozenset('/\\:*?"<>|')
_LONGEST_BYTES = 200
_DEEPEST = 8


def safe_file_name(name: str) -> bool:
    """Whether ``name`` names a plain file inside a folder on every system, and nothing else."""
    return (
        0 < len(name.encode("utf-8", "replace")) <= _LONGEST_BYTES
        and name.isprintable()
        and _FORBIDDEN.isdisjoint(name)
        and not name.startswith((".", " "))
        and not name.endswith((".", " "))
        and name.partition(".")[0].rstrip().upper() not in _RESERVED
    )


def safe_file_path(path: str) -> bool:
    """Whether ``path``, with forward slashes, names a file inside a folder on every system, and nothing else."""
    parts = path.split("/")
    return len(parts) <= _DEEPEST and all(safe_file_name(part) for part in parts)


def printable(text: str, longest: int = 4_000) -> str:
    """``text`` without anything a terminal would obey, cut to ``longest`` characters."""
    cut = text if len(text) <= longest else text[:longest] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
