"""The llama.cpp library itself: importing its low-level bindings, its log, its devices.

``llama_cpp``'s own ``__init__`` imports the high-level API with its servers' and templates' dependencies: 0.3 s and
30 MB that nothing here uses. The bindings are therefore imported under an empty package object.
"""

import contextlib
import ctypes
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from localinfer import builds
from localinfer.builds import LlamaBuild
from localinfer.errors import BackendUnavailable


def _bindings() -> tuple[Any, LlamaBuild | None, str]:
    """The bindings, the build they are from (None: the environment's), and why it is not another one.

    A build that was made for the graphics card can stop working, with a driver that was removed for example.
    """
    choice = builds.chosen()
    if choice.build is None:
        return _load(None), None, choice.notice
    try:
        return _load(choice.build), choice.build, ""
    except BackendUnavailable as error:
        if choice.only:
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "llama_cpp"]:
            del sys.modules[name]
        reason = error.message.rstrip(".")
        return _load(None), None, f"{reason}. The CPU build is used. Run “{builds.SETUP}” again."


def _load(build: LlamaBuild | None) -> Any:
    """Import the bindings of one build. Raises ``BackendUnavailable``."""
    if build is None:
        spec = importlib.util.find_spec("llama_cpp")
    else:
        spec = PathFinder.find_spec("llama_cpp", [str(build.folder)])
        for library in build.library_paths():
            with contextlib.suppress(OSError):  # then loading what needs it says so
                ctypes.CDLL(str(library))
    if spec is None:
        raise BackendUnavailable("llama-cpp-python is not installed.", "Install localinfer again.")
    if "llama_cpp" not in sys.modules:
        package = ModuleType("llama_cpp")
        package.__path__ = list(spec.submodule_search_locations or ())
        package.__spec__ = spec
        sys.modules["llama_cpp"] = package
    try:
        return importlib.import_module("llama_cpp.llama_cpp")
    except (ImportError, RuntimeError, OSError) as error:
        raise BackendUnavailable(
            f"The llama.cpp library cannot be loaded: {error}",
            "Install it again from source: pip install --force-reinstall --no-cache-dir llama-cpp-python",
        ) from error


# ggml's threads wait for each other hundreds of times a token. GNU OpenMP spins for milliseconds before it lets the
# core go to the thread it waits for. With a short spin a machine that becomes busy is up to ten times faster, an idle
# one as fast. The OpenMP library reads this when it is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "50000")
lib: Any
lib, _build, notice = _bindings()

_INFO, _ERROR, _CONTINUED = 2, 4, 5


class LogLines:
    """Log lines gathered while loading, and those among them that are errors."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.errors: list[str] = []

    def add(self, level: int, text: str) -> None:
        """Take one message as the library gave it."""
        line = text.strip()
        if line:
            self.lines.append(line)
            if level == _ERROR:
                self.errors.append(line)


class _Log:
    """Where the library's messages go: descriptor 2, which is the log file, without the debug messages."""

    def __init__(self) -> None:
        self.collector: LogLines | None = None
        self._level = _INFO
        self._callback = lib.llama_log_callback(self._on_message)
        lib.llama_log_set(self._callback, None)

    def _on_message(self, level: int, text: bytes, _user: object) -> None:
        if level != _CONTINUED:
            self._level = level
        if self._level >= _INFO:
            os.write(2, text)
            if self.collector is not None:
                self.collector.add(self._level, text.decode("utf-8", "replace"))


_log = _Log()


@contextmanager
def capture_log(into: LogLines | None = None) -> Iterator[LogLines]:
    """Gather what the library logs meanwhile."""
    _log.collector = seen = LogLines() if into is None else into
    try:
        yield seen
    finally:
        _log.collector = None


class Device(msgspec.Struct, frozen=True):
    """A device llama.cpp can compute on. Memory is 0 where the driver does not say."""

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int
    handle: int = 0


def devices() -> tuple[Device, ...]:
    """Every device of this build, CPU included. May initialise a GPU driver: call in a process that may die."""
    core = shared_library("ggml")
    base = shared_library("ggml-base")
    core.ggml_backend_dev_count.restype = ctypes.c_size_t
    core.ggml_backend_dev_get.restype = ctypes.c_void_p
    core.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    for name in ("name", "description"):
        function = getattr(base, f"ggml_backend_dev_{name}")
        function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    base.ggml_backend_dev_type.restype, base.ggml_backend_dev_type.argtypes = ctypes.c_int, [ctypes.c_void_p]
    base.ggml_backend_dev_memory.restype = None
    base.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p, *[ctypes.POINTER(ctypes.c_size_t)] * 2]
    kinds = ("CPU", "GPU", "integrated GPU", "accelerator")
    found = []
    for index in range(core.ggml_backend_dev_count()):
        handle = core.ggml_backend_dev_get(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        base.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
        kind = base.ggml_backend_dev_type(handle)
        found.append(
            Device(
                name=base.ggml_backend_dev_name(handle).decode(),
                description=base.ggml_backend_dev_description(handle).decode(),
                kind=kinds[kind] if kind < len(kinds) else "other",
                free_bytes=free.value,
                total_bytes=total.value,
                handle=handle,
            )
        )
    return tuple(found)


def cpu_buffer_type() -> int:
    """The handle of the machine's own memory as a place for tensors."""
    function = shared_library("ggml-base").ggml_backend_cpu_buffer_type
    function.restype = ctypes.c_void_p
    return int(function())


def system_info() -> str:
    """What the build uses of this processor, as llama.cpp prints it."""
    return str(lib.llama_print_system_info().decode("utf-8", "replace")).strip()


def version() -> str:
    """Version of llama-cpp-python."""
    return _build.version if _build is not None else metadata.version("llama-cpp-python")


def shared_library(name: str) -> ctypes.CDLL:
    """One of the libraries that the bindings have loaded, for what they leave out: ggml, ggml-base, llama."""
    folder = Path(lib.__file__).parent / "lib"
    for pattern in (f"lib{name}.so", f"lib{name}.dylib", f"{name}.dll", f"lib{name}.dll"):
        if (folder / pattern).exists():
            return ctypes.CDLL(str(folder / pattern))
    raise BackendUnavailable(f"lib{name} is missing from llama-cpp-python.", "Install llama-cpp-python again.")
