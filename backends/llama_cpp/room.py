"""How many cells the KV cache gets: what was asked for, else what the machine's memory allows.

Pure arithmetic. A cell holds one token of one sequence.
"""

import msgspec

from localinfer.errors import DoesNotFit

DEFAULT_CONTEXT = 8192
LEAST_CONTEXT = 512
GRAIN = 256  # llama.cpp pads to this
_SHARE = 0.8  # of the available memory may go to the cache when nobody asked for a size
_SPARSEST = 8  # sliding-window and hybrid models keep everything in at least one layer of so many


class Room(msgspec.Struct, frozen=True):
    """``context`` is tokens a sequence may use. ``cells`` are for all slots together, shared if ``unified``."""

    context: int
    cells: int
    unified: bool


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What is known. ``cell_bytes`` is an upper bound, exact for ``dense`` models, whose layers all keep all tokens."""

    cell_bytes: int
    dense: bool
    trained_context: int
    available_bytes: int


def make_room(need: Need, *, context: int | None, slots: int, unified: bool) -> Room:
    """Room for ``slots`` sequences of ``context`` tokens (None: the smaller of 8,192 and the trained context).

    Without a wish for the context, slots share one cache where memory is too short for each to have its own. Raises
    ``DoesNotFit`` for a wish that certainly exceeds the memory: the system would end the process.
    """
    if context is not None:
        _check(need, context, slots)
        return Room(context, padded(context) * slots, unified)
    wanted = min(DEFAULT_CONTEXT, need.trained_context or DEFAULT_CONTEXT)
    affordable = int(need.available_bytes * _SHARE) // max(1, need.cell_bytes) // GRAIN * GRAIN
    if unified or (slots > 1 and affordable < wanted * slots):
        cells = max(LEAST_CONTEXT, min(wanted * slots, affordable))
        return Room(min(wanted, cells), cells, unified=True)
    length = max(LEAST_CONTEXT, min(wanted, affordable // slots))
    return Room(length, padded(length) * slots, unified=False)


def _check(need: Need, context: int, slots: int) -> None:
    least = context * slots * need.cell_bytes // (1 if need.dense else _SPARSEST)
    if least <= need.available_bytes:
        return
    each = need.available_bytes // 2 // max(1, need.cell_bytes * slots) // GRAIN * GRAIN
    raise DoesNotFit(
        f"A context of {context:,} tokens{f' in {slots} slots' if slots > 1 else ''} needs {least / 2**30:.1f} GiB, "
        f"but {need.available_bytes / 2**30:.1f} GiB are free.",
        f"Ask for a smaller context, for example {max(LEAST_CONTEXT, each)}.",
    )


def padded(tokens: int) -> int:
    """``tokens`` as llama.cpp makes cells of them."""
    return -(-tokens // GRAIN) * GRAIN
