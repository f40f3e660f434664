"""What an inference library itself says a model would take, asked without loading it.

Values only: what is asked of the sizing child, and what it answers.
"""

from localinfer.types import Value


class SizeRequest(Value, frozen=True):
    """How the model would be loaded. ``paths`` are all its files in order; only their headers need to be there, if each
    has its full length (a sparse file). ``context`` is tokens per slot. ``device`` and ``gpu_layers`` are as in
    ``LoadOptions``. ``outputs`` is how many rows of logits one pass may ask for.
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
    """Bytes on one device; ``id`` is as in ``Device.id``, and ``cpu`` is the host. ``context_bytes`` is the KV cache
    and recurrent states, ``compute_bytes`` the buffers of a pass."""

    id: str
    model_bytes: int
    context_bytes: int
    compute_bytes: int


class Sizes(Value, frozen=True):
    """What loading would take. ``exact``: the library's own sums for every device; else read from its log.

    ``kv_bytes`` and ``state_bytes`` split the ``context_bytes`` of all devices.
    """

    devices: tuple[DeviceSizes, ...]
    kv_bytes: int
    state_bytes: int
    layers: int
    gpu_layers: int
    exact: bool
