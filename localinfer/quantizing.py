"""Making another quantization of a model with the library's quantizer, in a child that a bad file may end.

It knows when a conversion makes sense, where the result goes and that it is whole before it is there. What is
unfinished lies beside it as ``.NAME.part``; its owner holds a lock that the system releases with it.
"""

import contextlib
import hashlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from localinfer import settings
from localinfer.errors import (
    BadRequest,
    LocalInferError,
    ModelFileInvalid,
    NotEnoughDisk,
    OutOfMemory,
    StorageUnavailable,
    from_fault,
)
from localinfer.lock import try_exclusive
from localinfer.metrics import now_ns
from localinfer.models import gguf, quantizations
from localinfer.models.conversion import PLAIN, Conversion, Converted, Report, Tensors, Unconverted
from localinfer.models.explain import download_size
from localinfer.models.names import printable
from localinfer.models.store import ModelRef
from localinfer.process import Child, Death
from localinfer.types import Value

CHILD = "backends.llama_cpp.quantizing"

_MARGIN_BYTES = 64_000_000  # left free on the disk
_SIZE_ERROR = 0.005
_SIZE_ERROR_BYTES = 1 << 18
_serial = itertools.count(1)


class Quantized(Value, frozen=True, omit_defaults=False):
    """What was made. Sizes are those of the files. ``notices`` are what one should know of its quality."""

    path: Path
    quantization: str
    description: str
    before_bytes: int
    after_bytes: int
    bits_per_weight: float
    took_s: float
    notices: tuple[str, ...] = ()


def quantize(
    source: ModelRef,
    quantization: str,
    target: Path | None,
    *,
    progress: Callable[[Tensors], None],
    threads: int | None = None,
    force: bool = False,
) -> Quantized:
    """Make ``target`` of ``source`` with weights in ``quantization``, or change nothing.

    ``target`` None: the name of the source with the other quantization, see ``default_target``. ``force`` replaces a
    file that is there, and makes what cannot be better than its source. An exception from ``progress``, or Ctrl-C, ends
    it. Raises ``BadRequest``, ``ModelFileInvalid``, ``NotEnoughDisk``, ``StorageUnavailable``, ``OutOfMemory``,
    ``LocalInferError``.
    """
    headers = gguf.check_all(source.paths)
    types = {tensor.type for header in headers for tensor in header.tensors}
    started_ns = now_ns()
    with _Quantizer(source.path) as child:
        asked = Conversion(
            source=_spelled(source.path),
            target="",
            quantization=quantization,
            threads=threads,
            requantize=True,
            only_sizes=True,
        )
        planned = child.convert(asked, lambda _: None)
        out = (target or default_target(source, planned.quantization)).absolute()
        notices = _sensible(source, types - PLAIN, planned, force=force)
        header_bytes = sum(header.header_bytes for header in headers)
        with _owned(source, out, force=force) as part:
            _room(part.parent, planned.after_bytes + header_bytes)
            made = child.convert(
                Conversion(
                    source=asked.source,
                    target=_spelled(part),
                    quantization=planned.quantization,
                    threads=threads,
                    requantize=bool(types - PLAIN),
                ),
                progress,
                needed_bytes=planned.after_bytes + header_bytes,
            )
            size_bytes = _whole(part, made, sum(header.tensor_count for header in headers))
            _sync(part)
            part.replace(out)
            with contextlib.suppress(OSError):  # not every file system can do this for a folder
                _sync(out.parent)
    return Quantized(
        path=out,
        quantization=made.quantization,
        description=made.description,
        before_bytes=sum(path.stat().st_size for path in source.paths),
        after_bytes=size_bytes,
        bits_per_weight=made.bits_per_weight,
        took_s=(now_ns() - started_ns) / 1e9,
        notices=notices,
    )


def default_target(source: ModelRef, quantization: str) -> Path:
    """The name of the source with its quantization replaced, in the same folder; in the current one if the source lies
    in a cache, named by something else than its path."""
    stem = re.sub(r"-\d{5}-of-\d{5}$", "", source.path.name.removesuffix(source.path.suffix))
    name = f"{quantizations.renamed(stem, quantization)}.gguf"
    return (source.path.parent if source.name == source.path.stem or source.name == stem else Path.cwd()) / name


def _sensible(source: ModelRef, quantized: set[str], planned: Converted, *, force: bool) -> tuple[str, ...]:
    """What should be known of the result. Raises ``BadRequest`` for what cannot be good."""
    name = printable(source.path.name)
    if planned.needs_matrix:
        raise BadRequest(
            f"{planned.quantization} needs an importance matrix, without which its answers would be garbage.",
            "Choose one that needs none, for example Q2_K, Q3_K_M or IQ4_XS.",
            param="type",
        )
    notices = []
    if planned.fallbacks:
        notices.append(
            f"{planned.fallbacks} tensors have a shape that {planned.quantization} cannot hold; they are in a larger "
            "type."
        )
    if not quantized:
        return tuple(notices)
    kinds = ", ".join(sorted(quantized))
    if planned.after_bytes >= planned.before_bytes and not force:
        raise BadRequest(
            f"{name} is quantized already ({kinds}): {planned.quantization} would take "
            f"{download_size(planned.after_bytes)} instead of {download_size(planned.before_bytes)} and be no better.",
            "What quantizing lost cannot be had back: use it as it is, or start from its F16 file. To do it all the "
            "same: --force.",
            param="type",
        )
    if planned.after_bytes >= planned.before_bytes:
        return (*notices, f"It is no better than {name}, only larger.")
    notices.append(
        f"It was made from weights that were quantized already ({kinds}): the losses add up. From the F16 file of the "
        "model it would be better."
    )
    return tuple(notices)


@contextlib.contextmanager
def _owned(source: ModelRef, out: Path, *, force: bool) -> Iterator[Path]:
    """The unfinished file beside ``out``, ours for the block, and gone after it."""
    shown = printable(str(out))
    if any(_same(path, out) for path in source.paths):
        raise BadRequest("The result would replace the model it is made of.", "Name another file.", param="out")
    if out.is_dir():
        raise BadRequest(f"{shown} is a folder.", "Name a file.", param="out")
    if out.exists() and not out.is_file():
        raise BadRequest(f"{shown} is not a file but a device or the like.", "Name a file.", param="out")
    if out.exists() and not force:
        raise BadRequest(f"{shown} is there already.", "Name another file, or replace it: --force.", param="out")
    if not out.parent.is_dir():
        raise BadRequest(f"There is no folder {printable(str(out.parent))}.", "Make it first.", param="out")
    part = out.with_name(f".{out.name}.part")
    key = hashlib.sha256(os.fsencode(out)).hexdigest()[:20]
    with try_exclusive(settings.make_folder(settings.state_dir()) / f"quantize-{key}.lock") as held:
        if not held:
            raise BadRequest(f"Another localinfer is writing {shown}.", "Wait for it, or name another file.")
        try:
            part.touch()  # that the folder can be written is known before the work begins
            yield part
        except OSError as error:
            raise StorageUnavailable(
                f"{shown} cannot be written: {error.strerror or error}.", "Name a file where you may write."
            ) from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _room(folder: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed_bytes + _MARGIN_BYTES:
        raise _no_disk(folder, needed_bytes, free)


def _no_disk(folder: Path, needed_bytes: int, free: int) -> NotEnoughDisk:
    return NotEnoughDisk(
        f"The model would take {download_size(needed_bytes)}; {download_size(free)} are free.",
        f"Free some space where {printable(str(folder))} is, or name a file on another disk.",
        needed_bytes=needed_bytes,
        free_bytes=free,
    )


def _whole(part: Path, made: Converted, tensors: int) -> int:
    """The size of what was written, if it is whole. Raises ``ModelFileInvalid``."""
    header = gguf.check(part)
    if header.tensor_count != tensors:
        raise ModelFileInvalid(
            f"What was written has {header.tensor_count:,} tensors instead of {tensors:,}.", "Try again."
        )
    off = abs(header.weights_bytes - made.after_bytes)
    if off > _SIZE_ERROR * made.after_bytes + _SIZE_ERROR_BYTES:
        raise ModelFileInvalid(
            f"What was written has {header.weights_bytes:,} bytes of weights instead of {made.after_bytes:,}.",
            "Try again.",
        )
    return header.file_size_bytes


def _sync(path: Path) -> None:
    """Have the file, or what a folder says of its files, on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _spelled(path: Path) -> str:
    """``path`` as it goes over the wire. Raises ``BadRequest``."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise BadRequest("The name of the file is not valid Unicode.", "Rename the file.") from error
    return str(path)


class _Quantizer:
    """The child, for as long as it is needed."""

    def __init__(self, source: Path) -> None:
        self._name = printable(source.name)
        log = settings.log_dir() / f"quantizing-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_serial)}.log"
        self._child: Child[Report] = Child(CHILD, Report, log)
        self._reports = self._child.reports()

    def convert(self, asked: Conversion, progress: Callable[[Tensors], None], *, needed_bytes: int = 0) -> Converted:
        """One conversion. Raises what it failed with."""
        self._child.send(asked)
        for report in self._reports:
            match report:
                case Tensors():
                    progress(report)
                case Converted():
                    return report
                case Unconverted():
                    raise self._disk_full(asked, needed_bytes) or from_fault(report.error)
        raise self._disk_full(asked, needed_bytes) or self._explain(self._child.death())

    def __enter__(self) -> "_Quantizer":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.death()

    def _disk_full(self, asked: Conversion, needed_bytes: int) -> LocalInferError | None:
        """The error for a disk that others filled meanwhile: the library says no more than that it could not write."""
        if asked.only_sizes:
            return None
        part = Path(asked.target)
        written = part.stat().st_size if part.exists() else 0
        free = shutil.disk_usage(part.parent).free
        return _no_disk(part.parent, needed_bytes, free + written) if free + written < needed_bytes else None

    def _explain(self, death: Death) -> LocalInferError:
        where = f"The log is {self._child.log}."
        if death.out_of_memory:
            return OutOfMemory(f"Memory ran out while quantizing {self._name} ({death.cause}).", where)
        last = f" Its last line: {death.log_tail[-1]}" if death.log_tail else ""
        return ModelFileInvalid(f"{self._name} makes llama.cpp crash: {death.cause}.", f"{where}{last}")
