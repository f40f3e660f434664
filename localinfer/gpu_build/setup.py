"""Making a build of llama.cpp for the graphics card and putting it to use, all of it or none.

The build goes into a folder of its own and becomes the active one only when it has been proven; until then, and if
anything fails, whatever was used before stays in use. It knows neither terminals
nor models, nor how a plan is made.
"""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from localinfer import builds, settings
from localinfer.builds import LIBRARY, LlamaBuild
from localinfer.errors import BackendUnavailable, DownloadFailed, NotEnoughDisk, StorageUnavailable
from localinfer.gpu_build import pip
from localinfer.gpu_build.plan import Plan
from localinfer.gpu_build.proof import Proof, prove
from localinfer.lock import try_exclusive

Progress = Callable[[str], None]

_LOCK = ".lock"
_TEMPORARY = ".tmp-"
# The CUDA libraries of NVIDIA's packages, in the order in which they need each other.
_RUNTIME = ("cudart", "nvrtc", "cublasLt", "cublas")


def prove_current(model: Path | None, *, features: tuple[str, ...] = ()) -> Proof:
    """Show that the build in use computes on a graphics card. Raises ``BackendUnavailable`` if it does not."""
    return prove(builds.chosen().build, model, new_log("proof"), features=features)


def install(plan: Plan, model: Path | None, progress: Progress, *, features: tuple[str, ...] = ()) -> Proof:
    """Carry out ``plan``: install, prove, make active, remove what was active before.

    ``model`` is tried on the build if there is one; ``features`` are the processor's, where they are known.
    ``progress`` hears what is going on, several times a second. On any error, and on Ctrl-C, everything is as before.
    Raises ``BackendUnavailable``, ``Offline``, ``DownloadFailed``, ``NotEnoughDisk``, ``OutOfMemory``,
    ``StorageUnavailable``.
    """
    root = settings.make_folder(settings.builds_dir())
    with _disk_errors(root, plan), _alone(root):
        _sweep(root)
        free = shutil.disk_usage(root).free
        if free < plan.needs_bytes:
            raise _no_disk(root, plan, free)
        folder = Path(tempfile.mkdtemp(prefix=f"{plan.version}-cu{plan.cuda[0]}{plan.cuda[1]}-{plan.kind}-", dir=root))
        try:
            proof = _install(plan, folder, model, progress, features)
        except BaseException:
            if not _is_active(folder.name):  # Ctrl-C just after it became active comes too late
                shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            _sweep(root)
        return proof


def undo() -> bool:
    """Use the environment's build again, and remove the other; whether there was one. Raises ``StorageUnavailable``."""
    root = settings.builds_dir()
    if not root.exists():
        return builds.deactivate()
    with _alone(root):
        undone = builds.deactivate()
        _sweep(root)
    return undone


def new_log(kind: str) -> Path:
    """The path of a log that nothing else writes."""
    folder = settings.make_folder(settings.log_dir())
    return folder / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"


def _install(plan: Plan, folder: Path, model: Path | None, progress: Progress, features: tuple[str, ...]) -> Proof:
    temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=folder.parent))
    try:
        pip.run(plan.command(folder), plan.environment, temporary, new_log("setup-gpu"), progress)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    build = _describe(plan, folder)
    progress("Trying the build")
    proof = prove(build, model, new_log("proof"), features=features)
    builds.activate(build)
    return proof


def _describe(plan: Plan, folder: Path) -> LlamaBuild:
    """The build that pip has put into ``folder``. Raises ``DownloadFailed`` if that is another one."""
    found = next((found.version for found in metadata.distributions(name=LIBRARY, path=[str(folder)])), None)
    if found != plan.version and (found or "").partition("+")[0] != plan.version:
        message = f"What was installed is {LIBRARY} {found or '?'} instead of {plan.version}."
        raise DownloadFailed(message, f"Build it here instead: {builds.SETUP} --source")
    files = [*_in(folder, "llama_cpp/lib/*"), *_in(folder, "llama_cpp/*.py")]
    libraries = [file for name in _RUNTIME for file in _runtime(folder, name)]
    return LlamaBuild(
        name=folder.name,
        version=plan.version,
        origin=plan.origin,
        cards=plan.cards,
        sizes={_relative(folder, file): file.stat().st_size for file in [*files, *libraries]},
        libraries=tuple(_relative(folder, file) for file in libraries),
    )


def _in(folder: Path, pattern: str) -> list[Path]:
    return sorted(file for file in folder.glob(pattern) if file.is_file())


def _runtime(folder: Path, name: str) -> list[Path]:
    return [*_in(folder, f"nvidia/**/lib/lib{name}.so.*"), *_in(folder, f"nvidia/**/bin/**/{name}64_*.dll")]


def _relative(folder: Path, file: Path) -> str:
    return file.relative_to(folder).as_posix()


# What is left of earlier attempts, and of others at the same time


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the lock of all builds. Raises ``BackendUnavailable`` when another process does."""
    with try_exclusive(root / _LOCK) as held:
        if not held:
            raise BackendUnavailable("Another localinfer is setting up a build right now.", "Wait until it has ended.")
        yield


def _sweep(root: Path) -> None:
    """Remove every build but the active one. What another process still uses goes the next time (Windows)."""
    for folder in root.iterdir():
        if folder.name != _LOCK and not _is_active(folder.name):
            shutil.rmtree(folder, ignore_errors=True)


def _is_active(name: str) -> bool:
    with contextlib.suppress(StorageUnavailable):
        active = builds.active()
        return active is not None and active.name == name
    return False


@contextmanager
def _disk_errors(root: Path, plan: Plan) -> Iterator[None]:
    """What the disk refuses, in the person's terms."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_disk(root, plan, shutil.disk_usage(root).free) from error
        raise StorageUnavailable(
            f"The build cannot be stored in {root}: {error.strerror or error}.",
            "Set LOCALINFER_HOME to a folder where you may write.",
        ) from error


def _no_disk(root: Path, plan: Plan, free: int) -> NotEnoughDisk:
    return NotEnoughDisk(
        f"There is not enough room in {root}: {free / 1e9:.1f} GB are free, up to {plan.needs_bytes / 1e9:.1f} GB are "
        "needed.",
        "Free some space, or set LOCALINFER_HOME to a folder on a larger disk. Nothing was changed.",
        needed_bytes=plan.needs_bytes,
        free_bytes=free,
    )
