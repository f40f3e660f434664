"""How many bytes the library counts per kind of buffer for one context and its model.

``llama_get_memory_breakdown`` has C++ linkage and returns a ``std::map`` from buffer type to three sizes. It is found
by its symbol, and the map is read as the two C++ libraries lay it out. Where there is no such symbol nothing is said.
"""

import ctypes
import sys
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from backends.llama_cpp.library import shared_library

_SYMBOL = "_Z26llama_get_memory_breakdownPK13llama_context"
_MOST_ENTRIES = 64
_CPU = 0  # ggml_backend_dev_type


class _Layout(NamedTuple):
    """Where things are, in words: the map's size, root node and number of entries; a node's children and value."""

    words: int
    root: int
    entries: int
    left: int
    right: int
    value: int = 4


_LIBSTDCPP = _Layout(words=6, root=2, entries=5, left=2, right=3)
_LIBCPP = _Layout(words=3, root=1, entries=2, left=0, right=1)


class BufferBytes(msgspec.Struct, frozen=True):
    """Bytes in one kind of buffer. ``device`` is as llama.cpp names it, ``cpu`` for memory any code can read.

    ``repacked``: weights in an order of the CPU's own, which only its kernels can read.
    """

    device: str = "cpu"
    repacked: bool = False
    model_bytes: int = 0
    context_bytes: int = 0
    compute_bytes: int = 0


def breakdown(context: object) -> tuple[BufferBytes, ...] | None:
    """The sizes of a ``llama_context`` pointer; None where the build does not tell."""
    function = getattr(shared_library("llama"), _SYMBOL, None)
    if function is None:
        return None
    layout = _LIBCPP if sys.platform == "darwin" else _LIBSTDCPP
    # Larger than two registers, so that both calling conventions return it as they return the map.
    words = ctypes.c_size_t * layout.words
    function.restype = type("_Map", (ctypes.Structure,), {"_fields_": [("words", words)]})
    function.argtypes = [ctypes.c_void_p]
    found = function(ctypes.cast(context, ctypes.c_void_p)).words  # type: ignore[arg-type]
    if not 0 < found[layout.entries] <= _MOST_ENTRIES:
        return None
    entries = tuple(_entries(found[layout.root], layout))
    return tuple(map(_named, entries)) if len(entries) == found[layout.entries] else None


def _entries(node: int, layout: _Layout) -> Iterator[tuple[int, int, int, int]]:
    """Buffer type and its three sizes, of every node of the tree."""
    if node:
        words = (ctypes.c_size_t * (layout.value + 4)).from_address(node)
        yield from _entries(words[layout.left], layout)
        yield words[layout.value], words[layout.value + 1], words[layout.value + 2], words[layout.value + 3]
        yield from _entries(words[layout.right], layout)


def _named(entry: tuple[int, int, int, int]) -> BufferBytes:
    kind, model_bytes, context_bytes, compute_bytes = entry
    base = shared_library("ggml-base")
    base.ggml_backend_buft_is_host.restype, base.ggml_backend_buft_is_host.argtypes = ctypes.c_bool, [ctypes.c_void_p]
    base.ggml_backend_buft_get_device.restype = ctypes.c_void_p
    base.ggml_backend_buft_get_device.argtypes = [ctypes.c_void_p]
    base.ggml_backend_dev_type.restype, base.ggml_backend_dev_type.argtypes = ctypes.c_int, [ctypes.c_void_p]
    base.ggml_backend_dev_name.restype, base.ggml_backend_dev_name.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    device = None if base.ggml_backend_buft_is_host(kind) else base.ggml_backend_buft_get_device(kind)
    own = device is not None and base.ggml_backend_dev_type(device) == _CPU
    return BufferBytes(
        device="cpu" if device is None or own else base.ggml_backend_dev_name(device).decode(),
        repacked=own,
        model_bytes=model_bytes,
        context_bytes=context_bytes,
        compute_bytes=compute_bytes,
    )
