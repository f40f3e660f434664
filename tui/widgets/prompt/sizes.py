"""Sizes of texts as a person reads them."""


def size(size_bytes: int) -> str:
    """``size_bytes`` with a unit: ``12.4 kB``."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6)):
        if size_bytes < 999.95 * factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes / 1e9:.1f} GB"


def count(number: int, noun: str) -> str:
    """``number`` with its noun: ``1,234 lines``, ``1 line``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
