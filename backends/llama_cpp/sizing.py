"""The sizing child: how much memory a model would take, asked of the library without loading it.

Reads ``SizeRequest`` frames, one after another, and answers each with a ``SizeReport``, until its input ends. A child,
because a bad file aborts the library and its log is one for the whole process.
"""

import contextlib
import importlib
import os
import traceback
from collections.abc import Callable

from localinfer import decoding
from localinfer.errors import LocalInferError
from localinfer.machine import available_memory_bytes
from localinfer.models.sizes import SizeReport, SizeRequest, Sizes
from localinfer.process import claim_stdio


def _limit_memory() -> None:
    """Take no more memory than there is: the library really allocates recurrent states, also those of a lying file."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limits
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if soft == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_DATA, (available_memory_bytes(), hard))


def main() -> None:
    """Serve."""
    channel = claim_stdio()
    _limit_memory()
    # Where a debugger is installed, the library would have it write a backtrace before it aborts: seconds for nothing.
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    with contextlib.suppress(Exception):  # while the first request is on its way; it is told what is wrong
        importlib.import_module("backends.llama_cpp.sizer")
    decoder = decoding.msgpack(SizeRequest)
    measure: Callable[[SizeRequest], Sizes] | None = None
    while (request := channel.receive(decoder)) is not None:
        try:
            if measure is None:
                from backends.llama_cpp.sizer import Sizer  # that the library is missing is an answer too

                measure = Sizer().measure
            report = SizeReport(sizes=measure(request))
        except LocalInferError as error:
            report = SizeReport(error=error.fault())
        except Exception as error:
            traceback.print_exc()
            failure = LocalInferError(f"The sizes cannot be found out: {error}", "See the log.")
            report = SizeReport(error=failure.fault())
        channel.send(report)


if __name__ == "__main__":
    main()
