"""The builds of llama.cpp that were made for this machine's graphics cards, and which of them is in use.

A build is a folder of its own, outside the environment: whatever installs the environment anew leaves it alone. Knows
the folders and the one file that names the active build; how a build is made or loaded it does not know.
"""

import contextlib
from functools import cache
from importlib import metadata
from pathlib import Path

import msgspec

from localinfer import decoding, kept, settings
from localinfer.errors import StorageUnavailable
from localinfer.types import Value

LIBRARY = "llama-cpp-python"
SETUP = "localinfer setup-gpu"
_ACTIVE = "llama-cpp-build.json"


class LlamaBuild(Value, frozen=True):
    """One build. ``name`` is that of its folder, ``version`` llama-cpp-python's, ``origin`` says in words what it is.

    ``cards`` are the graphics cards it was made for. ``sizes`` has the bytes of its files by their path in the folder.
    ``libraries`` are the CUDA libraries it needs, in the order to load them: absolute paths or paths in the folder.
    """

    name: str
    version: str
    origin: str
    cards: tuple[str, ...] = ()
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    libraries: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is."""
        return settings.builds_dir() / self.name

    def library_paths(self) -> tuple[Path, ...]:
        """``libraries``, absolute."""
        return tuple(self.folder / library for library in self.libraries)


class Choice(Value, frozen=True):
    """The build to load: ``build``, or that of the environment where it is None. ``notice`` says why not the active
    one. ``only``: this one and no other will do."""

    build: LlamaBuild | None = None
    notice: str = ""
    only: bool = False


_for_this_process: LlamaBuild | None = None


def choose(build: LlamaBuild) -> None:
    """Let this process load ``build`` and no other, whatever is active. Call it before the library is loaded."""
    global _for_this_process
    _for_this_process = build


def chosen() -> Choice:
    """What this process should load."""
    if _for_this_process is not None:
        return Choice(build=_for_this_process, only=True)
    try:
        build = active()
    except StorageUnavailable as error:
        return Choice(notice=f"{error.message} The CPU build is used. {error.hint}")
    if build is None:
        return Choice()
    if reason := unusable(build):
        notice = f"The build of llama.cpp for the graphics card is not used: {reason}. Run “{SETUP}” again."
        return Choice(notice=notice)
    return Choice(build=build)


def active() -> LlamaBuild | None:
    """The build that was made active, whether it can be used or not. Raises ``StorageUnavailable``."""
    path = _active_file()
    try:
        return decoding.json(settings.read_file(path, kept.MOST_BYTES), LlamaBuild)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ours"
        raise StorageUnavailable(f"{path} cannot be read: {reason}.", f"Run “{SETUP}” again.") from error


def unusable(build: LlamaBuild) -> str:
    """Why ``build`` cannot be used by this localinfer, as the end of a sentence; empty if it can."""
    if build.version != required_version():
        return f"it is {LIBRARY} {build.version}, and this localinfer needs {required_version()}"
    for name, size in build.sizes.items():
        try:
            if (build.folder / name).stat().st_size != size:
                return f"its file {name} has changed"
        except OSError:
            return f"its file {name} is missing"
    return ""


def activate(build: LlamaBuild) -> None:
    """Use ``build`` from now on, in every process that starts. Raises ``StorageUnavailable``."""
    path = _active_file()
    try:
        kept.replace(path, build)
    except OSError as error:
        raise _unwritable(path, error) from error


def deactivate() -> bool:
    """Use the environment's build again; whether another one was active. Raises ``StorageUnavailable``."""
    path = _active_file()
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(path, error) from error
    return True


@cache
def required_version() -> str:
    """The version of llama-cpp-python that this localinfer is made for; "" where no installation tells."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        for requirement in metadata.requires("localinfer") or ():
            name, _, version = requirement.partition(";")[0].partition("==")
            if name.strip() == LIBRARY and version:
                return version.strip()
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(LIBRARY)
    return ""


def _active_file() -> Path:
    return settings.state_dir() / _ACTIVE


def _unwritable(path: Path, error: OSError) -> StorageUnavailable:
    return StorageUnavailable(
        f"{path} cannot be written: {error.strerror or error}.",
        "Free some space, or set LOCALINFER_HOME to a folder where you may write.",
    )
