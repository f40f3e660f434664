"""How fast a model is to be expected here, before it has run: decoding from bandwidth, prefill from arithmetic.

Decoding a token reads every weight it touches and the KV cache once: seconds = Σ (t0 + bytes ÷ (eta × bandwidth)) over
the devices. ``eta`` and ``t0`` are fits to published measurements (Apple M4 Pro 0.84 and 1.3 ms, RTX 2080 and 5070
0.79-0.83 and 1.1-1.6 ms, GTX 1050 Ti 0.39 and 2.2 ms); a run on this machine corrects them (``factor``).
"""

from collections.abc import Iterable

from localinfer.machine import Cpu, Device
from localinfer.models.plan import Range
from localinfer.models.traffic import Traffic

DEPTH = 2048  # tokens in the cache for which the speed is given, if the context is as long

_SPREAD = (0.75, 1.2)
_SPREAD_CPU = (0.5, 1.2)  # few cores may be slower than the memory they read
_SPREAD_LEARNT = 0.14  # around the middle
_SPREAD_PREFILL = (0.5, 1.8)
_EXPERT_ETA = 0.55  # scattered reads; 0.50-0.65 published
_OLD_CAPABILITY = 7.0


def decode_tps(traffic: Iterable[Traffic], depth: int, factor: float | None = None) -> Range | None:
    """Tokens per second of one sequence with ``depth`` tokens in the cache; None where a bandwidth is not known.
    ``factor``: measured ÷ expected here."""
    seconds = 0.0
    slow = False
    for part in traffic:
        if not (read := part.read_bytes(depth)):
            continue
        if not part.device.bandwidth:
            return None
        eta, fixed_s = _efficiency(part.device)
        plain = read - part.expert_bytes
        seconds += fixed_s + (plain / eta + part.expert_bytes / min(eta, _EXPERT_ETA)) / part.device.bandwidth
        slow |= part.device.kind == "cpu"
    if not seconds:
        return None
    return _range(1 / seconds, _SPREAD_CPU if slow else _SPREAD, factor)


def read_bytes(traffic: Iterable[Traffic], context: int) -> int:
    """What all devices together read for a token at the depth for which speeds are given."""
    return sum(part.read_bytes(min(context, DEPTH)) for part in traffic)


def prefill_tps(parameters: int, device: Device, cpu: Cpu, factor: float | None = None) -> Range | None:
    """Prompt tokens per second for a model that computes with ``parameters`` weights per token."""
    flops = _flops(device, cpu)
    if not flops or not parameters:
        return None
    return _range(flops / (2 * parameters), _SPREAD_PREFILL, factor)


def _range(value: float, spread: tuple[float, float], factor: float | None) -> Range:
    """Around ``value``; what was learnt moves the middle by ``factor`` and makes the range narrower."""
    plain = Range(low=value * spread[0], high=value * spread[1])
    if factor is None:
        return plain
    middle = factor * plain.middle
    return Range(low=middle * (1 - _SPREAD_LEARNT), high=middle * (1 + _SPREAD_LEARNT))


def _capability(device: Device) -> float | None:
    try:
        return float(device.compute_capability)
    except ValueError:
        return None


def _efficiency(device: Device) -> tuple[float, float]:
    """The part of the bandwidth that is reached, and seconds a token takes beside reading."""
    if device.kind == "cpu":
        return 0.6, 0.0008
    if device.kind == "integrated" and not device.id.lower().startswith("metal"):
        return 0.6, 0.002
    capability = _capability(device)
    if capability is not None and capability < _OLD_CAPABILITY:
        return 0.39, 0.0022
    return 0.81, 0.0013


def _flops(device: Device, cpu: Cpu) -> float | None:
    """Arithmetic that matrix products reach, operations per second, by class of device: published prefill speeds of
    7-8B models give 75-140 operations per byte of bandwidth on tensor cores, about 25 on Apple, 15 on GTX 10."""
    if device.kind == "cpu":
        wide = any(feature.startswith("avx512") for feature in cpu.features)
        return cpu.cores * (110e9 if wide else 70e9)
    if not device.bandwidth:
        return None
    capability = _capability(device)
    if capability is not None:
        return device.bandwidth * (90 if capability >= 8 else 60 if capability >= 7.5 else 15)
    return device.bandwidth * (25 if device.shares_ram else 40)
