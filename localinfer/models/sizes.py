"""What an inference library itself says a model would take, asked without loading it.

Values only: what is asked of the sizing child, and what it answers.
"""

from localinfer.types import Fault, Value

DRAFT_ROWS = 31  # at least so many drafted tokens may be checked in one pass, 6 for each slot of many


def outputs(slots: int) -> int:
    """Rows of logits that a context for ``slots`` sequences is made with: a row for the next token of each, and rows
    for drafted tokens."""
    return slots + max(DRAFT_ROWS, 6 * slots)


class SizeRequest(Value, frozen=True):
    """How the model would be loaded. ``paths`` are all its files in order; only their headers need to be there, if each
    has its full length (a sparse file). ``context`` is tokens per slot. ``device`` and ``gpu_layers`` are as in
    ``LoadOptions``. ``outputs`` is how many rows of logits one pass may ask for, at least one of each slot; a worker
    asks for ``outputs()``.
    """

    paths: tuple[str, ...]
    context: int
    slots: int = 1
    kv_type: str = "f16"
    device: str | None = None
    gpu_layers: int = -1
    batch: int = 2048
    micro_batch: int = 512
    outputs: int = 1
    unified: bool = False


class DeviceSizes(Value, frozen=True):
    """Bytes on one device; ``id`` is as in ``Device.id``, and ``cpu`` is the host. ``model_bytes`` are weights as they
    lie in the file, ``context_bytes`` the KV cache and recurrent states, ``compute_bytes`` the buffers of a pass, on
    the host with the rows of logits."""

    id: str
    model_bytes: int
    context_bytes: int
    compute_bytes: int


class Sizes(Value, frozen=True):
    """What loading would take. ``exact``: the library's own sums for every device; else read from its log.

    ``kv_bytes`` and ``state_bytes`` split the ``context_bytes`` of all devices. ``repacked_bytes`` is what the CPU
    takes beside ``model_bytes`` for a second copy of some weights, in the order its kernels read them.
    """

    devices: tuple[DeviceSizes, ...]
    kv_bytes: int
    state_bytes: int
    layers: int
    gpu_layers: int
    exact: bool
    repacked_bytes: int = 0


class SizeReport(Value, frozen=True):
    """The sizing child's answer to one ``SizeRequest``: exactly one of the two."""

    sizes: Sizes | None = None
    error: Fault | None = None
