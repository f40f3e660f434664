"""Reading the headers of files nobody vouches for, in a child with little memory and time that they may waste.

The child is ``python -m localinfer.models.inspect``. It does not know what the headers mean.
"""

import contextlib
import itertools
import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from localinfer import decoding, settings
from localinfer.errors import LocalInferError, ModelFileInvalid, from_fault
from localinfer.models.gguf import Header, check_all
from localinfer.models.names import printable
from localinfer.process import Child, Death, claim_stdio
from localinfer.types import Fault, Value

TIMEOUT_S = 10.0
MEMORY_BYTES = 1 << 30  # address space of the child, its interpreter included

_serial = itertools.count(1)


class Inspect(Value, frozen=True):
    """What to read: all files of one model as the file system names them, with this much time and memory."""

    paths: tuple[bytes, ...]
    timeout_s: float
    memory_bytes: int


class Inspected(Value, frozen=True):
    """What came of it: the headers, or an error."""

    headers: tuple[Header, ...] = ()
    error: Fault | None = None


def inspect(
    paths: Sequence[Path], timeout_s: float = TIMEOUT_S, *, memory_bytes: int = MEMORY_BYTES
) -> tuple[Header, ...]:
    """The headers of all files of one model, first part first.

    Raises what ``gguf.check_all`` does; files that take the child longer than ``timeout_s`` or more than
    ``memory_bytes`` are ``ModelFileInvalid`` too.
    """
    log = settings.make_folder(settings.log_dir()) / f"inspect-{os.getpid()}-{next(_serial)}.log"
    child: Child[Inspected] = Child("localinfer.models.inspect", Inspected, log)
    late = threading.Event()

    def give_up() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(timeout_s, give_up)
    timer.start()
    try:
        names = tuple(os.fsencode(path) for path in paths)
        child.send(Inspect(paths=names, timeout_s=timeout_s, memory_bytes=memory_bytes))
        report = next(child.reports(), None)
        if report is None:
            raise _explain(paths, child.death(), timeout_s if late.is_set() else None)
    finally:
        timer.cancel()
        child.kill()
        child.death()
    if report.error is not None:
        raise from_fault(report.error)
    return report.headers


def _explain(paths: Sequence[Path], death: Death, late_s: float | None) -> ModelFileInvalid:
    name = printable(paths[0].name) if paths else "This model"
    if late_s is not None:
        reason = f"its header could not be read within {late_s:g} seconds"
    else:
        reason = f"the process that read its header did not survive: {death.cause}"
    return ModelFileInvalid(
        f"{name} is not a model that can be loaded: {reason}.", "Fetch the file again, or get it from elsewhere."
    )


def _limit(request: Inspect) -> None:
    """Let this process have no more memory and time than reading takes, where the system can see to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        for limit, most in (
            (resource.RLIMIT_CPU, math.ceil(request.timeout_s) + 1),
            (resource.RLIMIT_AS, request.memory_bytes),
            (resource.RLIMIT_CORE, 0),
        ):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(limit, (most, most))


def main() -> None:
    """In the child: read what the first frame names and send what came of it."""
    channel = claim_stdio()
    request = channel.receive(decoding.msgpack(Inspect))
    if request is None:
        return
    _limit(request)
    try:
        report = Inspected(headers=check_all([Path(os.fsdecode(path)) for path in request.paths]))
    except LocalInferError as error:
        report = Inspected(error=error.fault())
    channel.send(report)


if __name__ == "__main__":
    main()
