"""The worker's main loop: commands in, one forward pass at a time, typed events out.

Three threads: the reader takes frames and ends the process when the application is gone; the encoder renders templates,
tokenises and counts, so that a long prompt never holds up a step; the main thread owns the model. One ``step`` of the
backend becomes one frame, and fast text shares frames.
"""

import gc
import os
import queue
import sys
import threading
import traceback
from typing import TypeAlias

import msgspec

import backends
from backends.base import (
    Admitted,
    Backend,
    DraftingChanged,
    Finished,
    PrefillAdvanced,
    PrefillStarted,
    Prepares,
    Refused,
    Sampled,
    SequenceJob,
    StepEvent,
)
from localinfer import decoding
from localinfer.errors import LocalInferError, OutOfMemory
from localinfer.metrics import now_ns
from localinfer.process import Channel, claim_stdio
from localinfer.reply import Encoder, Reply
from localinfer.types import (
    Cancel,
    Command,
    Count,
    Counted,
    Done,
    Drafting,
    Event,
    Failed,
    Fatal,
    Loaded,
    LoadOptions,
    LoadProgress,
    Piece,
    Stepped,
    Submit,
)

PROGRESS_EVERY_NS = 50_000_000
IDLE_S = 0.05  # without a request after which the backend may prepare for the next one
HOLD_NS = 45_000_000  # text that follows other text may wait so long for company: each frame costs the model time

# What the encoder thread and the reader thread hand to the model thread.
Encoded = tuple[int, Reply, SequenceJob] | tuple[int, LocalInferError, None]
Inbox: TypeAlias = "queue.SimpleQueue[Encoded | Cancel]"
Outbox: TypeAlias = "queue.SimpleQueue[Submit | Count]"


class Worker:
    """One loaded model and the generations it is working on."""

    def __init__(self, channel: Channel, backend: Backend, inbox: Inbox) -> None:
        self._channel = channel
        self._backend = backend
        self._inbox = inbox
        self._preparing = backend if isinstance(backend, Prepares) else None
        self._replies: dict[int, Reply] = {}
        self._newest = 0
        self._cancelled_early: set[int] = set()
        self._out: list[tuple[int, Event]] = []
        self._urgent = False
        self._flushed_ns = 0

    def run(self) -> None:
        """Serve until the process is ended by its reader thread."""
        while True:
            if not self._replies:
                self._prepare()
            self._drain(block=not self._replies)
            self._flush()  # that a request was taken is said before a step that may be long
            if self._replies:
                self._step()
                self._flush()

    def _prepare(self) -> None:
        """Use the time in which nothing is asked, until something is."""
        wait_s = IDLE_S
        while self._preparing is not None:
            try:
                item = self._inbox.get(timeout=wait_s)
            except queue.Empty:
                if not self._preparing.prepare():
                    self._preparing = None
                wait_s = 0.0
            else:
                self._take(item)
                return

    def _drain(self, *, block: bool) -> None:
        while block or not self._inbox.empty():
            self._take(self._inbox.get())
            block = False

    def _take(self, item: Encoded | Cancel) -> None:
        if isinstance(item, Cancel):
            self._cancel(item.id)
        else:
            self._admit(*item)

    def _admit(self, id: int, outcome: Reply | LocalInferError, job: SequenceJob | None) -> None:
        self._newest = max(self._newest, id)
        if id in self._cancelled_early:
            self._cancelled_early.discard(id)
            self._emit(id, Done(finish_reason="cancelled", at_ns=now_ns()))
        elif isinstance(outcome, LocalInferError):
            self._emit(id, Failed(error=outcome.fault()))
        elif job is not None:
            self._emit(id, outcome.queued(len(self._replies), now_ns()))
            self._replies[id] = outcome
            self._backend.submit(job)

    def _cancel(self, id: int) -> None:
        if self._replies.pop(id, None) is not None:
            self._backend.cancel(id)
            self._emit(id, Done(finish_reason="cancelled", at_ns=now_ns()))
        elif id > self._newest:  # still being encoded
            self._cancelled_early.add(id)

    def _step(self) -> None:
        before_ns = now_ns()
        events = self._backend.step()
        after_ns = now_ns()
        # The next step takes about as long as this one did.
        self._urgent |= after_ns + (after_ns - before_ns) - self._flushed_ns > HOLD_NS
        for event in events:
            reply = self._replies.get(event.id)
            if reply is not None:
                self._translate(reply, event, before_ns, after_ns)

    def _translate(self, reply: Reply, event: StepEvent, before_ns: int, after_ns: int) -> None:
        match event:
            case Sampled():  # first, because nearly all are
                self._urgent |= not reply.heard
                for piece in reply.sampled(event, after_ns):
                    self._emit(event.id, piece)
                if reply.stopped:
                    self._backend.cancel(event.id)
                    self._finish(event.id, Done(finish_reason="stop", at_ns=after_ns))
            case Admitted():
                reply.admitted(before_ns)
            case PrefillStarted():
                self._emit(event.id, reply.prefill_started(event.cached, after_ns))
            case PrefillAdvanced():
                self._emit(event.id, reply.prefill_advanced(event.done, after_ns))
            case DraftingChanged():
                self._emit(event.id, Drafting(drafter=event.drafter, off=event.off))
            case Finished():
                for piece in reply.flush(after_ns):
                    self._emit(event.id, piece)
                self._finish(event.id, Done(finish_reason=event.reason, at_ns=after_ns))
            case Refused():
                self._finish(event.id, Failed(error=_error(event.error).fault()))

    def _finish(self, generation_id: int, event: Event) -> None:
        del self._replies[generation_id]
        self._emit(generation_id, event)

    def _emit(self, generation_id: int, event: Event) -> None:
        self._out.append((generation_id, event))
        self._urgent |= not isinstance(event, Piece | Drafting)

    def _flush(self) -> None:
        if self._out and self._urgent:
            self._urgent = False
            self._flushed_ns = now_ns()
            load = self._backend.load()
            self._channel.send(
                Stepped(events=tuple(self._out), running=load.running, queued=load.queued, threads=load.threads)
            )
            self._out.clear()


def _error(error: Exception) -> LocalInferError:
    """The error to report; what is not ours is logged with its trace."""
    if isinstance(error, LocalInferError):
        return error
    traceback.print_exception(error)
    if isinstance(error, MemoryError):
        return OutOfMemory("Memory ran out.", "Use a smaller context or a smaller model.")
    return LocalInferError(f"The engine failed: {error}", "Please report this with the log.")


def _read(channel: Channel, inbox: Inbox, outbox: Outbox) -> None:
    """Reader thread: sort commands; end the process, whatever the model is doing, when the application is gone."""
    decoder: msgspec.msgpack.Decoder[Command] = decoding.msgpack(Command)  # type: ignore[arg-type]
    try:
        while (command := channel.receive(decoder)) is not None:
            if isinstance(command, Submit | Count):
                outbox.put(command)
            else:
                inbox.put(command)
    finally:
        os._exit(0)


def _encode(encoder: Encoder, channel: Channel, inbox: Inbox, outbox: Outbox) -> None:
    """Encoder thread: requests to token ids or to their number, in order of arrival."""
    while True:
        command = outbox.get()
        if isinstance(command, Submit):
            inbox.put(_encoded(encoder, command))
        else:
            channel.send(_counted(encoder, command))


# Whatever a template or a tokenizer does, only this one request fails.


def _encoded(encoder: Encoder, submit: Submit) -> Encoded:
    try:
        return submit.id, *encoder.encode(submit.id, submit.request)
    except Exception as error:
        return submit.id, _error(error), None


def _counted(encoder: Encoder, command: Count) -> Counted:
    try:
        return Counted(id=command.id, count=encoder.count(command.request))
    except Exception as error:
        return Counted(id=command.id, error=_error(error).fault())


def _serve(channel: Channel, options: LoadOptions, inbox: Inbox, outbox: Outbox) -> None:
    reported_ns = 0

    def progress(fraction: float) -> None:
        nonlocal reported_ns
        if now_ns() - reported_ns > PROGRESS_EVERY_NS:
            reported_ns = now_ns()
            channel.send(LoadProgress(progress=fraction))

    backend = backends.load(options, progress)
    encoder = Encoder(backend)
    info = msgspec.structs.replace(backend.info, notices=(*options.notices, *backend.info.notices, *encoder.notices))
    # What is loaded stays; walking through it again and again would cost time between steps.
    gc.collect()
    gc.freeze()
    channel.send(Loaded(info=info, at_ns=now_ns()))
    threading.Thread(target=_encode, args=(encoder, channel, inbox, outbox), name="encoder", daemon=True).start()
    Worker(channel, backend, inbox).run()


def main() -> None:
    """Entry point of the worker process: the first frame is ``LoadOptions``, commands follow."""
    # The encoder thread's Python must not keep the model thread waiting between steps.
    sys.setswitchinterval(0.0005)
    channel = claim_stdio()
    options = channel.receive(decoding.msgpack(LoadOptions))
    if options is None:
        return
    inbox: Inbox = queue.SimpleQueue()
    outbox: Outbox = queue.SimpleQueue()
    threading.Thread(target=_read, args=(channel, inbox, outbox), name="reader", daemon=True).start()
    try:
        _serve(channel, options, inbox, outbox)
    except Exception as error:
        channel.send(Fatal(error=_error(error).fault()))
        os._exit(1)


if __name__ == "__main__":
    main()
