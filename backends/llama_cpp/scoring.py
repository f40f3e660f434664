"""The scoring child: reads ``ReadText`` and ``ScoreText`` frames, one after another, and answers each.

A child, because a bad file aborts the library, and so that the memory of one model is free before the next is loaded.
It ends when the application does, whatever it is doing.
"""

import contextlib
import os
import queue
import threading
import traceback

import msgspec

from localinfer import decoding
from localinfer.errors import LocalInferError
from localinfer.models.scores import Ask, ReadText, ScoreText, Unscored
from localinfer.process import Channel, claim_stdio


def main() -> None:
    """Serve."""
    channel = claim_stdio()
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    waiting: queue.SimpleQueue[ReadText | ScoreText] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(channel, waiting), daemon=True).start()
    while True:
        asked = waiting.get()
        try:
            _answer(channel, asked)
        except LocalInferError as error:
            channel.send(Unscored(error=error.fault()))
        except Exception as error:
            traceback.print_exc()
            failure = LocalInferError(f"The text cannot be scored: {error}", "See the log.")
            channel.send(Unscored(error=failure.fault()))


def _receive(channel: Channel, waiting: "queue.SimpleQueue[ReadText | ScoreText]") -> None:
    decoder: msgspec.msgpack.Decoder[Ask] = decoding.msgpack(Ask)  # type: ignore[arg-type]
    while (asked := channel.receive(decoder)) is not None:
        waiting.put(asked)
    os._exit(0)


def _answer(channel: Channel, asked: ReadText | ScoreText) -> None:
    from backends.llama_cpp.scorer import Scorer, read_text  # that the library is missing is an answer too

    if isinstance(asked, ReadText):
        channel.send(read_text(asked))
        return
    with contextlib.closing(Scorer(asked)) as scorer:
        for chunk in scorer.chunks():
            channel.send(chunk)
        channel.send(scorer.described())


if __name__ == "__main__":
    main()
