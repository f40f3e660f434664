"""Asking the inference library what a model would take, in a child that a bad file may end.

Answers are kept: asking the same of the same file and build costs nothing. It does not know what the machine has, nor
whether the sizes fit it.
"""

import contextlib
import hashlib
import importlib.util
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from localinfer import builds, kept, settings
from localinfer.errors import (
    BackendUnavailable,
    LocalInferError,
    ModelFileInvalid,
    OutOfMemory,
    StorageUnavailable,
    from_fault,
)
from localinfer.models.names import printable
from localinfer.models.sizes import SizeReport, SizeRequest, Sizes
from localinfer.process import Child, Death

CHILD = "backends.llama_cpp.sizing"
TIMEOUT_S = 30.0
KEPT = 1000  # answers

_LIBRARY = "llama_cpp"
_serial = itertools.count(1)


class SizingChild:
    """A child that answers many requests, one at a time. A child that dies is replaced for the next one."""

    def __init__(self) -> None:
        self._child: Child[SizeReport] | None = None
        self._reports: Iterator[SizeReport] = iter(())

    def measure(self, request: SizeRequest, *, timeout_s: float = TIMEOUT_S) -> Sizes:
        """The sizes. Raises ``BadRequest``, ``ModelFileInvalid``, ``OutOfMemory``, ``BackendUnavailable``,
        ``StorageUnavailable``."""
        try:
            "".join(request.paths).encode()
        except UnicodeEncodeError as error:
            raise ModelFileInvalid("The name of the model's file is not valid Unicode.", "Rename the file.") from error
        child = self._started()
        late = threading.Event()

        def give_up() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(timeout_s, give_up)
        timer.start()
        try:
            child.send(request)
            report = next(self._reports, None)
        finally:
            timer.cancel()
        if report is None or late.is_set():
            self._child = None
            raise _explain(request, child, child.death(), timeout_s if late.is_set() else None)
        if report.sizes is None:
            raise from_fault(report.error) if report.error else BackendUnavailable("The sizing child gave no answer.")
        return report.sizes

    def start(self) -> None:
        """Start the child now, so that it is ready when it is asked. Raises ``StorageUnavailable``."""
        self._started()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child.death()
            self._child = None

    def __enter__(self) -> "SizingChild":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _started(self) -> Child[SizeReport]:
        if self._child is None:
            log = settings.log_dir() / f"sizing-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_serial)}.log"
            self._child = Child(CHILD, SizeReport, log)
            self._reports = self._child.reports()
        return self._child


def measure(
    request: SizeRequest,
    *,
    timeout_s: float = TIMEOUT_S,
    header_hash: str | None = None,
    child: SizingChild | None = None,
) -> Sizes:
    """``SizingChild.measure`` in ``child`` or one of its own, unless the answer is known already.

    ``header_hash`` says what the files are where their paths do not, as with a ``sparse_copy`` in a folder that goes.
    """
    place = settings.state_dir() / "sizes" / f"{_key(request, header_hash)}.json"
    known = kept.load(place, Sizes, None)
    if known is not None:
        return known
    with contextlib.nullcontext(child) if child is not None else SizingChild() as asked:
        sizes = asked.measure(request, timeout_s=timeout_s)
    kept.save(place, sizes)
    kept.trim(place.parent, KEPT)
    return sizes


def sparse_copy(header_bytes: bytes, size_bytes: int, folder: Path, name: str = "model.gguf") -> Path:
    """A file in ``folder`` with the header and the length of a model of ``size_bytes``.

    It takes no more disk than the header where the file system keeps holes. Raises ``StorageUnavailable``.
    """
    path = settings.make_folder(folder) / name
    try:
        with path.open("wb") as file:
            file.write(header_bytes)
            file.truncate(max(size_bytes, len(header_bytes)))
    except OSError as error:
        hint = "Free some space, or set LOCALINFER_HOME to another disk."
        raise StorageUnavailable(f"The file {path} cannot be written: {error.strerror}.", hint) from error
    return path


def _explain(request: SizeRequest, child: Child[SizeReport], death: Death, timeout_s: float | None) -> LocalInferError:
    name = printable(Path(request.paths[0]).name) if request.paths else "the model"
    where = f"The log is {child.log}."
    if timeout_s is not None:
        message = f"llama.cpp did not say within {timeout_s:g} s what {name} would take."
        return BackendUnavailable(message, f"The file may be damaged, or a GPU driver may hang. {where}")
    if death.out_of_memory:
        return OutOfMemory(f"Memory ran out while sizing {name} ({death.cause}).", f"Choose a smaller context. {where}")
    last = f" Its last line: {death.log_tail[-1]}" if death.log_tail else ""
    message = f"{name} makes llama.cpp crash: {death.cause}."
    return ModelFileInvalid(message, f"Fetch the file again, or choose another model. {where}{last}")


def _key(request: SizeRequest, header_hash: str | None) -> str:
    """What the answer depends on: the files, the question, the build."""
    files = [header_hash] if header_hash is not None else list(map(_identity, map(Path, request.paths)))
    question = msgspec.structs.replace(request, paths=())
    return hashlib.sha256(msgspec.json.encode((files, question, library_identity()))).hexdigest()[:40]


def library_identity() -> list[str]:
    """The library's files: another build of the same version has other ones."""
    build = builds.chosen().build
    spec = importlib.util.find_spec(_LIBRARY) if build is None else None
    folders = spec.submodule_search_locations or [] if spec else []
    if build is not None:
        folders = [str(build.folder / _LIBRARY)]
    return [_identity(path) for folder in folders for path in sorted(Path(folder, "lib").glob("*"))]


def _identity(path: Path) -> str:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return f"{path!a}"
    return f"{path.absolute()!a} {status.st_size} {status.st_mtime_ns}"
