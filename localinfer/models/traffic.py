"""What a device reads to decode one token: the weights it touches, and the cache as far as attention looks back."""

from localinfer.machine import Device
from localinfer.types import Value


class Cached(Value, frozen=True):
    """Layers that look equally far back: together they read ``token_bytes`` for each of the last ``window`` tokens
    (0: of all)."""

    token_bytes: int
    window: int = 0


class Traffic(Value, frozen=True):
    """What one device does for a token. ``fixed_bytes`` are read at any depth: the weights it touches, the routed
    experts in use (``expert_bytes``) among them, and recurrent states."""

    device: Device
    fixed_bytes: int
    expert_bytes: int = 0
    caches: tuple[Cached, ...] = ()

    def read_bytes(self, depth: int) -> int:
        """Bytes for a token that has ``depth`` tokens before it."""
        return self.fixed_bytes + sum(
            one.token_bytes * (min(depth, one.window) if one.window else depth) for one in self.caches
        )
