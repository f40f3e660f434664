"""The quantizing child: reads ``Conversion`` frames, one after another, and answers each, until its input ends.

A child, because a bad file aborts the library. If the application goes while it works, it deletes what it has written
and goes too.
"""

import contextlib
import os
import queue
import threading
import traceback
from pathlib import Path

from localinfer import decoding
from localinfer.errors import LocalInferError
from localinfer.models.conversion import Conversion, Tensors, Unconverted
from localinfer.process import Channel, claim_stdio


class _Inbox:
    """Requests from the application; when it is gone the process ends."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: queue.SimpleQueue[Conversion] = queue.SimpleQueue()
        self._target = ""
        threading.Thread(target=self._read, daemon=True).start()

    def next(self) -> Conversion:
        """The next request; waits for it."""
        self._target = ""
        asked = self._waiting.get()
        self._target = "" if asked.only_sizes else asked.target
        return asked

    def _read(self) -> None:
        decoder = decoding.msgpack(Conversion)
        while (asked := self._channel.receive(decoder)) is not None:
            self._waiting.put(asked)
        if self._target:
            with contextlib.suppress(OSError):
                Path(self._target).unlink(missing_ok=True)
        os._exit(0)


def main() -> None:
    """Serve."""
    channel = claim_stdio()
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    inbox = _Inbox(channel)
    while True:
        asked = inbox.next()
        try:
            from backends.llama_cpp.quantizer import convert  # that the library is missing is an answer too

            channel.send(convert(asked, lambda done, total: channel.send(Tensors(done=done, total=total))))
        except LocalInferError as error:
            channel.send(Unconverted(error=error.fault()))
        except Exception as error:
            traceback.print_exc()
            failure = LocalInferError(f"The model cannot be quantized: {error}", "See the log.")
            channel.send(Unconverted(error=failure.fault()))


if __name__ == "__main__":
    main()
