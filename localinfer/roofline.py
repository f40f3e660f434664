"""How near decoding comes to the most that the memory's bandwidth allows.

A pass reads every weight it touches and the cache of the tokens before it. ``models.traffic`` counts those bytes and
the machine knows the bandwidth; this module brings them together with a measured speed.
"""

from localinfer.models.plan import MemoryPlan
from localinfer.types import Value


class Roofline(Value, frozen=True):
    """``share`` of the limit is reached: 1.0 is the limit, and more means that a part comes out of the processor's own
    caches. ``bandwidth`` is bytes per second of what is read, over all devices. ``estimate``: a bandwidth is the
    device's published one, neither measured here nor told by its driver."""

    share: float
    bandwidth: float
    estimate: bool = False


def roofline(plan: MemoryPlan, depth: int, passes_tps: float) -> Roofline | None:
    """The share that ``passes_tps`` passes per second reach with ``depth`` tokens in the cache.

    Share = passes per second × Σ over the devices (bytes read ÷ bandwidth): the devices work one after the other. An
    accepted draft comes out of the same pass as the token before it: passes are tokens − accepted drafts. None where a
    bandwidth or the model's layers are not known.
    """
    seconds, read_bytes, estimate = 0.0, 0, False
    for part in plan.traffic:
        if not (size := part.read_bytes(depth)):
            continue
        if not part.device.bandwidth:
            return None
        seconds += size / part.device.bandwidth
        read_bytes += size
        estimate |= part.device.bandwidth_source not in ("measured", "driver")
    if not seconds:
        return None
    return Roofline(share=passes_tps * seconds, bandwidth=read_bytes / seconds, estimate=estimate)
