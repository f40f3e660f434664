"""A child process for tests: ``python -P -m tests.children`` does what the environment's ``CHILD`` says."""

import ctypes
import os
import signal
import sys
import time

import msgspec

from localinfer.process import Channel, claim_stdio


class Frame(msgspec.Struct, frozen=True):
    """What goes over the pipe, in both directions."""

    data: bytes = b""
    number: int = 0


def _echo(channel: Channel) -> None:
    decoder = msgspec.msgpack.Decoder(Frame)
    while (frame := channel.receive(decoder)) is not None:
        channel.send(frame)


def _chatter(channel: Channel) -> None:
    """What libraries do to descriptor 1, between and inside frames."""
    os.write(1, b"\xff\xff\xff\xff from os.write\n")
    print("from print", flush=True)
    ctypes.CDLL(None).puts(b"from the C library")
    ctypes.CDLL(None).fflush(None)
    channel.send(Frame(data=b"clean"))
    _echo(channel)


def main() -> None:
    """Do it, then exit with code 0 unless it is about something else."""
    raw = os.dup(1)
    channel = claim_stdio()
    action, _, argument = os.environ["CHILD"].partition(" ")
    match action:
        case "echo":
            _echo(channel)
        case "chatter":
            _chatter(channel)
        case "clock":
            channel.send(Frame(number=time.perf_counter_ns()))
        case "bytes":  # instead of a frame
            os.write(raw, bytes.fromhex(argument))
        case "exit":
            sys.stderr.write(os.environ.get("CHILD_LOG", ""))
            sys.stderr.flush()
            channel.send(Frame())  # who expects another value ends the child at this one
            os._exit(int(argument))
        case "signal":
            sys.stderr.write(os.environ.get("CHILD_LOG", ""))
            sys.stderr.flush()
            os.kill(os.getpid(), int(argument))
        case "hang":
            channel.send(Frame())
            signal.pause()


if __name__ == "__main__":
    main()
