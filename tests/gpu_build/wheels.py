"""Indexes of prebuilt wheels, as functions."""

from collections.abc import Callable, Iterable

from localinfer.errors import Offline
from localinfer.gpu_build.index import Wheel
from localinfer.machine.cuda import Cuda


def offering(*versions: Cuda) -> Callable[[tuple[Cuda, ...]], Wheel | None]:
    """An index with wheels for these CUDA versions."""

    def ask(wanted: tuple[Cuda, ...]) -> Wheel | None:
        for cuda in wanted:
            if cuda in versions:
                return Wheel(url=url(cuda), file="llama.whl", cuda=cuda)
        return None

    return ask


def url(cuda: Cuda) -> str:
    return f"https://wheels.example/cu{cuda[0]}{cuda[1]}/llama.whl"


def unreachable(_: Iterable[Cuda]) -> Wheel | None:
    raise Offline("The index of prebuilt wheels cannot be reached: no route to host.")


UPSTREAM = offering((11, 8), (12, 1), (12, 4), (12, 5), (13, 0), (13, 2))
